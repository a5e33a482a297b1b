"""A wheel compressed as well as a zip file can be: libdeflate makes 45 KB less of 2 MB than zlib, in half a second, and
the same bytes whatever zlib a Python has."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

DEFLATED = 8
MOST = 12
VERSION = 20
"""Of the zip format: 2.0, which knows deflated files."""


def compress(wheel: Path) -> None:
    """Rewrites a zip file in place: the same files, with the same names, times and permissions, in the same order."""
    import deflate

    with zipfile.ZipFile(wheel) as archive:
        entries = [(entry, archive.read(entry)) for entry in archive.infolist()]
    made, directory = bytearray(), bytearray()
    for entry, data in entries:
        packed = bytes(deflate.deflate_compress(data, MOST))
        name = entry.filename.encode()
        flags = 0 if name.isascii() else 0x800  # what is not ASCII is UTF-8
        year, month, day, hour, minute, second = entry.date_time
        time, date = hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day
        common = struct.pack(
            "<HHHHHIIIHH", VERSION, flags, DEFLATED, time, date, entry.CRC, len(packed), len(data), len(name), 0
        )
        directory += b"PK\1\2" + struct.pack("<BB", VERSION, entry.create_system) + common
        directory += struct.pack("<HHHII", 0, 0, 0, entry.external_attr, len(made)) + name
        made += b"PK\3\4" + common + name + packed
    count = len(entries)
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(made), 0)
    wheel.write_bytes(made + directory + end)
