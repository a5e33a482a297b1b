"""A stopwatch for the clock on the wall and for the time of the processor."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spent:
    seconds: float
    """By the clock on the wall."""
    processor: float
    """Seconds of the processor: without those in which other programs had it."""

    def each(self, runs: int) -> Spent:
        """Of one of so many runs."""
        return Spent(self.seconds / runs, self.processor / runs)


class Watch:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._processor = time.thread_time()
        self._started = time.perf_counter()

    def spent(self) -> Spent:
        seconds = time.perf_counter() - self._started
        return Spent(seconds, time.thread_time() - self._processor)
