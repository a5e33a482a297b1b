"""Ops that make a tensor from a shape, a range or an attribute."""

from __future__ import annotations

import math

import numpy as np

from webrnn.errors import ModelError, ShapeError

from .arrays import Array, int_list, normalize_axis, single, widen
from .dtypes import FLOAT, computing_dtype
from .registry import op
from .sizes import check_size


@op("Constant")
def constant(
    *,
    value: Array | None = None,
    value_float: float | None = None,
    value_floats: list[float] | None = None,
    value_int: int | None = None,
    value_ints: list[int] | None = None,
    value_string: str | None = None,
    value_strings: list[str] | None = None,
) -> Array:
    given = [
        np.asarray(item, dtype)
        for item, dtype in (
            (value_float, np.float32),
            (value_floats, np.float32),
            (value_int, np.int64),
            (value_ints, np.int64),
            (value_string, object),
            (value_strings, object),
        )
        if item is not None
    ]
    if value is not None:
        if not isinstance(value, np.ndarray):
            raise ModelError("it is not a tensor", attribute="value")
        given.append(value)
    if len(given) != 1:
        raise ModelError(f"it needs exactly one value attribute, it has {len(given)}")
    return given[0]


@op("ConstantOfShape")
def constant_of_shape(shape: Array, *, value: Array | None = None) -> Array:
    fill = np.zeros(1, np.float32) if value is None else value
    if fill.size != 1:
        raise ShapeError(f"it must hold one value, its shape is {list(fill.shape)}", attribute="value")
    return np.full(check_size(int_list(shape, "input"), fill.dtype), fill.reshape(()), fill.dtype)


@op("Shape", any_type=True)
def shape(x: Array, *, start: int = 0, end: int | None = None) -> Array:
    return np.array(x.shape[slice(start, end)], np.int64)


@op("Size", any_type=True)
def size(x: Array) -> Array:
    return np.array(x.size, np.int64)


@op("Range")
def range_(start: Array, limit: Array, delta: Array, *, stash_type: int = FLOAT) -> Array:
    first, last, step = (single(widen(x), name) for x, name in ((start, "start"), (limit, "limit"), (delta, "delta")))
    if step == 0:
        raise ShapeError("delta is 0")
    if not all(map(math.isfinite, (first, last, step))):
        raise ShapeError(f"start, limit and delta must be finite, they are {first}, {last} and {step}")
    if start.dtype.kind == "f":
        count = max(0, math.ceil((last - first) / step))
    else:
        count = max(0, -((first - last) // step))
    check_size((count,), start.dtype)
    steps = np.arange(count, dtype=np.int64)
    if start.dtype == np.float16:
        accumulator = computing_dtype(stash_type, "stash_type").type
        return (accumulator(first) + steps.astype(accumulator) * accumulator(step)).astype(start.dtype)
    return start.reshape(()) + steps.astype(start.dtype) * delta.reshape(())


@op("EyeLike")
def eye_like(x: Array, *, dtype: int | None = None, k: int = 0) -> Array:
    target = x.dtype if dtype is None else computing_dtype(dtype, "dtype")
    check_size(x.shape, target)
    columns = np.arange(x.shape[1]) - k
    return (np.arange(x.shape[0])[:, None] == columns).astype(target)


@op("OneHot")
def one_hot(indices: Array, depth: Array, values: Array, *, axis: int = -1) -> Array:
    if values.shape != (2,):
        raise ShapeError(f"values must be [off, on], its shape is {list(values.shape)}")
    classes = int(single(depth, "depth"))
    if classes < 1:
        raise ShapeError(f"depth is {classes}")
    axis = normalize_axis(axis, indices.ndim + 1)
    check_size((*indices.shape, classes), values.dtype)
    check_size((classes,), np.int64)
    wanted = np.expand_dims(indices.astype(np.int64), axis)
    within = (wanted >= -classes) & (wanted < classes)
    choice = np.arange(classes).reshape([-1 if i == axis else 1 for i in range(indices.ndim + 1)])
    return np.where((choice == wanted % classes) & within, values[1], values[0]).astype(values.dtype, copy=False)
