"""A bound on the size of one result, so that a bad model raises instead of exhausting the memory.

Ops whose output can be much larger than their inputs (Expand, Tile, Range, Pad ...) ask `check_size` first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from webrnn.errors import ShapeError

from .arrays import broadcast_shape

if TYPE_CHECKING:  # slow to import inside Pyodide
    import numpy.typing as npt

_max_bytes = 1 << 31


def set_max_bytes(limit: int) -> int:
    """Set the largest size of one tensor in bytes; returns the limit that was in force."""
    global _max_bytes
    previous, _max_bytes = _max_bytes, limit
    return previous


def max_bytes() -> int:
    return _max_bytes


def check_broadcast(arrays: Sequence[Any]) -> None:
    """ShapeError if operands are broadcast to more than the limit."""
    shapes = [array.shape for array in arrays if isinstance(array, np.ndarray)]
    if math.prod(map(math.prod, shapes)) * 16 > _max_bytes:
        check_size(broadcast_shape(*shapes), arrays[-1].dtype)


def check_steps(before: Sequence[int], after: Sequence[int], axes: Iterable[int]) -> None:
    """ShapeError if a tensor whose axes change one after the other, in this order, is too large in between. An axis
    alone is bounded, too: there is a list of its places, be the tensor empty or not."""
    shape = list(before)
    for axis in axes:
        shape[axis] = after[axis]
        check_size(shape, np.float64)
        check_size((after[axis],), np.float64)


def check_size(shape: Iterable[int], dtype: npt.DTypeLike) -> tuple[int, ...]:
    """The shape as a tuple, or ShapeError if it has a negative dimension or needs too many bytes."""
    dims = tuple(int(dim) for dim in shape)
    size = np.dtype(dtype).itemsize
    for dim in dims:
        if dim < 0:
            raise ShapeError(f"the output would have the shape {list(dims)}, with a negative dimension")
        size *= dim
    if size > _max_bytes:
        raise ShapeError(f"the output of shape {list(dims)} would need {size} bytes; the limit is {_max_bytes}")
    if len(dims) > 64:
        raise ShapeError(f"the output would have {len(dims)} dimensions; numpy has at most 64")
    return dims
