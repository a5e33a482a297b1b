"""Ops that order values: TopK and Unique."""

from __future__ import annotations

import numpy as np

from webrnn.errors import ShapeError

from .arrays import Array, normalize_axis, single
from .registry import op


@op("TopK")
def top_k(x: Array, k: Array, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Array, Array]:
    """Among equal values the lower index comes first. The result is sorted in any case."""
    axis = normalize_axis(axis, x.ndim)
    count = single(k, "K")
    if not 0 <= count <= x.shape[axis]:
        raise ShapeError(f"K is {count}, the axis has {x.shape[axis]} elements")
    if largest:
        # A stable descending order: sort the reversed axis in ascending order, then read it backwards.
        ascending = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
        order = x.shape[axis] - 1 - np.flip(ascending, axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    chosen = order[(slice(None),) * axis + (slice(count),)].astype(np.int64, copy=False)
    return np.take_along_axis(x, chosen, axis), chosen


@op("Unique")
def unique(x: Array, *, axis: int | None = None, sorted: int = 1) -> tuple[Array, Array, Array, Array]:
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = normalize_axis(axis, x.ndim)
    values, first, inverse, counts = np.unique(
        x, axis=axis if x.ndim > 1 else None, return_index=True, return_inverse=True, return_counts=True
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first, kind="stable")
        rank = np.argsort(order, kind="stable")
        values, first, counts = values.take(order, axis), first[order], counts[order]
        inverse = rank[inverse]
    return values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)
