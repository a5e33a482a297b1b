"""Archives inside of a wheel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import webrnn
from webrnn import packed
from webrnn.engine.kernels import loading

FILES = {"b.wasm": bytes(1000), "a/b.wasm": b"\0asm", "c": b""}


def test_files_come_back(tmp_path: Path) -> None:
    archive = tmp_path / packed.MODULES
    archive.write_bytes(packed.pack(FILES))
    assert packed.unpack(archive) == FILES
    assert packed.pack(dict(reversed(FILES.items()))) == archive.read_bytes()


def test_modules_of_a_folder_and_of_one_below_it(tmp_path: Path) -> None:
    (tmp_path / packed.MODULES).write_bytes(packed.pack(FILES))
    (tmp_path / "c").write_bytes(b"a file comes first")
    assert loading.module_bytes(tmp_path, "b.wasm") == bytes(1000)
    assert loading.module_bytes(tmp_path, "c") == b"a file comes first"
    assert loading.module_bytes(tmp_path / "a", "b.wasm") == b"\0asm"
    assert loading.has_module(tmp_path / "a", "b.wasm")
    assert not loading.has_module(tmp_path / "a", "c")
    with pytest.raises(webrnn.BackendError, match="d was not built"):
        loading.module_bytes(tmp_path, "d")


@pytest.mark.parametrize("data", [b"", b"PK", packed.pack(FILES)[:-40], packed.pack(FILES)[:60]])
def test_a_damaged_archive_is_told(data: bytes, tmp_path: Path) -> None:
    archive = tmp_path / packed.PAGE
    archive.write_bytes(data)
    with pytest.raises(webrnn.Error, match=r"_web.tar.xz is damaged, reinstall webrnn"):
        packed.unpack(archive)


def test_a_python_without_lzma_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / packed.PAGE
    archive.write_bytes(packed.pack(FILES))
    monkeypatch.setitem(sys.modules, "lzma", None)
    with pytest.raises(webrnn.Error, match=r"this Python has no module lzma, which _web.tar.xz needs"):
        packed.unpack(archive)
