"""The table of sizes of a plan, evaluated: with numbers for its symbols, or with named sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from webrnn.ir.dims import floor_divide

from .opcodes import SIZE_KINDS

NUMBER, SYMBOL, SUM, PRODUCT, QUOTIENT = (
    SIZE_KINDS.index(kind) for kind in ("number", "symbol", "sum", "product", "quotient")
)


def evaluated(rows: Iterable[Sequence[int]], symbols: Sequence[Any]) -> Iterator[Any]:
    """Each size when it is asked for, so that one that is too large ends it.

    >>> list(evaluated([(SYMBOL, 0, 0), (NUMBER, 3, 0), (PRODUCT, 0, 1), (QUOTIENT, 2, 2)], [5]))
    [5, 3, 15, 7]
    """
    found: list[Any] = []
    for kind, a, b in rows:
        if kind == NUMBER:
            size: Any = a
        elif kind == SYMBOL:
            size = symbols[a]
        elif kind == SUM:
            size = found[a] + found[b]
        elif kind == PRODUCT:
            size = found[a] * found[b]
        else:
            size = floor_divide(found[a], b)
        found.append(size)
        yield size
