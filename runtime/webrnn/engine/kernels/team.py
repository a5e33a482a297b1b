"""Threads that work on a run beside the one that calls it: see wasm_kernels/team.h.

They wait for work inside a C function, without Python's lock and for a short while only, and sleep in Python otherwise:
C code makes no threads and knows no operating system.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from threading import Lock, Thread
from typing import Any

import numpy as np

from ..forking import new_lock

MOST_THREADS = 31
"""As many parts can work have."""

LEAST_SHARED = 4
"""Work that is worth waking somebody up, in millions of multiply-adds: some 100 us."""

MOST_RUNS_UNASKED = 64


class Team:
    """The threads of this process. One run at a time has them: another one that begins meanwhile works alone."""

    def __init__(self, functions: Mapping[str, Any]):
        self._functions = functions
        self._memory = np.zeros(functions["team_bytes"]() + 64, np.uint8)
        self.address = self._memory.ctypes.data + -self._memory.ctypes.data % 64
        functions["team_make"](self.address)
        self._helpers: list[_Helper] = []
        self._lock = new_lock(self)
        atexit.register(functions["team_end"], self.address)

    def grow(self, threads: int) -> None:
        """See to it that so many threads can work, the one that calls counted."""
        with self._lock:
            while len(self._helpers) < threads - 1:
                self._helpers.append(_Helper(self._functions["team_serve"], self.address, len(self._helpers) + 1))

    def call(self) -> None:
        """Wake up whoever sleeps."""
        for helper in self._helpers:
            helper.call()

    def __len__(self) -> int:
        return len(self._helpers) + 1

    def _after_fork(self, was_held: bool) -> None:
        """A child has none of the threads."""
        threads, self._helpers = len(self), []
        self._memory[...] = 0
        self._functions["team_make"](self.address)
        self.grow(threads)


class _Helper:
    def __init__(self, serve: Any, address: int, who: int):
        self._bed, self._sleeps = Lock(), False
        self._bed.acquire()
        Thread(target=self._live, args=(serve, address, who), name=f"webrnn-{who}", daemon=True).start()

    def _live(self, serve: Any, address: int, who: int) -> None:
        while True:
            serve(address, who)
            self._sleeps = True
            self._bed.acquire()

    def call(self) -> None:
        if self._sleeps:  # whoever is about to lie down is left out of one run
            self._sleeps = False
            self._bed.release()


class Crew:
    """What one plan has of a team: it asks now and then how much of the work can be shared, and calls for help only if
    that is worth it."""

    def __init__(self, kernels: Any):
        self._team, self._threads = kernels.team, kernels.threads
        self._hire, self._shared = kernels.function("plan_hire"), kernels.function("plan_shared")
        self._is_worth_it, self._pause, self._unasked = False, 1, 0

    def hire(self, tables: int) -> None:
        """Behind plan_bind, which lets everybody go."""
        self._hire(tables, self._team.address, self._threads)
        self._is_worth_it, self._pause, self._unasked = False, 1, 0

    def before_run(self) -> None:
        if self._is_worth_it:
            self._team.call()

    def after_run(self, tables: int) -> None:
        if self._unasked:
            self._unasked -= 1
            return
        self._is_worth_it = self._shared(tables) >= LEAST_SHARED
        self._unasked, self._pause = self._pause, min(2 * self._pause, MOST_RUNS_UNASKED)
