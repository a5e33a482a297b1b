"""What all op families share: the array type, axes, small integer inputs, and the precision of half floats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from webrnn.errors import ModelError, ShapeError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Index: TypeAlias = tuple[Any, ...]

FLOOR_OR_CEIL = "floor upwards, ceil downwards"
"""The nearest_mode of a Resize of opsets below 11, which had no name: floor for a scale of 1 or more, else ceil."""


def normalize_axis(axis: int, rank: int, name: str = "axis") -> int:
    """The axis counted from the front.

    >>> normalize_axis(-1, 3)
    2
    """
    if not -rank <= axis < rank:
        raise ShapeError(f"{name} {axis} is outside a tensor of rank {rank}")
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: Iterable[int], rank: int, name: str = "axes") -> tuple[int, ...]:
    """Several axes counted from the front; each may be named once."""
    result = tuple(normalize_axis(int(axis), rank, name) for axis in axes)
    if len(set(result)) != len(result):
        raise ShapeError(f"{name} {list(result)} names an axis twice")
    return result


def int_list(x: Array, name: str) -> list[int]:
    """The values of a one-dimensional integer input (a scalar counts as one value)."""
    if x.dtype.kind not in "iu" or x.ndim > 1:
        raise ShapeError(f"{name} must be a list of integers, not {x.dtype} of shape {list(x.shape)}")
    return [int(value) for value in x.reshape(-1)]


def single(x: Array, name: str) -> Any:
    """The value of an input that holds exactly one element."""
    if x.size != 1:
        raise ShapeError(f"{name} must hold one value, its shape is {list(x.shape)}")
    return x.reshape(-1)[0].item()


def require_rank(x: Array, rank: int, name: str) -> None:
    if x.ndim != rank:
        raise ShapeError(f"{name} must have rank {rank}, its shape is {list(x.shape)}")


def require_rank_at_least(x: Array, rank: int, name: str) -> None:
    if x.ndim < rank:
        raise ShapeError(f"{name} must have rank {rank} or more, its shape is {list(x.shape)}")


def require_shape(x: Array, shape: Sequence[int], name: str) -> None:
    if x.shape != tuple(shape):
        raise ShapeError(f"{name} must have the shape {list(shape)}, it is {list(x.shape)}")


def require_same_type(*tensors: Array) -> None:
    """Of the elements of a sequence, which no rule knows before a run. ONNX never mixes types; numpy would promote."""
    first = tensors[0].dtype
    for other in tensors[1:]:
        if other.dtype != first:
            raise ModelError(f"the inputs have different types, {first} and {other.dtype}")


def whole_numbers(x: Array) -> Array:
    """Rounded positions as integers; what is farther away than a float64 counts ones, and what is no number, are the
    last ones there are.

    >>> whole_numbers(np.array([2.0, -np.inf, np.inf, np.nan])).tolist()
    [2, -4503599627370496, 4503599627370496, -4503599627370496]
    """
    return np.nan_to_num(np.clip(x.astype(np.float64), -(2.0**52), 2.0**52), nan=-(2.0**52)).astype(np.int64)


def widen(x: Array) -> Array:
    """float16 as float32, the precision in which sums and products of half floats are accumulated."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def broadcast_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that tensors of these shapes have together.

    numpy's function raises for sizes beyond an index, which has 32 bits in WebAssembly.

    >>> broadcast_shape([1 << 40], [3, 1])
    (3, 1099511627776)
    """
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            if result[axis] == 1:
                result[axis] = int(size)
            elif size not in (1, result[axis]):
                listed = " and ".join(str(list(shape)) for shape in shapes)
                raise ShapeError(f"the shapes {listed} cannot be broadcast together")
    return tuple(result)


def mean_of(x: Array, axes: tuple[int, ...]) -> Array:
    """The mean along axes, which stay. That of no elements is NaN, and no warning."""
    return x.sum(axis=axes, keepdims=True) / x.dtype.type(math.prod(x.shape[axis] for axis in axes))


def variance_of(x: Array, axes: tuple[int, ...]) -> Array:
    centred = x - mean_of(x, axes)
    return mean_of(centred * centred, axes)


def exact_integers(x: Array) -> Array:
    """Integers held in float64, as int32 (they wrap as an int32 accumulator does)."""
    return x.astype(np.int64).astype(np.int32)
