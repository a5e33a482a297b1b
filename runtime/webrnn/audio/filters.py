"""A function of frames as a filter of signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .frames import Framer, OverlapAdd
from .stft import Transform
from .windows import Window

OfFrame = Callable[[np.ndarray], Any]


class FrameFilter:
    """Calls a function with each frame and adds up what it returns.

    >>> copies = FrameFilter(lambda frame: frame / 4, size=512, hop=128)
    >>> signal = np.arange(300, dtype=np.float32)
    >>> blocks = [copies.push(signal[:200]), copies.push(signal[200:]), copies.flush()]
    >>> [len(block) for block in blocks], bool((np.concatenate(blocks) == signal).all())
    ([0, 0, 300], True)

    In all there are as many samples out as in, and each is where it was; it comes out when the last frame that it is in
    is complete, size samples later at most.
    """

    def __init__(self, function: OfFrame, size: int, hop: int):
        self.function = function
        self._framer = Framer(size, hop)
        self._add = OverlapAdd(size, hop, lead=self._framer.lead)
        self._owed = 0

    def push(self, samples: Any) -> np.ndarray:
        """The samples that are done."""
        frames = self._framer.push(samples)
        self._owed += len(samples)
        return self._done(frames)

    def flush(self) -> np.ndarray:
        """The samples that remain; the next block begins another signal."""
        rest = self._done(self._framer.flush(tail=self._framer.lead))
        self._add.flush()
        self._owed = 0
        return rest

    def _done(self, frames: np.ndarray) -> np.ndarray:
        for frame in frames:
            frame[...] = self.function(frame)
        samples = self._add.push(frames)[: self._owed]
        self._owed -= len(samples)
        return samples


class SpectrumFilter(FrameFilter):
    """Calls a function with the spectrum [bins] of each frame; the signal is that of the spectra it returns.

    >>> low = SpectrumFilter(lambda spectrum: spectrum * (np.arange(161) < 40), size=320, hop=160)
    >>> np.concatenate([low.push(np.ones(1000, np.float32)), low.flush()]).shape
    (1000,)
    """

    def __init__(self, function: OfFrame, size: int, hop: int, window: Window = "sqrt-hann", n_fft: int | None = None):
        self._transform = Transform(size, hop, window, n_fft)
        super().__init__(lambda frame: self._transform.backward(function(self._transform.forward(frame))), size, hop)
