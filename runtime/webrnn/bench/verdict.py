"""What ratios of two sides say: the same within so much, slower or faster.

Rounds of one sitting are not independent: they share two processes, or two sessions, with whatever place in memory
those have. So a sitting, which makes both sides anew, counts as one observation. The interval is that of the sign test:
of ten sittings it goes from the second smallest to the second largest, whatever their distribution is, and a sitting
that others disturbed does not widen it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MARGIN = 0.01
"""A difference that the whole interval does not put above this is none."""
LOUD = 0.05
"""An interval that is wider than this to a side hides what people look for."""
CONFIDENCE = 0.95
FEWEST = 6
"""Sittings: with fewer there is no such interval."""


@dataclass(frozen=True)
class Verdict:
    """Of a side over another."""

    ratio: float
    """Its time ÷ the other's."""
    low: float
    high: float
    """Where the ratio is, with a confidence of 95%; 0 and infinity if that is not known."""

    @property
    def is_slower(self) -> bool:
        return self.low > 1 + MARGIN

    @property
    def is_faster(self) -> bool:
        return self.high < 1 - MARGIN

    @property
    def within(self) -> float:
        """How far from the same it may be."""
        return max(self.high - 1, 1 - self.low)

    @property
    def is_loud(self) -> bool:
        """Whether more sittings would be worth their time."""
        return not self.is_slower and not self.is_faster and LOUD < self.within < math.inf

    def __str__(self) -> str:
        """
        >>> print(Verdict(1.05, 1.041, 1.058), "|", Verdict(0.9, 0.88, 0.92), "|", Verdict(1.0, 0.99, 1.013))
        slower by 4.1..5.8% | faster by 8.0..12.0% | the same within 1.3%
        """
        if self.is_slower:
            return f"slower by {100 * (self.low - 1):.1f}..{100 * (self.high - 1):.1f}%"
        if self.is_faster:
            return f"faster by {100 * (1 - self.high):.1f}..{100 * (1 - self.low):.1f}%"
        if not math.isfinite(self.high):
            return f"not known: below {FEWEST} sittings"
        return f"the same within {100 * self.within:.1f}%"

    def as_data(self) -> dict[str, Any]:
        finite = math.isfinite(self.high)
        return {
            "ratio": round(self.ratio, 5),
            "low": round(self.low, 5) if finite else None,
            "high": round(self.high, 5) if finite else None,
            "says": str(self),
        }


def verdict(sittings: Sequence[float]) -> Verdict:
    """Of a ratio a sitting.

    >>> print(verdict([1.04, 1.05, 1.05, 1.06, 1.05, 1.05, 1.04, 1.06, 1.3, 0.9]))
    slower by 4.0..6.0%
    >>> print(verdict([1.04, 1.05]))
    not known: below 6 sittings
    """
    ordered, left_out = sorted(sittings), _left_out(len(sittings))
    middle = float(np.median(ordered))
    if left_out is None:
        return Verdict(middle, 0.0, math.inf)
    return Verdict(middle, ordered[left_out], ordered[-1 - left_out])


def _left_out(count: int) -> int | None:
    """How many of so many observations may be left out at each end; None if not even all of them are enough.

    >>> [_left_out(count) for count in (5, 6, 8, 9, 12)]
    [None, 0, 0, 1, 2]
    """
    doubt, found = 0.0, None
    for number in range(count // 2 + 1):
        doubt += 2 * math.comb(count, number) / 2**count
        if doubt > 1 - CONFIDENCE:
            return found
        found = number
    return found
