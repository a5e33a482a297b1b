"""Blocks of any size in, blocks of any size out."""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import OptionError

from .errors import AudioError
from .samples import as_samples


class Fifo:
    """A queue of samples.

    >>> fifo = Fifo()
    >>> fifo.push(np.float32([1, 2, 3]))
    >>> fifo.pop(2), len(fifo)
    (array([1., 2.], dtype=float32), 1)

    A caller that needs a block of a fixed size in each call, as an audio device does, starts with some zeros:

    >>> fifo = Fifo(zeros=4)
    >>> fifo.pop(3)
    array([0., 0., 0.], dtype=float32)
    """

    def __init__(self, zeros: int = 0):
        if zeros < 0:
            raise OptionError(f"a queue that starts with {zeros} zeros")
        self._buffer = np.zeros(max(2 * zeros, 1024), np.float32)
        self._first, self._end = 0, zeros

    def __len__(self) -> int:
        return self._end - self._first

    def push(self, samples: Any) -> None:
        array = as_samples(samples)
        if self._end + len(array) > len(self._buffer):
            self._make_room(len(array))
        self._buffer[self._end : self._end + len(array)] = array
        self._end += len(array)

    def peek(self, n: int) -> np.ndarray:
        """The next n samples, which stay: a view until the next call."""
        if not 0 <= n <= len(self):
            raise AudioError(f"{n} samples of a queue that has {len(self)}")
        return self._buffer[self._first : self._first + n]

    def drop(self, n: int) -> None:
        if not 0 <= n <= len(self):
            raise AudioError(f"{n} samples of a queue that has {len(self)}")
        self._first += n

    def pop(self, n: int | None = None) -> np.ndarray:
        """The next n samples, or all."""
        n = len(self) if n is None else n
        samples = self.peek(n).copy()
        self.drop(n)
        return samples

    def _make_room(self, n: int) -> None:
        kept = self._buffer[self._first : self._end]
        needed = len(kept) + n
        target = self._buffer if 2 * needed <= len(self._buffer) else np.empty(2 * needed, np.float32)
        target[: len(kept)] = kept
        self._buffer, self._first, self._end = target, 0, len(kept)
