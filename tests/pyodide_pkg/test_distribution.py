"""The local Pyodide distribution: complete, checked by hash, made once, safe with several processes at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pyodide_pkg import core, distribution, sources, wheel


@pytest.fixture(scope="module")
def folder() -> Path:
    return distribution.ensure()


@pytest.fixture
def cache(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with the core files only; packages come from the real cache, which stands for a server."""
    target = tmp_path / "cache" / f"pyodide-{core.VERSION}"
    target.mkdir(parents=True)
    for file in core.ensure().iterdir():
        os.link(file, target / file.name)
    monkeypatch.setenv(sources.OWN, str(folder))
    return target.parent


@pytest.fixture
def ready_wheel(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Building the wheel is quick."""
    monkeypatch.setattr(wheel, "build", lambda output: Path(shutil.copy(next(folder.glob("webrnn-*.whl")), output)))


def test_holds_what_a_page_needs(folder: Path) -> None:
    names = {file.name for file in folder.iterdir()}
    assert {"pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", distribution.LOCK} <= names
    lock = json.loads((folder / distribution.LOCK).read_text())
    assert set(lock["packages"]) == {"numpy", "micropip", "webrnn"}
    assert {entry["file_name"] for entry in lock["packages"].values()} == {n for n in names if n.endswith(".whl")}
    assert lock["packages"]["webrnn"]["depends"] == ["numpy"]
    assert lock["packages"]["webrnn"]["imports"] == ["webrnn"]
    assert distribution.check(folder) == []


def test_packages_are_those_of_pyodides_own_lock_file(folder: Path) -> None:
    own = json.loads((core.ensure() / distribution.LOCK).read_text())
    lock = json.loads((folder / distribution.LOCK).read_text())
    assert lock["info"]["abi_version"] == own["info"]["abi_version"]
    for name in distribution.PACKAGES:
        assert lock["packages"][name] == own["packages"][name]


def test_is_made_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr(wheel, "build", refuse)
    monkeypatch.setattr(sources, "fetch", refuse)
    key = folder.name
    monkeypatch.setattr(wheel, "sources_key", lambda: key)
    assert distribution.ensure() == folder


@pytest.mark.usefixtures("ready_wheel")
def test_changed_sources_give_a_new_folder_with_the_same_packages(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "sources_key", lambda: "1" * 64)
    first = distribution.ensure(cache)
    monkeypatch.delenv(sources.OWN)
    monkeypatch.setattr(sources, "known_sources", dict)
    monkeypatch.setattr(wheel, "sources_key", lambda: "2" * 64)
    second = distribution.ensure(cache)
    assert (first.name, second.name) == ("1" * 16, "2" * 16)
    for name in ("pyodide.asm.wasm", *(file.name for file in first.glob("numpy*"))):
        assert (first / name).samefile(second / name)


@pytest.mark.usefixtures("ready_wheel")
def test_folders_of_old_sources_go(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "sources_key", lambda: "1" * 64)
    old = distribution.ensure(cache)
    os.utime(old, (0, 0))
    monkeypatch.setattr(wheel, "sources_key", lambda: "2" * 64)
    new = distribution.ensure(cache)
    assert not old.exists()
    assert distribution.check(new) == []


def test_two_processes_at_once(cache: Path) -> None:
    command = [sys.executable, "-m", "pyodide_pkg.distribution", "--cache", str(cache)]
    both = [subprocess.Popen(command, cwd=core.ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert said[0] == said[1]
    (made,) = (cache / f"pyodide-{core.VERSION}-dist").iterdir()
    assert distribution.check(made) == []
    assert not list(cache.glob("tmp*"))


@pytest.mark.usefixtures("ready_wheel")
def test_an_edit_while_it_is_made_starts_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = iter(["1" * 64, "1" * 64, "1" * 64, "2" * 64, "2" * 64, "2" * 64])
    monkeypatch.setattr(wheel, "sources_key", lambda: next(keys))
    assert distribution.ensure(cache).name == "2" * 16


def test_output_is_a_copy(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert distribution.main(["--output", str(tmp_path / "site")]) == 0
    assert str(tmp_path / "site") in capsys.readouterr().out
    assert distribution.check(tmp_path / "site") == []
    assert not (tmp_path / "site" / "pyodide.mjs").samefile(folder / "pyodide.mjs")


def test_a_damaged_core_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho damaged > pyodide.tgz\n")
    npm.chmod(0o755)
    monkeypatch.setattr(core, "node", lambda: str(tmp_path / "node"))
    with pytest.raises(core.SetupError, match="expected"):
        core.ensure(tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("pyodide-*"))
