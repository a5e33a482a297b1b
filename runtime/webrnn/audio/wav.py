"""Wav files: PCM of 16, 24 and 32 bits and 32-bit floats.

The header is read and written here, because the `wave` module of Python knows neither floats nor, before 3.12, the
extensible format, in which 24 bits usually come.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from webrnn.errors import OptionError

from .errors import AudioError
from .samples import as_samples

File = str | os.PathLike[str] | BinaryIO
PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
UNKNOWN_SIZE = 0xFFFFFFFF
"""What programs write that cannot go back to the header: the data go on to the end of the file."""
ENCODINGS = {"pcm16": (PCM, 16), "pcm24": (PCM, 24), "pcm32": (PCM, 32), "float32": (FLOAT, 32)}


class WavReader:
    """Reads a wav file by blocks: float32 [samples], or [samples, channels] if it has several.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_wav(file, np.float32([0, 0.5, -0.5]), 16000)
    >>> with WavReader(file) as wav:
    ...     print(wav.rate, wav.channels, wav.encoding, len(wav))
    ...     print([block.tolist() for block in wav.blocks(2)])
    16000 1 pcm16 3
    [[0.0, 0.5], [-0.5]]

    A file object is read from its beginning and stays open. Floats keep 24 of the bits of "pcm32".
    """

    def __init__(self, file: File):
        self._name, self._owned = _name(file), not hasattr(file, "read")
        self._file: BinaryIO = open(file, "rb") if isinstance(file, (str, os.PathLike)) else file  # noqa: SIM115
        try:
            self._file.seek(0)
            self._read_header()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """Samples of each channel."""
        return self._length

    def read(self, n: int | None = None) -> np.ndarray:
        """The next n samples, or all that remain; fewer, and at last none, at the end."""
        n = self._left if n is None else min(n, self._left)
        data = self._file.read(n * self._width)
        if len(data) < n * self._width:
            raise AudioError(f"{self._name}: ends {n - len(data) // self._width} samples before its header says so")
        self._left -= n
        samples = _decode(data, self.encoding)
        return samples if self.channels == 1 else samples.reshape(-1, self.channels)

    def blocks(self, size: int) -> Iterator[np.ndarray]:
        """The rest, by blocks of `size` samples; the last may be shorter."""
        if size < 1:
            raise OptionError(f"blocks of {size} samples")
        while self._left:
            yield self.read(size)

    def close(self) -> None:
        if self._owned:
            self._file.close()

    def __enter__(self) -> WavReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_header(self) -> None:
        head = self._file.read(12)
        if len(head) < 12 or head[:4] != b"RIFF" or head[8:] != b"WAVE":
            raise AudioError(f"{self._name}: not a wav file")
        has_format = False
        while True:
            chunk = self._file.read(8)
            if len(chunk) < 8:
                raise AudioError(f"{self._name}: a wav file without {'samples' if has_format else 'a format'}")
            kind, size = struct.unpack("<4sI", chunk)
            if kind == b"data":
                break
            if kind == b"fmt ":
                self._read_format(self._file.read(size))
                has_format = True
                self._file.seek(size % 2, os.SEEK_CUR)
            else:
                self._file.seek(size + size % 2, os.SEEK_CUR)
        if not has_format:
            raise AudioError(f"{self._name}: a wav file without a format")
        if size == UNKNOWN_SIZE:
            here = self._file.tell()
            size = self._file.seek(0, os.SEEK_END) - here
            self._file.seek(here)
        self._length = self._left = size // self._width

    def _read_format(self, data: bytes) -> None:
        if len(data) < 16:
            raise AudioError(f"{self._name}: a damaged header")
        kind, self.channels, self.rate, _, self._width, bits = struct.unpack("<HHIIHH", data[:16])
        if kind == EXTENSIBLE and len(data) >= 26:
            kind = struct.unpack("<H", data[24:26])[0]
        found = [name for name, how in ENCODINGS.items() if how == (kind, bits)]
        if not found:
            raise AudioError(f"{self._name}: format {kind} with {bits} bits; {', '.join(ENCODINGS)} can be read")
        self.encoding = found[0]
        if not self.channels or not self.rate or self._width != self.channels * bits // 8:
            raise AudioError(f"{self._name}: a damaged header")


class WavWriter:
    """Writes a wav file by blocks.

    >>> import io
    >>> file = io.BytesIO()
    >>> with WavWriter(file, 16000, encoding="float32") as wav:
    ...     wav.write(np.float32([0.25, 1.5]))
    ...     wav.write(np.float32([-2]))
    >>> read_wav(file)
    (array([ 0.25,  1.5 , -2.  ], dtype=float32), 16000)

    `encoding` is "pcm16", "pcm24", "pcm32" or "float32"; samples beyond full scale are cut off, except as floats.
    """

    def __init__(self, file: File, rate: int, channels: int = 1, encoding: str = "pcm16"):
        if encoding not in ENCODINGS:
            raise OptionError(f"no encoding {encoding!r}; there are {', '.join(ENCODINGS)}")
        if not 1 <= channels <= 65535 or not 1 <= rate <= 0xFFFFFFFF or rate != int(rate):
            raise OptionError(f"a wav file of {channels} channels at {rate} Hz")
        self.rate, self.channels, self.encoding = int(rate), channels, encoding
        self._name, self._owned = _name(file), not hasattr(file, "write")
        self._file: BinaryIO = open(file, "wb") if isinstance(file, (str, os.PathLike)) else file  # noqa: SIM115
        self._size = 0
        self._file.write(self._header())

    def write(self, samples: Any) -> None:
        """Samples [samples], or [samples, channels]."""
        data = _encode(as_samples(samples, self.channels), self.encoding)
        if self._size + len(data) >= UNKNOWN_SIZE - 64:
            raise AudioError(f"{self._name}: a wav file holds no more than 4 GiB")
        self._file.write(data)
        self._size += len(data)

    def close(self) -> None:
        """Complete the header."""
        if self._size % 2:
            self._file.write(b"\0")
        self._file.seek(0)
        self._file.write(self._header())
        self._file.seek(0, os.SEEK_END)
        if self._owned:
            self._file.close()

    def __enter__(self) -> WavWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _header(self) -> bytes:
        kind, bits = ENCODINGS[self.encoding]
        width = self.channels * bits // 8
        layout = struct.pack("<HHIIHH", kind, self.channels, self.rate, self.rate * width, width, bits)
        chunks = b"fmt " + struct.pack("<I", len(layout)) + layout + b"data" + struct.pack("<I", self._size)
        return b"RIFF" + struct.pack("<I", 4 + len(chunks) + self._size + self._size % 2) + b"WAVE" + chunks


def read_wav(file: File) -> tuple[np.ndarray, int]:
    """All samples of a wav file, float32 [samples] or [samples, channels], and its rate."""
    with WavReader(file) as wav:
        return wav.read(), wav.rate


def write_wav(file: File, samples: Any, rate: int, encoding: str = "pcm16") -> None:
    """A wav file of samples [samples] or [samples, channels].

    >>> import io
    >>> file = io.BytesIO()
    >>> write_wav(file, np.zeros((100, 2), np.float32), 48000, encoding="pcm24")
    >>> read_wav(file)[0].shape
    (100, 2)
    """
    array = np.asarray(samples)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    channels = array.shape[1] if array.ndim == 2 else 1
    array = as_samples(array, channels)
    with WavWriter(file, rate, channels, encoding) as wav:
        wav.write(array)


def _name(file: Any) -> str:
    return os.fspath(file) if isinstance(file, (str, os.PathLike)) else getattr(file, "name", "a wav file")


def _decode(data: bytes, encoding: str) -> np.ndarray:
    match encoding:
        case "float32":
            return np.frombuffer(data, "<f4").astype(np.float32)
        case "pcm16":
            return np.frombuffer(data, "<i2").astype(np.float32) / 2**15
        case "pcm32":
            return np.frombuffer(data, "<i4").astype(np.float32) / 2**31
    wide = np.zeros((len(data) // 3, 4), np.uint8)
    wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
    return wide.view("<i4")[:, 0].astype(np.float32) / 2**31


def _encode(samples: np.ndarray, encoding: str) -> bytes:
    if encoding == "float32":
        return samples.astype("<f4").tobytes()
    if not np.isfinite(samples).all():
        raise AudioError("samples that are not finite; only float32 files hold them")
    bits = ENCODINGS[encoding][1]
    full = 2.0 ** (bits - 1)
    numbers = np.clip(np.rint(samples.astype(np.float64) * full), -full, full - 1)
    if bits == 24:
        return numbers.astype("<i4").reshape(-1, 1).view(np.uint8)[:, :3].tobytes()
    return numbers.astype(f"<i{bits // 8}").tobytes()
