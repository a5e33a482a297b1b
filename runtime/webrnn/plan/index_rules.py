"""operand_rules.py for what reads, writes and puts in order by index."""

from __future__ import annotations

from .bound import BoundTensor, Maybe, is_dense, is_vector
from .instructions import CUMULATIONS, SCATTERS
from .opcodes import DTYPES


def nonzero(x: BoundTensor, y: Maybe, count: Maybe) -> bool:
    return (
        x.is_contiguous
        and (y is not None or count is not None)
        and (count is None or count.count == 1)
        and (y is None or (is_dense(y, 2) and y.shape[0] == x.rank))
    )


SUMMED = ("f32", "i64", "i32", "f64")
"""The element types that scatter and cumulate calculate with."""
ORDERED = DTYPES[: DTYPES.index("u64") + 1]
"""The element types that have an order: not those that numpy lacks."""


def flat_index(index: BoundTensor, y: BoundTensor, *sizes: int) -> bool:
    return (
        index.rank == y.rank + 1
        and y.is_contiguous
        and index.shape[:-1] == y.shape
        and len(sizes) == y.rank + 2 * index.shape[-1]
    )


def scatter(index: BoundTensor, updates: BoundTensor, y: BoundTensor, kind: int) -> bool:
    return (
        is_dense(updates, 2)
        and is_dense(y, 2)
        and updates.dtype == y.dtype
        and updates.shape[1] == y.shape[1]
        and is_vector(index, updates.shape[0])
        and 0 <= kind < len(SCATTERS)
        and (SCATTERS[kind] == "none" or y.dtype in SUMMED)
    )


def cumulate(x: BoundTensor, y: BoundTensor, kind: int, exclusive: int) -> bool:
    return (
        x.rank == 3 and (x.dtype, x.shape) == (y.dtype, y.shape) and x.dtype in SUMMED and 0 <= kind < len(CUMULATIONS)
    )


def top(x: BoundTensor, values: Maybe, indices: BoundTensor, smallest: int, last: int, nan_first: int) -> bool:
    return (
        is_dense(x, 3)
        and is_dense(indices, 3)
        and (x.shape[0], x.shape[2]) == (indices.shape[0], indices.shape[2])
        and indices.shape[1] <= x.shape[1]
        and x.dtype in ORDERED
        and (values is None or (is_dense(values, 3) and (values.dtype, values.shape) == (x.dtype, indices.shape)))
    )


def nms(
    corners: BoundTensor, scores: BoundTensor, order: BoundTensor, limit: BoundTensor, overlap: BoundTensor,
    least: BoundTensor, selected: BoundTensor, count: BoundTensor,
) -> bool:  # fmt: skip
    return (
        all(is_dense(each, 3) for each in (corners, scores, order))
        and scores.shape == order.shape
        and corners.shape == (scores.shape[0], scores.shape[2], 4)
        and is_dense(selected, 2)
        and selected.shape[1] == 3
        and all(each.count == 1 for each in (limit, overlap, least, count))
    )


def unique(
    x: BoundTensor, order: BoundTensor, first: BoundTensor, inverse: BoundTensor, counts: BoundTensor,
    count: BoundTensor, is_sorted: int,
) -> bool:  # fmt: skip
    return (
        is_dense(x, 2)
        and x.dtype in ORDERED
        and is_dense(order, 2)
        and order.shape == (2, x.shape[0])
        and all(is_vector(each, x.shape[0]) for each in (first, inverse, counts))
        and count.count == 1
    )
