"""Integers that several rules compute with: positions along an axis, sizes as tensors, other integers as int64."""

from __future__ import annotations

from webrnn.ir import Dim

from ..lowering import Lowering
from ..views import View
from .expressions import Writer


def converted(l: Lowering, view: View, dtype: str) -> View:
    """The elements as those of another type."""
    if view.dtype == dtype:
        return view
    target = l.temporary(view.shape, dtype)
    w = Writer(l)
    w.write([(target, w.cast(w.view(view), dtype))])
    return target


def positions(l: Lowering, count: Dim, rank: int = 1, axis: int = 0) -> View:
    """0, 1, 2 ... along one of several axes."""
    y = l.temporary((count,), "i64")
    l.emit("iota", y)
    return y.relaid((count if a == axis else 1 for a in range(rank)), (int(a == axis) for a in range(rank)))


def number_of(l: Lowering, size: Dim) -> View:
    """A size as a tensor of one element, for expressions."""
    y = l.temporary((1,), "i64")
    l.emit("sizes", y, rest=[size])
    return y
