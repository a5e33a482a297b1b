"""Numbers of frames: how many there are for each stride of the inputs, and how many more."""

from __future__ import annotations

import re
from dataclasses import dataclass

from webrnn.ir import Dim, Symbol, SymbolicDim

from .kinds import BreaksTime, NeedsStride

STRIDES = Symbol("number of strides")
"""How many strides the inputs have. No model can give a size this name by accident that matters: it is used for the
axes of time only."""
_NAMES = STRIDES.names
FAR = 2**31 - 1
"""No axis has so many elements: exporters write this or more for "to the end"."""


def opened_size(value: str, number: Dim | None) -> SymbolicDim:
    """The name for a size of an axis of time that a model gives no name, or a number that a caller opened."""
    return Symbol(f"{'the' if number is None else number} frames of {value}")


def fixed_frames(size: Dim | None) -> int | None:
    """The number of frames that a model is for, if a caller opened it.

    >>> fixed_frames(opened_size("x", 10)), fixed_frames(opened_size("x", None)), fixed_frames(Symbol("time"))
    (10, None, None)
    """
    found = re.match(r"(\d+) frames of ", str(size))
    return None if found is None else int(found[1])


@dataclass(frozen=True, slots=True)
class Pace:
    """`rate * strides + extra` frames.

    >>> Pace.of(2 * STRIDES + 3)
    Pace(rate=2, extra=3)
    """

    rate: int
    extra: int

    @staticmethod
    def of(length: Dim) -> Pace:
        rate, extra = 0, 0
        for names, factor in length.terms if isinstance(length, SymbolicDim) else (((), length),):
            if not names:
                extra = factor
            elif len(names) == 1 and set(names) == _NAMES:
                rate = factor
            else:
                raise BreaksTime("how many frames there are depends on another size")
        if rate < 1:
            raise BreaksTime('it is for a fixed number of frames: time={"input": axis} opens the axis of time')
        return Pace(rate, extra)

    def left(self, delay: int) -> int:
        """How many strides behind the end all frames with a delay have come."""
        return max(0, -(-(delay + self.extra) // self.rate))

    def every(self, step: int) -> int:
        """The rate of what takes every `step`-th frame."""
        if self.rate % step:
            raise NeedsStride(_factor(self.rate, step))
        return self.rate // step


def _factor(rate: int, step: int) -> int:
    """
    >>> _factor(6, 4), _factor(1, 3)
    (2, 3)
    """
    factor = 1
    while rate * factor % step:
        factor += 1
    return factor


def mentions_strides(dim: Dim | None) -> bool:
    return isinstance(dim, SymbolicDim) and not _NAMES.isdisjoint(dim.names)


def longer_by(dim: Dim | None, factor: int) -> Dim | None:
    """What a size is if strides are so many times as long."""
    return dim.substitute(dict.fromkeys(_NAMES, factor * STRIDES)) if isinstance(dim, SymbolicDim) else dim
