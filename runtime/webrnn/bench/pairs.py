"""Two sides in turn, in short blocks, A B B A: what else the machine does falls on both."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

BLOCK = 8e-3
"""Seconds of a side before it is the other's turn."""
FEWEST_CALLS, MOST_CALLS = 3, 2000
LONG = 20e-3
"""Seconds: of calls that take longer there is one in a block."""
SITTINGS = 10
FEWEST_ROUNDS = 2 * SITTINGS
CALM_SHARE = 1 / 2
"""Of the rounds of a sitting: those that took longest do not count."""


class Side(Protocol):
    def block(self, calls: int) -> float:
        """Seconds of a call: the median of so many, each timed by itself."""
        ...


@dataclass(frozen=True)
class PairEffort:
    """How long a pair is measured: rounds are made until the time is up, but not fewer than `rounds`."""

    seconds: float
    """In all sittings together."""
    rounds: int = FEWEST_ROUNDS
    sittings: int = SITTINGS

    @property
    def n_sittings(self) -> int:
        return min(self.sittings, self.rounds)

    def part(self) -> PairEffort:
        """Of one sitting."""
        return replace(self, seconds=self.seconds / self.n_sittings, rounds=-(-self.rounds // self.n_sittings))


def calls_of_a_block(*sides: Side) -> int:
    """As many as fill it on the slower side; sides are warm then."""
    seconds = max(min(side.block(FEWEST_CALLS) for _ in range(3)) for side in sides)
    if seconds > LONG:
        return 1
    return int(min(max(BLOCK / max(seconds, 1e-9), FEWEST_CALLS), MOST_CALLS))


@dataclass(frozen=True)
class Sitting:
    """Seconds of a call in each round, of both sides."""

    base: list[float]
    other: list[float]

    @property
    def ratio(self) -> float:
        """The other's time ÷ the base's: the median of the calm rounds. Which those are depends on both sides alike."""
        rounds = sorted(zip(self.base, self.other, strict=True), key=sum)
        calm = rounds[: max(1, math.ceil(len(rounds) * CALM_SHARE))]
        return float(np.median([other / base for base, other in calm]))

    def as_data(self) -> dict[str, Any]:
        rounds = {"base_us": self.base, "other_us": self.other}
        return {"ratio": round(self.ratio, 5)} | {
            name: [round(1e6 * seconds, 3) for seconds in side] for name, side in rounds.items()
        }


def sit(base: Side, other: Side, part: PairEffort, clock: Callable[[], float] = time.perf_counter) -> Sitting:
    """A round is A B B A, the next one B A A B."""
    calls = calls_of_a_block(base, other)
    found = Sitting([], [])
    end = clock() + part.seconds
    while len(found.base) < part.rounds or clock() < end:
        order = (base, other, other, base) if len(found.base) % 2 == 0 else (other, base, base, other)
        times = [(side, side.block(calls)) for side in order]
        for side, seconds in ((base, found.base), (other, found.other)):
            seconds.append(sum(time for each, time in times if each is side) / 2)
    return found


def in_us(seconds: Sequence[float]) -> dict[str, float]:
    """Microseconds of a call.

    >>> in_us([1e-6, 2e-6, 3e-6])["p50"]
    2.0
    """
    p50, p99, worst = (round(float(us), 3) for us in 1e6 * np.percentile(seconds, [50, 99, 100]))
    return {"calls": len(seconds), "p50": p50, "p99": p99, "worst": worst}
