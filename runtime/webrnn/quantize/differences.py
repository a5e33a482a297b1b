"""How far results are from those with float32 weights: one number for all outputs of a model.

The error of an output is the largest difference of one of its elements, relative to the largest magnitude in that
output with float32 weights. The error of a model is that of its worst output. Of an output that is not of floats it is
the share of elements that changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Difference(NamedTuple):
    """Of one output."""

    largest: float
    """The largest difference of an element."""
    scale: float
    """The largest magnitude with float32 weights; 1 where there is none."""

    @property
    def error(self) -> float:
        """
        >>> Difference(0.5, 2.0).error
        0.25
        """
        return self.largest / self.scale


def difference(found: Any, expected: Any) -> Difference:
    """
    >>> difference(np.float32([1, 2.5]), np.float32([1, 2]))
    Difference(largest=0.5, scale=2.0)
    >>> difference(np.int64([7, 8]), np.int64([7, 9]))
    Difference(largest=0.5, scale=1.0)
    """
    if not isinstance(expected, np.ndarray):
        parts = [difference(a, b) for a, b in zip(found or (), expected or (), strict=False)]
        is_same = len(found or ()) == len(expected or ())
        return max(parts, key=lambda part: part.error, default=Difference(0.0, 1.0)) if is_same else _ENTIRELY
    if found.shape != expected.shape:
        return _ENTIRELY
    if expected.dtype.kind != "f":
        return Difference(float(np.mean(found != expected)) if expected.size else 0.0, 1.0)
    wide, theirs = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        off = np.abs(wide - theirs)
    off[(wide == theirs) | (np.isnan(wide) & np.isnan(theirs))] = 0
    off[np.isnan(off)] = np.inf
    magnitudes = np.abs(theirs[np.isfinite(theirs)])
    return Difference(float(off.max(initial=0.0)), float(magnitudes.max(initial=0.0)) or 1.0)


_ENTIRELY = Difference(float("inf"), 1.0)
"""Of results that are not of the same shape."""


def worst(runs: Sequence[Sequence[Difference]]) -> list[Difference]:
    """Of each output the worst of several runs."""
    return [max(each, key=lambda one: one.error) for each in zip(*runs, strict=True)]
