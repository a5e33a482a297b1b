"""A function of frames as a filter of signals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, gcd
from typing import Any, Protocol

import numpy as np

from .frames import Framer, OverlapAdd
from .resampling import Resampler
from .samples import as_samples
from .stft import Transform
from .windows import Window

OfFrame = Callable[[np.ndarray], Any]
MOST_ROUNDS = 20_000


class Filter(Protocol):
    """As many samples out as in, each where it was."""

    def push(self, samples: Any) -> np.ndarray: ...

    def flush(self) -> np.ndarray: ...

    def latency(self, block: int = 128) -> int:
        """Samples by which the audio thread is late with it, where blocks of this size come and go."""


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

    def latency(self, block: int = 128) -> int:
        """Samples by which the audio thread is late with it, where blocks of this size come and go."""
        return self._framer.size - gcd(self._framer.hop, block)

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


class RateFilter:
    """A filter for signals of another rate than its own: resampled, filtered, resampled back.

    >>> copies = FrameFilter(lambda frame: frame / 4, size=512, hop=128)
    >>> at_48k = RateFilter(copies, rate=16000, sample_rate=48000)
    >>> signal = np.sin(np.arange(4800) / 20).astype(np.float32)
    >>> same = np.concatenate([at_48k.push(signal), at_48k.flush()])
    >>> same.shape, bool(np.allclose(same[500:-500], signal[500:-500], atol=1e-4)), at_48k.latency()
    ((4800,), True, 1856)
    """

    def __init__(self, filter: FrameFilter, rate: int, sample_rate: int):
        self._filter = filter
        self._down, self._up = Resampler(sample_rate, rate), Resampler(rate, sample_rate)
        self._owed = 0

    def push(self, samples: Any) -> np.ndarray:
        """The samples that are done."""
        lower = self._down.push(samples)
        self._owed += len(samples)
        return self._paid(self._up.push(self._filter.push(lower)))

    def flush(self) -> np.ndarray:
        """The samples that remain; the next block begins another signal."""
        last = self._filter.push(self._down.flush()), self._filter.flush()
        rest = self._paid(np.concatenate([*map(self._up.push, last), self._up.flush()]))
        self._owed = 0
        return rest

    def latency(self, block: int = 128) -> int:
        """Samples by which the audio thread is late with it, where blocks of this size come and go."""
        if self._down.ratio == 1:
            return self._filter.latency(block)
        step, ratio = self._filter._framer.hop, self._down.ratio
        delay = self._filter.latency(step)
        period = ratio.denominator * step // gcd(ratio.numerator, ratio.denominator * step)
        rounds = period // gcd(period, block)
        if rounds > MOST_ROUNDS:
            return ceil(self._down.reach + (step - 1 + delay + self._up.reach) / ratio)

        def late(taken: int) -> int:
            filtered = ceil((taken - self._down.reach) * ratio) // step * step - delay
            return taken - ceil((filtered - self._up.reach) / ratio)

        return max(late(block * (number + 1)) for number in range(rounds))

    def _paid(self, samples: np.ndarray) -> np.ndarray:
        samples = samples[: self._owed]
        self._owed -= len(samples)
        return samples


class ChannelFilter:
    """One filter for each channel of a signal [samples, channels].

    >>> both = ChannelFilter([FrameFilter(lambda frame: frame / 4, size=512, hop=128) for _ in range(2)])
    >>> both.push(np.ones((1024, 2), np.float32)).shape
    (640, 2)
    """

    def __init__(self, filters: Sequence[Filter]):
        self._filters = filters

    def push(self, samples: Any) -> np.ndarray:
        """The samples that are done."""
        channels = as_samples(samples, len(self._filters)).reshape(-1, len(self._filters)).T
        return np.stack([each.push(channel) for each, channel in zip(self._filters, channels, strict=True)], axis=1)

    def flush(self) -> np.ndarray:
        """The samples that remain; the next block begins another signal."""
        return np.stack([each.flush() for each in self._filters], axis=1)

    def latency(self, block: int = 128) -> int:
        """Samples by which the audio thread is late with it, where blocks of this size come and go."""
        return self._filters[0].latency(block)
