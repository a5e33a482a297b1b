"""Zip files from strangers: whatever is wrong with one is a `ModelError`."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

from webrnn.errors import Error, ModelError, UnsupportedOp

LARGEST_ENTRY = 2**32


class Archive:
    """The entries of a zip file.

    >>> stored = io.BytesIO()
    >>> with zipfile.ZipFile(stored, "w") as archive:
    ...     archive.writestr("a.txt", "hello")
    >>> archive = Archive(stored.getvalue())
    >>> archive.names, archive.read("a.txt")
    (['a.txt'], b'hello')
    """

    def __init__(self, data: bytes):
        self.size = len(data)
        with _damage():
            self._archive = zipfile.ZipFile(io.BytesIO(data))
            self.names = self._archive.namelist()
        if len(set(self.names)) != len(self.names):
            raise ModelError("an entry of the zip file is there twice")

    def read(self, name: str, only_stored: bool = False) -> bytes:
        """The bytes of an entry; with `only_stored` it must not be compressed."""
        if name not in self.names:
            raise ModelError(f"{name!r} is not in the zip file")
        with _damage():
            info = self._archive.getinfo(name)
            if only_stored and (info.compress_type != zipfile.ZIP_STORED or info.file_size > self.size):
                raise UnsupportedOp(f"{name!r} is compressed, which this kind of file never is")
            if info.file_size > LARGEST_ENTRY:
                raise ModelError(f"{name!r} is of {info.file_size} bytes")
            return self._archive.read(info)


@contextmanager
def _damage() -> Iterator[None]:
    try:
        yield
    except Error:
        raise
    except Exception as error:  # Python's module raises a dozen kinds if a zip file is damaged, encrypted or unknown
        raise ModelError(f"the zip file is damaged: {error}") from None
