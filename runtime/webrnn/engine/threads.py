"""How many threads work on a run."""

from __future__ import annotations

import os

from webrnn.errors import OptionError

from .kernels.team import MOST_THREADS


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


def processors() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
