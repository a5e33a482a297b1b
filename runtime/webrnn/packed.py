"""Files that a wheel holds in one archive, so that what they have in common is there once.

A wheel compresses each file alone. The builds of the kernels for WebAssembly are a dozen files that are nearly the
same; in one .tar.xz they take a fifth of that. Such an archive is read into memory when somebody asks for a file of it:
nothing is written, so an installation may be read-only.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import Error

if TYPE_CHECKING:
    import tarfile

MODULES = "modules.tar.xz"
"""Beside the native library: the modules for WebAssembly."""
PAGE = "_web.tar.xz"
"""In the package: the page."""


def pack(files: Mapping[str, bytes]) -> bytes:
    """An archive. The same files give the same bytes.

    >>> data = pack({"b": b"1" * 9, "a": b""})
    >>> data == pack({"a": b"", "b": b"1" * 9})
    True
    """
    import lzma
    import tarfile

    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            archive.addfile(entry, io.BytesIO(files[name]))
    window = 1 << max(plain.tell() - 1, 1 << 16).bit_length()  # whoever unpacks it needs as much memory
    filters: list[dict[str, Any]] = [
        {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": window, "pb": 0}
    ]
    return lzma.compress(plain.getvalue(), filters=filters)


@cache
def unpack(archive: Path) -> dict[str, bytes]:
    """The files of an archive by name."""
    try:
        import lzma
        import tarfile
    except ImportError as error:
        raise Error(f"this Python has no module lzma, which {archive.name} needs: use one that has it") from error
    try:
        return unpacked(archive.read_bytes())
    except (lzma.LZMAError, tarfile.TarError, ValueError, OSError) as error:
        raise Error(f"{archive.name} is damaged, reinstall webrnn: {error}") from error


def unpacked(data: bytes) -> dict[str, bytes]:
    """The files of an archive by name, or an error of lzma or tarfile.

    >>> unpacked(pack({"a": b"1"}))
    {'a': b'1'}
    """
    import lzma
    import tarfile

    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(data)), mode="r:") as opened:
        return {entry.name: _content(opened, entry) for entry in opened}


def _content(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(entry)
    if file is None:
        raise ValueError(f"{entry.name} is no file")
    return file.read()
