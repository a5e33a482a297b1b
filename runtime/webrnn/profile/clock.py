"""The clock of profiling builds: what one reading costs and how long a tick is."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from webrnn.engine.kernels.loading import Kernels
from webrnn.errors import BackendError

from .counters import LAP_KINDS, ROW

LONG_ENOUGH = 0.005
"""Seconds of a calibration, against which the call itself is nothing."""
ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Clock:
    seconds_per_tick: float
    ticks_per_lap: float
    """What a lap costs that does nothing: reading the clock, and writing it down."""

    @property
    def seconds_per_lap(self) -> float:
        return self.seconds_per_tick * self.ticks_per_lap


def calibrate(kernels: Kernels) -> Clock:
    """Time empty laps, again and again: what interrupts a calibration only makes its ticks longer, or its laps."""
    attempts = [_calibrate(kernels) for _ in range(ATTEMPTS)]
    return Clock(min(each.seconds_per_tick for each in attempts), min(each.ticks_per_lap for each in attempts))


def _calibrate(kernels: Kernels) -> Clock:
    counters = kernels.empty((2, ROW), np.int64)
    run = kernels.function("profile_calibrate")

    def timed(count: int) -> float:
        started = time.perf_counter()
        run(counters.address, count)
        return time.perf_counter() - started

    empty = min(timed(0) for _ in range(ATTEMPTS))
    count = 1024
    while True:
        counters.array[...] = 0
        elapsed = timed(count) - empty
        ticks = int(counters.array[:, LAP_KINDS].sum())
        if ticks <= 0:
            raise BackendError("this processor has no clock that profiling could read")
        if elapsed >= LONG_ENOUGH:
            return Clock(elapsed / ticks, ticks / count)
        count *= 4
