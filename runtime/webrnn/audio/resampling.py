"""Other sample rates: a windowed sinc filter on the kernels, with the same bits everywhere (wasm_kernels/resample.c).

What is below 0.9 of the lower Nyquist rate stays, within 2e-5 of its size (0.0002 dB). From the Nyquist rate on nothing
is left: aliases and images are 99 dB lower. A result is where it was, without any shift; it waits for the next 64
samples of the lower rate.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from functools import cache, lru_cache
from math import ceil
from typing import Any

import numpy as np

from webrnn.engine import kernels
from webrnn.errors import OptionError

from .samples import as_samples

REACH = 64
"""Samples of the lower rate that a filter reaches to each side."""
LANES = 16
MOST_NUMBERS = 1 << 20
"""In a table of filters."""
BLOCK = 4096
"""Samples that are taken at a time, or that come of them if those are more."""


class Resampler:
    """Changes the sample rate of a signal.

    >>> resampler = Resampler(48000, 16000)
    >>> blocks = [resampler.push(np.zeros(480, np.float32)) for _ in range(100)]
    >>> sum(map(len, blocks)) + len(resampler.flush())
    16000

    Samples are [samples], or [samples, channels] for more channels than one. n samples become ceil(n * to_rate /
    from_rate), each where it was: result m lies at sample m * from_rate / to_rate. `reach` is how many samples behind
    the one at or before its place a result waits for. Equal rates change nothing, and nothing waits.

    The ratio of the rates needs a table of filters, one for each place between samples: 48000 to 44100 has 147 of them.
    Rates whose table would be larger than 4 MB, such as 44101 and 16000, are refused.
    """

    def __init__(self, from_rate: float, to_rate: float, channels: int = 1):
        if channels < 1:
            raise OptionError(f"a signal of {channels} channels")
        self.channels = channels
        self.ratio = ratio_of(from_rate, to_rate)
        up, down = self.ratio.numerator, self.ratio.denominator
        self._up, self._down = up, down
        self.reach, self._taps = filter_size(up, down)
        if self.ratio == 1:
            self.reach = 0
            return
        self._kernels, self._table = _table(up, down)
        self._block = min(BLOCK, max(1, int(BLOCK / self.ratio)))
        self._input = [self._kernels.empty(self._block + self._taps) for _ in range(channels)]
        self._output = self._kernels.empty(ceil(self._block * self.ratio) + 1)
        self._begin()

    def push(self, samples: Any) -> np.ndarray:
        """The samples at the new rate that are done."""
        samples = as_samples(samples, self.channels)
        if self.ratio == 1:
            return samples.copy()
        self._fed += len(samples)
        return self._resampled(samples)

    def flush(self) -> np.ndarray:
        """The samples that remain; the next block begins another signal."""
        if self.ratio == 1:
            return self._nothing()
        owed = ceil(self._fed * self.ratio) - self._given
        rest = self._resampled(np.zeros((self.reach + 1, *self._nothing().shape[1:]), np.float32))[:owed]
        self._begin()
        return rest

    def _begin(self) -> None:
        self._filled = self._taps - 1 - self.reach  # zeros before the first sample
        for buffer in self._input:
            buffer.array[: self._filled] = 0
        self._place = 0  # of the next result, in parts of 1 / up of a sample behind the first in the buffers
        self._fed = self._given = 0

    def _nothing(self) -> np.ndarray:
        return np.empty(0 if self.channels == 1 else (0, self.channels), np.float32)

    def _resampled(self, samples: np.ndarray) -> np.ndarray:
        parts = [self._nothing()]
        for first in range(0, len(samples), self._block):
            block = samples[first : first + self._block].reshape(-1, self.channels)
            for channel, buffer in enumerate(self._input):
                buffer.array[self._filled : self._filled + len(block)] = block[:, channel]
            self._filled += len(block)
            parts.append(self._complete())
        return np.concatenate(parts)

    def _complete(self) -> np.ndarray:
        """The results whose samples are all in the buffers, which keep what later ones read."""
        up, down, taps = self._up, self._down, self._taps
        reachable = (self._filled - taps + 1) * up - self._place
        count = max(0, -(-reachable // down))
        results = np.empty((count, self.channels), np.float32)
        end = self._place + count * down
        used = min(end // up, self._filled)
        for channel, buffer in enumerate(self._input):
            start = buffer.part(self._place // up * 4, 0)
            self._kernels.resample(start, self._table, self._output, count, self._place % up, up, down, taps)
            results[:, channel] = self._output.array[:count]
            buffer.array[: self._filled - used] = buffer.array[used : self._filled].copy()
        self._filled -= used
        self._place = end - used * up
        self._given += count
        return results[:, 0] if self.channels == 1 else results


def resample(samples: Any, from_rate: float, to_rate: float) -> np.ndarray:
    """A whole signal, [samples] or [samples, channels], at another rate.

    >>> resample(np.zeros(48000, np.float32), 48000, 16000).shape
    (16000,)
    """
    shape = np.shape(samples)
    resampler = Resampler(from_rate, to_rate, shape[1] if len(shape) == 2 else 1)
    if len(shape) == 2 and shape[1] == 1:
        return resample(np.asarray(samples)[:, 0], from_rate, to_rate)[:, None]
    return np.concatenate([resampler.push(samples), resampler.flush()])


def ratio_of(from_rate: float, to_rate: float) -> Fraction:
    """to_rate / from_rate in lowest terms; raises if there is no table for it."""
    if not (0 < from_rate < float("inf") and 0 < to_rate < float("inf")):
        raise OptionError(f"from {from_rate} Hz to {to_rate} Hz: sample rates are numbers above 0")
    ratio = Fraction(to_rate) / Fraction(from_rate)
    taps = filter_size(ratio.numerator, ratio.denominator)[1]
    if ratio.numerator * taps > MOST_NUMBERS:
        ratio_text = f"{ratio.numerator} / {ratio.denominator}"
        raise OptionError(
            f"from {from_rate} Hz to {to_rate} Hz is {ratio_text} in lowest terms, which needs too many filters: "
            "take rates with a large common divisor, such as 8000, 11025, 16000, 22050, 24000, 32000, 44100 and 48000"
        )
    return ratio


def filter_size(up: int, down: int) -> tuple[int, int]:
    """Samples that a filter reaches behind the one at or before a result, and numbers in its row of the table."""
    half = -(-REACH * max(up, down) // up)
    return half, -(-2 * half // LANES) * LANES


@lru_cache(maxsize=16)
def _table(up: int, down: int) -> tuple[kernels.Kernels, kernels.Buffer]:
    loaded = _loaded()
    taps = filter_size(up, down)[1]
    table = loaded.empty(up * taps)
    loaded.resample_table(table, up, down, taps)
    return loaded, table


@cache
def _loaded() -> kernels.Kernels:
    return kernels.load("pyodide" if sys.platform == "emscripten" else "native")
