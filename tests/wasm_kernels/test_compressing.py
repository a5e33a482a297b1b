"""Wheels are compressed anew without a change of what is in them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from wasm_kernels import compressing

FILES = {"a/empty.py": b"", "a/text.py": b"def f(): ...\n" * 999, "a/native.so": bytes(range(256)) * 99, "ä.txt": b"1"}


def entries(archive: zipfile.ZipFile) -> list[tuple[object, ...]]:
    return [
        (row.filename, row.date_time, row.external_attr, row.create_system, row.CRC, row.file_size, row.extra)
        for row in archive.infolist()
    ]


def test_everything_but_the_size_stays(tmp_path: Path) -> None:
    file = tmp_path / "it.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in FILES.items():
            entry = zipfile.ZipInfo(name, (2020, 2, 29, 23, 58, 58))
            entry.external_attr = 0o100755 << 16 if name.endswith(".so") else 0o100644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
        before = entries(archive)
    size = file.stat().st_size
    compressing.compress(file)
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert entries(archive) == before
        assert {name: archive.read(name) for name in archive.namelist()} == FILES
        assert {row.compress_type for row in archive.infolist()} == {zipfile.ZIP_DEFLATED}
    assert file.stat().st_size < size
    once = file.read_bytes()
    compressing.compress(file)
    assert file.read_bytes() == once
    assert zipfile.is_zipfile(io.BytesIO(once))
