"""Values that the translations to Scan prepare before and after their loop."""

from __future__ import annotations

import math

import numpy as np

from webrnn.ir import DType, GraphBuilder, Value

_MOST_CONSTANT_ZEROS = 2**20


def zeros(b: GraphBuilder, x: Value, batch_axis: int, sizes: tuple[int, ...], dtype: DType | None, name: str) -> Value:
    """Zeros of [batch, *sizes], where the batch is an axis of `x`; without a dtype they are of that of `x`."""
    batch = x.shape[batch_axis] if x.shape is not None else None
    if isinstance(batch, int) and dtype is not None and batch * math.prod(sizes) < _MOST_CONSTANT_ZEROS:
        return b.constant(np.zeros((batch, *sizes), dtype.array_type), name)
    shape = b.op("Concat", b.op("Shape", x, start=batch_axis, end=batch_axis + 1), b.ints(*sizes), axis=0)
    zero = np.zeros(1, dtype.array_type if dtype else np.float32)
    filled = b.op("ConstantOfShape", shape, value=zero, name=name)
    return filled if dtype is not None else b.op("CastLike", filled, x)


def widened(b: GraphBuilder, value: Value) -> Value:
    """A float16 as float32, the precision in which half floats are added up; float32 as it is."""
    return b.op("Cast", value, to=int(DType.FLOAT)) if value.dtype is DType.FLOAT16 else value


def narrowed(b: GraphBuilder, value: Value, dtype: DType, output: Value) -> None:
    """Make `output` of a float32 value."""
    if dtype is DType.FLOAT:
        b.op("Identity", value, output=output)
    else:
        b.op("Cast", value, to=int(dtype), output=output)


def are_floats(*values: Value | None) -> bool:
    """Whether all that are there are known to be float32 or float16 tensors."""
    return all(
        value is None or (value.dtype in (DType.FLOAT, DType.FLOAT16) and not value.container) for value in values
    )
