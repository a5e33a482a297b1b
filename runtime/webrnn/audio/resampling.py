"""Other sample rates, by the library soxr (`pip install webrnn[audio]`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import BackendError, OptionError

from .samples import as_samples

QUALITIES = ("QQ", "LQ", "MQ", "HQ", "VHQ")


class Resampler:
    """Changes the sample rate of a signal.

    >>> resampler = Resampler(48000, 16000)
    >>> blocks = [resampler.push(np.zeros(480, np.float32)) for _ in range(100)]
    >>> sum(map(len, blocks)) + len(resampler.flush())
    16000

    Samples are [samples], or [samples, channels] for more channels than one. Some samples wait inside, as the quality
    of soxr ("QQ", "LQ", "MQ", "HQ", "VHQ") asks for. Equal rates need no library and nothing waits.
    """

    def __init__(self, from_rate: float, to_rate: float, channels: int = 1, quality: str = "HQ"):
        if from_rate <= 0 or to_rate <= 0 or channels < 1:
            raise OptionError(f"{channels} channels from {from_rate} Hz to {to_rate} Hz")
        if quality not in QUALITIES:
            raise OptionError(f"no quality {quality!r}; there are {', '.join(QUALITIES)}")
        self.channels = channels
        self._stream = None
        if from_rate != to_rate:
            try:
                import soxr
            except ImportError as error:
                raise BackendError("the sample rate is changed by soxr: pip install 'webrnn[audio]'") from error
            self._stream = soxr.ResampleStream(from_rate, to_rate, channels, dtype="float32", quality=quality)

    def push(self, samples: Any) -> np.ndarray:
        """The samples at the new rate that are done."""
        samples = as_samples(samples, self.channels)
        return samples.copy() if self._stream is None else self._stream.resample_chunk(samples)

    def flush(self) -> np.ndarray:
        """The samples that remain; the next block begins another signal."""
        nothing = np.empty(0 if self.channels == 1 else (0, self.channels), np.float32)
        if self._stream is None:
            return nothing
        rest = self._stream.resample_chunk(nothing, last=True)
        self._stream.clear()
        return rest


def resample(samples: Any, from_rate: float, to_rate: float, quality: str = "HQ") -> np.ndarray:
    """A whole signal, [samples] or [samples, channels], at another rate.

    >>> resample(np.zeros(48000, np.float32), 48000, 16000).shape
    (16000,)
    """
    shape = np.shape(samples)
    resampler = Resampler(from_rate, to_rate, shape[1] if len(shape) == 2 else 1, quality)
    if len(shape) == 2 and shape[1] == 1:
        return resample(np.asarray(samples)[:, 0], from_rate, to_rate, quality)[:, None]
    return np.concatenate([resampler.push(samples), resampler.flush()])
