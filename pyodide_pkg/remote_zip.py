"""One member of a large zip file on a web server, fetched with range requests: only its bytes travel."""

from __future__ import annotations

import io
import struct
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

TIMEOUT = 60
BLOCK = 1 << 17
LOCAL_HEADER = 30


class RangeError(OSError):
    """The server does not answer range requests."""


class RemoteFile(io.RawIOBase):
    """A file at an address, read in ranges; `progress` is told the bytes so far and in all of each read."""

    def __init__(self, address: str, progress: Callable[[int, int], object] = lambda so_far, in_all: None):
        self.address, self.progress, self.position = address, progress, 0
        with self._open("bytes=-1") as answer:
            self.size = int(answer.headers["Content-Range"].rpartition("/")[2])

    def _open(self, span: str) -> Any:
        request = urllib.request.Request(self.address, headers={"Range": span})
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
        if answer.status != 206:
            answer.close()
            raise RangeError(f"{self.address} is not served in ranges")
        return answer

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        return self.position

    def read(self, count: int = -1) -> bytes:
        end = self.size if count < 0 else min(self.position + count, self.size)
        length = end - self.position
        data = bytearray()
        if length > 0:
            with self._open(f"bytes={self.position}-{end - 1}") as answer:
                while block := answer.read(BLOCK):
                    data += block
                    self.progress(len(data), length)
        if len(data) < length:
            raise OSError(f"{self.address} ended after {len(data)} of {length} bytes")
        self.position = max(end, self.position)
        return bytes(data)


def read_member(address: str, member: str, progress: Callable[[int, int], object]) -> bytes:
    """The content of a member; KeyError where there is none of that name."""
    file = RemoteFile(address)
    with zipfile.ZipFile(file) as archive:  # reads the directory at the end, nothing more
        entry = archive.getinfo(member)
        file.seek(entry.header_offset)
        name_and_extra = sum(struct.unpack_from("<HH", file.read(LOCAL_HEADER), 26))
        file.seek(name_and_extra, io.SEEK_CUR)
        file.progress = progress
        data = file.read(entry.compress_size)
    if entry.compress_type == zipfile.ZIP_DEFLATED:
        return zlib.decompress(data, -zlib.MAX_WBITS)
    if entry.compress_type == zipfile.ZIP_STORED:
        return data
    raise OSError(f"{member} is packed in a way that is not read here")
