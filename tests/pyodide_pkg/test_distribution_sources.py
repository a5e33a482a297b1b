"""Packages for Pyodide from several sources, none of which is trusted."""

from __future__ import annotations

import hashlib
import random
import zipfile
from pathlib import Path

import pytest

from pyodide_pkg import core, remote_zip, sources
from tests.pyodide_pkg.plain_server import serving

NAME = "a-1-py3-none-any.whl"
GOOD = random.Random(7).randbytes(200_000)
SHA256 = hashlib.sha256(GOOD).hexdigest()


def quiet(so_far: int, in_all: int) -> None:
    pass


def unreachable(name: str, progress: sources.Progress) -> bytes:
    raise OSError("no route to host")


def giving(data: bytes) -> sources.Source:
    return lambda name, progress: data


def test_first_source_with_the_right_hash(tmp_path: Path) -> None:
    order = {"far": unreachable, "wrong": giving(b"other"), "right": giving(GOOD), "never": unreachable}
    file = sources.fetch(NAME, SHA256, tmp_path / "new", quiet, order)
    assert file == tmp_path / "new" / NAME
    assert file.read_bytes() == GOOD
    assert [f.name for f in file.parent.iterdir()] == [NAME]


def test_nothing_with_another_hash_is_kept(tmp_path: Path) -> None:
    with pytest.raises(core.SetupError) as caught:
        sources.fetch(NAME, SHA256, tmp_path, quiet, {"far": unreachable, "wrong": giving(GOOD + b"!")})
    assert "far: no route to host" in str(caught.value)
    assert f"wrong: sha256 {hashlib.sha256(GOOD + b'!').hexdigest()}, not using it" in str(caught.value)
    assert sources.OWN in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_fetched_again(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(GOOD[:-1])
    assert sources.fetch(NAME, SHA256, tmp_path, quiet, {"right": giving(GOOD)}).read_bytes() == GOOD


def test_an_intact_file_asks_no_source(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(GOOD)
    assert sources.fetch(NAME, SHA256, tmp_path, quiet, {}).read_bytes() == GOOD


def test_own_folder_and_own_server_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / NAME).write_bytes(GOOD)
    seen: list[tuple[int, int]] = []
    with serving(tmp_path / "own") as address:
        for place in (str(tmp_path / "own"), address, f"{address}/"):
            monkeypatch.setenv(sources.OWN, place)
            label, source = next(iter(sources.known_sources().items()))
            assert label == place
            assert source(NAME, lambda *counts: seen.append(counts)) == GOOD
    assert seen[-1] == (len(GOOD), len(GOOD))


def test_address_of_packages_is_in_pyodides_own_code() -> None:
    address = sources._pyodide_address(core.ensure() / "pyodide.mjs")
    assert address.startswith("https://")
    assert address.endswith(f"/v{core.VERSION}/full/")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    file = tmp_path / "large.zip"
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("before", random.Random(1).randbytes(3_000_000))
        made.writestr("folder/packed", b"text " * 50_000 + GOOD, zipfile.ZIP_DEFLATED)
        made.writestr("folder/stored", GOOD, zipfile.ZIP_STORED)
        made.writestr("after", random.Random(2).randbytes(3_000_000))
    return file


@pytest.mark.parametrize(("member", "content"), [("packed", b"text " * 50_000 + GOOD), ("stored", GOOD)])
def test_only_the_bytes_of_a_member_travel(archive: Path, member: str, content: bytes) -> None:
    sent: list[int] = []
    seen: list[tuple[int, int]] = []
    with serving(archive.parent, sent=sent) as address:
        found = remote_zip.read_member(f"{address}/{archive.name}", f"folder/{member}", lambda *c: seen.append(c))
    assert found == content
    assert len(GOOD) < sum(sent) < 1.1 * len(GOOD)
    assert seen[-1][0] == seen[-1][1]


def test_unknown_member(archive: Path) -> None:
    with serving(archive.parent) as address, pytest.raises(KeyError):
        remote_zip.read_member(f"{address}/{archive.name}", "folder/none", quiet)


def test_server_without_ranges(archive: Path) -> None:
    with serving(archive.parent, ranges=False) as address, pytest.raises(remote_zip.RangeError):
        remote_zip.read_member(f"{address}/{archive.name}", "folder/packed", quiet)
