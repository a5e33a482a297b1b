"""Windows for frames of which spectra are taken."""

from __future__ import annotations

import numpy as np

from webrnn.errors import OptionError

WINDOWS = ("hann", "sqrt-hann", "hamming", "rect")

Window = str | np.ndarray
"""One of `WINDOWS`, or its samples."""


def window(kind: Window, size: int) -> np.ndarray:
    """A window for frames of `size` samples, in the periodic form; an array is checked and taken as it is.

    >>> window("hann", 4)
    array([0. , 0.5, 1. , 0.5], dtype=float32)
    """
    if size < 1:
        raise OptionError(f"a window of {size} samples")
    if isinstance(kind, str):
        return _named(kind, size).astype(np.float32)
    array = np.asarray(kind, np.float32)
    if array.shape != (size,) or not np.isfinite(array).all():
        raise OptionError(f"a window of shape {list(array.shape)} for frames of {size}, or one that is not finite")
    return array


def _named(kind: str, size: int) -> np.ndarray:
    cosine = np.cos(2 * np.pi * np.arange(size) / size)
    match kind:
        case "hann":
            return 0.5 - 0.5 * cosine
        case "sqrt-hann":
            return np.sqrt(0.5 - 0.5 * cosine)
        case "hamming":
            return 0.54 - 0.46 * cosine
        case "rect":
            return np.ones(size)
    raise OptionError(f"no window {kind!r}; there are {', '.join(WINDOWS)}")


def dual_window(analysis: np.ndarray, hop: int) -> np.ndarray:
    """The window for the way back, so that frames that overlap every `hop` samples add up to the signal."""
    size = len(analysis)
    square = analysis.astype(np.float64) ** 2
    padded = np.zeros(-(-size // hop) * hop)
    padded[:size] = square
    weight = padded.reshape(-1, hop).sum(axis=0)
    if weight.min() <= 1e-6 * weight.max():
        raise OptionError(f"this window, {size} samples every {hop}, leaves out samples: they cannot be had back")
    return (analysis / np.tile(weight, len(padded) // hop)[:size]).astype(np.float32)
