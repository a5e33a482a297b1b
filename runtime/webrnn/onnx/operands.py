"""Values that the translations to Scan prepare before and after their loop, and checks of their shapes."""

from __future__ import annotations

import math

import numpy as np

from webrnn.errors import ModelError
from webrnn.ir import WEBRNN, Dim, DType, GraphBuilder, Node, Value

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


def expect_shape(
    b: GraphBuilder,
    value: Value,
    sizes: tuple[int | None, ...],
    what: str,
    name: str,
    like: Value | None = None,
    same: tuple[tuple[int, int], ...] = (),
) -> Value:
    """`value`, behind a node of that name that raises if it has another shape; None is any size. `same` are axes of it
    that have to be as long as axes of `like`.

    Where the shape is known there is no need for the node.
    """
    known = value.shape if value.shape is not None else (None,) * len(sizes)
    if len(known) != len(sizes):
        raise ModelError(f"{what} has {len(known)} axes, it needs {len(sizes)}")
    pairs = list(zip(known, sizes, strict=True))
    alike = [(known[axis], _size(like, other)) for axis, other in same]
    if any(isinstance(have, int) and isinstance(need, int) and have != need for have, need in pairs + alike):
        needed = list(sizes)
        for (axis, _), (_, need) in zip(same, alike, strict=True):
            needed[axis] = need if isinstance(need, int) else needed[axis]
        raise ModelError(f"{what} is {spell(known)}, it needs to be {spell(tuple(needed))}")
    fits = value.shape is not None and all(need is None or isinstance(have, int) for have, need in pairs)
    if fits and all(have is not None and have == need for have, need in alike):
        return value
    checked = b.value(value.name, value.dtype, tuple(have if need is None else need for have, need in pairs))
    attrs = {"sizes": sizes, "what": what, "same": same}
    b.add(Node("ExpectShape", [value, like] if like is not None else [value], [checked], attrs, name, WEBRNN))
    return checked


def _size(value: Value | None, axis: int) -> Dim | None:
    return None if value is None or value.shape is None else value.shape[axis]


def spell(sizes: tuple) -> str:
    return "[" + ", ".join("?" if size is None else str(size) for size in sizes) + "]"
