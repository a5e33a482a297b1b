"""Frames that overlap, and signals from such frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from webrnn.errors import OptionError

from .errors import AudioError
from .fifo import Fifo


class Framer:
    """Cuts a signal into frames of `size` samples, one every `hop`.

    Before the first sample there are `lead` zeros, by default size - hop, so that the first hop samples complete the
    first frame.

    >>> framer = Framer(size=4, hop=2)
    >>> framer.push(np.float32([1, 2, 3]))
    array([[0., 0., 1., 2.]], dtype=float32)
    >>> framer.push(np.float32([4, 5]))
    array([[1., 2., 3., 4.]], dtype=float32)
    >>> framer.flush()
    array([[3., 4., 5., 0.]], dtype=float32)
    """

    def __init__(self, size: int, hop: int, lead: int | None = None):
        require_frames(size, hop)
        self.size, self.hop, self.lead = size, hop, size - hop if lead is None else lead
        self._fifo = Fifo(zeros=self.lead)
        self._fed = 0

    def push(self, samples: Any) -> np.ndarray:
        """The frames [frames, size] that these samples complete."""
        waiting = len(self._fifo)
        self._fifo.push(samples)
        self._fed += len(self._fifo) - waiting
        return self._complete()

    def flush(self, tail: int = 0) -> np.ndarray:
        """The frames that remain until each sample, and each of `tail` zeros behind them, is in one."""
        if self._fed:
            whole = self.lead + self._fed + tail
            n_frames = 1 + max(0, -((self.size - whole) // self.hop))
            end = self.size + (n_frames - 1) * self.hop
            self._fifo.push(np.zeros(end - self.lead - self._fed, np.float32))
        frames = self._complete()
        self._fifo, self._fed = Fifo(zeros=self.lead), 0
        return frames

    def _complete(self) -> np.ndarray:
        if len(self._fifo) < self.size:
            return np.empty((0, self.size), np.float32)
        n_frames = (len(self._fifo) - self.size) // self.hop + 1
        span = self._fifo.peek(self.size + (n_frames - 1) * self.hop)
        frames = sliding_window_view(span, self.size)[:: self.hop].copy() if n_frames > 1 else span[None].copy()
        self._fifo.drop(n_frames * self.hop)
        return frames


class OverlapAdd:
    """Adds up frames that overlap: the way back from frames to a signal.

    >>> add = OverlapAdd(size=4, hop=2)
    >>> add.push(np.ones((3, 4), np.float32))
    array([1., 1., 2., 2., 2., 2.], dtype=float32)
    >>> add.flush()
    array([1., 1.], dtype=float32)

    The first `lead` samples are left out: with the `lead` of the framer the signal is where it was.
    """

    def __init__(self, size: int, hop: int, lead: int = 0):
        require_frames(size, hop)
        self.size, self.hop, self.lead = size, hop, lead
        self._tail = np.zeros(size - hop, np.float32)
        self._skip = lead

    def push(self, frames: Any) -> np.ndarray:
        """The samples, hop for each frame of [frames, size], that no later frame changes."""
        frames = np.asarray(frames, np.float32)
        if frames.ndim != 2 or frames.shape[1] != self.size:
            raise AudioError(f"frames of shape {list(frames.shape)} where [frames, {self.size}] is needed")
        end = len(frames) * self.hop
        sums = np.zeros(end + len(self._tail), np.float32)
        sums[: len(self._tail)] = self._tail
        for first, frame in zip(range(0, end, self.hop), frames, strict=True):
            sums[first : first + self.size] += frame
        self._tail = sums[end:].copy()
        return self._behind_lead(sums[:end])

    def flush(self) -> np.ndarray:
        """The last size - hop samples."""
        rest = self._behind_lead(self._tail)
        self._tail, self._skip = np.zeros_like(self._tail), self.lead
        return rest

    def _behind_lead(self, samples: np.ndarray) -> np.ndarray:
        n = min(self._skip, len(samples))
        self._skip -= n
        return samples[n:]


def require_frames(size: int, hop: int) -> None:
    if not 1 <= hop <= size:
        raise OptionError(f"frames of {size} samples every {hop}: 1 <= hop <= size")
