"""Threads that work on a run beside the one that calls it: see wasm_kernels/team.h.

They wait for work inside a C function, without Python's lock and for a short while only, and sleep in Python otherwise:
C code makes no threads and knows no operating system.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from threading import Lock, Thread
from typing import Any

import numpy as np

from webrnn.errors import OptionError

from ..forking import new_lock

MOST_THREADS = 31
"""As many parts can work have."""

LEAST_WORK = 1 << 14
"""Of a part, in multiply-adds: to hand over a part and to wait for it takes some 300 ns."""

LEAST_SHARED = 4
"""Work that is worth waking somebody up, in millions of multiply-adds: some 100 us."""

MOST_LOOKS = 16
"""How many runs are looked at."""

NOWHERE = -1
"""A processor that nobody knows."""


def number_of_threads(threads: int | str, backend: str) -> int:
    """
    >>> number_of_threads(2, "native"), number_of_threads("auto", "numpy")
    (2, 1)
    """
    is_native = backend.partition(":")[0] == "native"
    if threads == "auto":
        return min(processors(), MOST_THREADS) if is_native else 1
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        raise OptionError(f'threads is "auto" or a number from 1 to {MOST_THREADS}, not {threads!r}')
    if threads > 1 and not is_native:
        raise OptionError(f"{threads} threads: only the backend native has more than one, not {backend}")
    return threads


def least_side(threads: int) -> int | None:
    """The work of one of two parts of a plan that run at the same time, in multiply-adds; None if there are none: more
    threads share one instruction at a time.

    >>> least_side(1), least_side(2), least_side(4)
    (None, 16384, None)
    """
    return LEAST_WORK if threads in (2, 3) else None


def processors() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
        """A run is about to begin: wake up whoever sleeps. The others wait for it."""
        asleep = self._functions["team_call"](self.address)
        if asleep:
            taken = {_which_cpu()()}
            for helper in self._helpers:
                if asleep >> helper.who & 1:
                    helper.wake(taken)
                taken.add(helper.cpu)

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
        self.who, self._bed = who, Lock()
        self._bed.acquire()
        self.cpu = NOWHERE
        """The processor on which it lay down."""
        self.naps = 0
        """How often it did, for tests."""
        self._thread = Thread(target=self._live, args=(serve, address), name=f"webrnn-{who}", daemon=True)
        self._thread.start()

    def _live(self, serve: Any, address: int) -> None:
        while True:
            serve(address, self.who)
            self.cpu = _which_cpu()()
            self.naps += 1
            self._bed.acquire()

    def wake(self, taken: set[int]) -> None:
        """On none of the processors that are taken, if there are others. It may be about to lie down: then it gets up
        again at once. Until it has got up it is called again, which changes nothing."""
        if not self._bed.locked():
            return
        if self.cpu in taken and self.cpu != NOWHERE:
            _move(self._thread, taken)
        with suppress(RuntimeError):  # somebody else has just done it
            self._bed.release()


@cache
def _which_cpu() -> Callable[[], int]:
    """What says on which processor its caller is."""
    try:
        return ctypes.CDLL(None).sched_getcpu
    except (OSError, AttributeError, TypeError):  # only Linux has it
        return lambda: NOWHERE


def _move(thread: Thread, taken: set[int]) -> None:
    """Linux may leave a thread on the processor where it lay down, behind the one that woke it up and goes on
    working, while another processor is idle."""
    others = os.sched_getaffinity(0) - taken
    if others and thread.native_id is not None:
        with suppress(OSError):
            os.sched_setaffinity(thread.native_id, others)


class Crew:
    """What one plan has of a team. It looks at its first runs with new sizes, and calls for help from then on if one of
    them had enough work that can be shared."""

    def __init__(self, kernels: Any):
        self.team, self._threads, self._least_work = kernels.team, kernels.threads, kernels.least_work
        self._hire, self._shared = kernels.function("plan_hire"), kernels.function("plan_shared")
        self._looks = 0
        self.is_watching, self.is_needed = True, False

    def hire(self, tables: int) -> None:
        """Behind plan_bind, which lets everybody go."""
        self._hire(tables, self.team.address, self._threads, self._least_work)
        self._looks, self.is_watching, self.is_needed = 0, True, False

    def watch(self, tables: int) -> None:
        """Behind one of the first runs."""
        self._looks += 1
        self.is_needed = self._shared(tables) >= LEAST_SHARED
        self.is_watching = not self.is_needed and self._looks < MOST_LOOKS
