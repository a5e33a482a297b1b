"""Ops that take and put elements by their places. Elements that are taken twice are summed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from webrnn.ir import Value

from ..emitter import Size
from ..registry import Pull, rule

Found = Sequence[Value | None]


@rule("Gather")
def gather(g: Pull) -> Found:
    b, x, places = g.b, g.x(0), g.x(1)
    rank, count = b.rank(x), b.rank(places)
    axis = int(g.number("axis", 0)) % rank
    known, size = b.ints_of(places), b.size(x, axis)
    if known is not None and count == 0 and (known[0] >= 0 or isinstance(size, int)):
        place = known[0] % size if isinstance(size, int) else known[0]
        one = b.op("Unsqueeze", g.d, b.ints(axis))
        return [b.padded(one, axis, place, b.arithmetic("Sub", b.arithmetic("Sub", size, 1), place))]
    to_front = [*range(axis, axis + count), *range(axis), *range(axis + count, rank - 1 + count)]
    d = b.transposed(g.d, to_front)
    order = [axis, *(other for other in range(rank) if other != axis)]
    zeros = b.op("Expand", b.number(0.0, x), b.sizes(b.size(x, other) for other in order))
    index = b.op("Unsqueeze", _int64(g, places), b.ints(-1) if count else b.ints(0))
    made = b.op("ScatterND", zeros, index, d, reduction="add")
    return [b.transposed(made, [order.index(other) for other in range(rank)])]


def _int64(g: Pull, places: Value) -> Value:
    like = g.b.ints(0)
    return places if g.b.dtype(places) is g.b.dtype(like) else g.b.op("CastLike", places, like)


@rule("GatherElements")
def gather_elements(g: Pull) -> Found:
    axis = int(g.number("axis", 0))
    return [g.b.op("ScatterElements", g.b.zeros_like(g.x(0)), g.x(1), g.d, axis=axis, reduction="add")]


@rule("GatherND")
def gather_nd(g: Pull) -> Found:
    b, x, places = g.b, g.x(0), g.x(1)
    for axis in reversed(range(int(g.number("batch_dims", 0)))):  # the number of a batch becomes part of a place
        sizes = [b.size(places, other) for other in range(b.rank(places) - 1)]
        number = _counted(g, sizes[axis], [1] * axis + [-1] + [1] * (len(sizes) - axis))
        places = b.op("Concat", b.op("Expand", number, b.sizes([*sizes, 1])), _int64(g, places), axis=-1)
    return [b.op("ScatterND", b.zeros_like(x), places, g.d, reduction="add")]


def _counted(g: Pull, size: Size, shape: list[int]) -> Value:
    """0, 1, 2, ... in a shape."""
    b = g.b
    zero, one = b.constant(np.int64(0)), b.constant(np.int64(1))
    numbers = b.op("Range", zero, b.op("Squeeze", b.as_value(size), b.ints(0)), one)
    return b.op("Reshape", numbers, b.ints(*shape))


def _scatter(g: Pull, read: str, **attrs: Any) -> Found:
    """If it replaces elements, those that are replaced have no cotangent. A place that is written twice keeps one of
    the updates, which the op does not say; each of them takes the cotangent then."""
    b, places, updates = g.b, g.x(1), g.x(2)
    reduction = g.attr("reduction", "none")
    if reduction not in ("none", "add"):
        raise g.refusal(f"it combines elements by {reduction}", "reduction")
    found: list[Value | None] = [None, None, None]
    if g.wants(0):
        found[0] = g.d if reduction == "add" else b.op(g.node.op, g.d, places, b.zeros_like(updates), **attrs)
    if g.wants(2):
        found[2] = b.op(read, g.d, places, **attrs)
    return found


@rule("ScatterElements")
def scatter_elements(g: Pull) -> Found:
    return _scatter(g, "GatherElements", axis=int(g.number("axis", 0)))


@rule("ScatterND")
def scatter_nd(g: Pull) -> Found:
    return _scatter(g, "GatherND")


@rule("TensorScatter")
def tensor_scatter(g: Pull) -> Found:
    """A ScatterElements to places that begin where each sequence of the batch says."""
    b, past, update, first = g.b, g.x(0), g.x(1), g.operand(2)
    rank = b.rank(past)
    axis = int(g.number("axis", -2)) % rank

    def forward() -> Value:
        places = _counted(g, b.size(update, axis), [-1 if other == axis else 1 for other in range(rank)])
        if first is not None:
            places = b.op("Add", places, b.op("Reshape", first, b.ints(-1, *[1] * (rank - 1))))
        if g.attr("mode", "linear") == "circular":
            places = b.op("Mod", places, b.as_value(b.size(past, axis)))
        return b.op("ScatterElements", past, b.op("Expand", places, b.shape_of(update)), update, axis=axis)

    return g.through(forward)


@rule("OneHot")
def one_hot(g: Pull) -> Found:
    """Of its two values; indices of floating-point numbers have none."""
    b, values = g.b, g.x(2)
    if not g.wants(2):
        return []
    numbers = [b.op("Reshape", b.number(number, values), b.ints(1)) for number in (1.0, 0.0)]
    shares = []
    for marks in (numbers, numbers[::-1]):
        places = b.op("OneHot", g.x(0), g.x(1), b.op("Concat", *marks, axis=0), axis=int(g.number("axis", -1)))
        shares.append(b.op("Reshape", b.op("ReduceSum", b.op("Mul", g.d, places), keepdims=0), b.ints(1)))
    return [None, None, b.op("Concat", *shares, axis=0)]


@rule("EyeLike")
def eye_like(g: Pull) -> Found:
    """It reads the sizes of its operand alone."""
    return []
