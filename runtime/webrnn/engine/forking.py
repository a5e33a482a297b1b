"""Locks that work in a child process as well.

`os.fork()` copies a process with the one thread that calls it. What another thread has locked at that moment nobody
would ever release in the child, and what that thread was doing there has stopped in the middle. So a child gets new
locks, and whoever was in the middle of something is told.

In a child every session, stream and pool may be used. A stream that was stepping is as it was before that step, or
behind it; a run that was going on never comes to its end there. Pools that were ticking, and sessions whose WebAssembly
was running, cannot be used in the child: they raise, and new ones can be made.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import Any, NoReturn, Protocol
from weakref import WeakKeyDictionary


class Holder(Protocol):
    _lock: Any

    def _after_fork(self, was_held: bool) -> None:
        """Called in a child, with a new lock; `was_held`: a thread that is not there any more had the old one."""


class Abandoned:
    """In place of the lock of something that cannot be used any more."""

    def __init__(self, error: Exception):
        self._error = error

    def __enter__(self) -> NoReturn:
        raise self._error.with_traceback(None)

    def __exit__(self, *_: object) -> None: ...


_holders: WeakKeyDictionary[Any, Callable[[], Any]] = WeakKeyDictionary()


def new_lock(holder: Holder, make: Callable[[], Any] = Lock) -> Any:
    """A lock for `holder._lock`, which a child process replaces."""
    _holders[holder] = make
    return make()


def _renew_locks() -> None:
    for holder, make in list(_holders.items()):
        if isinstance(holder._lock, Abandoned):
            continue
        was_held = not holder._lock.acquire(blocking=False)
        holder._lock = make()
        holder._after_fork(was_held)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_locks)
