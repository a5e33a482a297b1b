"""Samples as the rest of the package takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import AudioError


def as_samples(samples: Any, channels: int = 1) -> np.ndarray:
    """float32 [samples], or [samples, channels]; raises for what is not meant as samples."""
    array = np.asarray(samples)
    if array.dtype.kind != "f":
        raise AudioError(f"samples are floats with full scale 1, not {array.dtype}: divide int16 by 32768")
    wanted = array.ndim == 1 if channels == 1 else array.ndim == 2 and array.shape[1] == channels
    if not wanted:
        what = "[samples]" if channels == 1 else f"[samples, {channels}]"
        raise AudioError(f"samples of shape {list(array.shape)} where {what} is needed")
    return np.ascontiguousarray(array, np.float32)


def mono(samples: Any) -> np.ndarray:
    """The mean of the channels of [samples, channels]; [samples] stays. Channels are added in their order, in float32,
    and the sum is divided by their number: the bits of the audio thread (docs/audio-worklet.md).

    >>> mono(np.array([[0.5, 0.25], [1.0, 0.0]]))
    array([0.375, 0.5  ], dtype=float32)
    """
    array = np.asarray(samples)
    if array.ndim != 2 or array.shape[1] == 0:
        return as_samples(array)
    if array.shape[1] == 1:
        return as_samples(array[:, 0])
    channels = as_samples(array, channels=array.shape[1]).T
    total = channels[0].copy()
    for channel in channels[1:]:
        total += channel
    return total / np.float32(len(channels))
