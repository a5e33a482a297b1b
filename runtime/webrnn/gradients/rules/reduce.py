"""Reductions. Elements that are the largest (or smallest) together take equal parts of the cotangent."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from webrnn.ir import Value

from ..registry import Pull, rule

Found = Sequence[Value | None]


def _axes(g: Pull) -> list[int]:
    rank = g.b.rank(g.x(0))
    axes = g.ints(1, "axes") if g.operand(1) is not None else []
    if not axes and g.attr("noop_with_empty_axes", 0):
        return []
    return sorted({axis % rank for axis in axes}) if axes else list(range(rank))


def _kept(g: Pull, value: Value) -> Value:
    """A result with the axes that were taken away, of one element each."""
    axes = _axes(g)
    return g.b.op("Unsqueeze", value, g.b.ints(*axes)) if axes and not g.attr("keepdims", 1) else value


@rule("ReduceSum")
def total(g: Pull) -> Found:
    return [g.b.op("Expand", _kept(g, g.d), g.b.shape_of(g.x(0)))]


@rule("ReduceMean")
def mean(g: Pull) -> Found:
    b, x = g.b, g.x(0)
    sizes = [b.shape(x)[axis] for axis in _axes(g)]
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes):
        d = b.times(g.d, 1 / max(prod(known), 1))
    else:
        count = b.as_value(1)
        for axis in _axes(g):
            count = b.op("Mul", count, b.as_value(b.size(x, axis)))
        d = b.op("Div", g.d, b.op("Cast", b.op("Squeeze", count, b.ints(0)), to=int(b.dtype(x))))
    return [b.op("Expand", _kept(g, d), b.shape_of(x))]


@rule("ReduceMax", "ReduceMin")
def extreme(g: Pull) -> Found:
    b, x = g.b, g.x(0)
    ties = b.op("CastLike", b.op("Equal", x, _kept(g, g.y())), x)
    axes = _axes(g)
    count = b.op("ReduceSum", ties, b.ints(*axes), keepdims=1) if axes else ties
    return [b.op("Mul", ties, b.op("Div", _kept(g, g.d), count))]


@rule("ReduceL1")
def absolute(g: Pull) -> Found:
    return [g.b.op("Mul", _kept(g, g.d), g.b.op("Sign", g.x(0)))]


@rule("ReduceL2")
def root(g: Pull) -> Found:
    """Of zeros the slope is taken as 0."""
    y = _kept(g, g.y())
    is_zero = g.b.op("Equal", y, g.b.number(0.0, y))
    factor = g.b.where(is_zero, None, g.b.op("Div", _kept(g, g.d), g.b.op("Where", is_zero, g.b.number(1.0, y), y)))
    return [g.b.op("Mul", g.x(0), factor)]


@rule("ReduceSumSquare")
def squares(g: Pull) -> Found:
    return [g.b.op("Mul", g.x(0), g.b.times(_kept(g, g.d), 2.0))]


@rule("ReduceLogSum")
def log_sum(g: Pull) -> Found:
    part = g.b.op("Div", _kept(g, g.d), g.b.op("Exp", _kept(g, g.y())))
    return [g.b.op("Expand", part, g.b.shape_of(g.x(0)))]


@rule("ReduceLogSumExp")
def log_sum_exp(g: Pull) -> Found:
    part = g.b.op("Exp", g.b.op("Sub", g.x(0), _kept(g, g.y())))
    return [g.b.op("Mul", _kept(g, g.d), part)]


@rule("ReduceProd")
def product(g: Pull) -> Found:
    """The product of all others: where one is 0, it alone has a slope; where two are, none has."""
    b, x, axes = g.b, g.x(0), g.b.ints(*_axes(g))
    if not _axes(g):
        return [g.d]
    zero, one = b.number(0.0, x), b.number(1.0, x)
    is_zero = b.op("Equal", x, zero)
    safe = b.op("Where", is_zero, one, x)
    others = b.op("ReduceProd", safe, axes, keepdims=1)
    zeros = b.op("ReduceSum", b.op("CastLike", is_zero, x), axes, keepdims=1)
    at_zero = b.where(b.op("Equal", zeros, one), others, None)
    elsewhere = b.where(b.op("Equal", zeros, zero), b.op("Div", others, safe), None)
    return [b.op("Mul", _kept(g, g.d), b.op("Where", is_zero, at_zero, elsewhere))]


@rule("CumSum")
def running_total(g: Pull) -> Found:
    reverse = 1 - int(g.number("reverse", 0))
    return [g.b.op("CumSum", g.d, g.x(1), exclusive=g.attr("exclusive", 0), reverse=reverse)]


@rule("CumProd")
def running_product(g: Pull) -> Found:
    """As the products of rows of a triangle, because a quotient by 0 would say nothing."""
    b, x, rank = g.b, g.x(0), g.b.rank(g.x(0))
    axis = g.ints(1, "axes")[0] % rank
    to_end = [*(other for other in range(rank) if other != axis), axis]

    def forward() -> Value:
        length = b.op("Squeeze", b.as_value(b.size(x, axis)), b.ints(0))
        places = b.op("Range", b.constant(np.int64(0)), length, b.constant(np.int64(1)))
        pair = [b.op("Unsqueeze", places, b.ints(1)), places]
        row, column = pair[::-1] if g.attr("reverse", 0) else pair
        is_factor = b.op("Greater" if g.attr("exclusive", 0) else "GreaterOrEqual", row, column)
        last = b.op("Unsqueeze", b.transposed(x, to_end), b.ints(-2))
        factors = b.op("Where", is_factor, last, b.number(1.0, x))
        made = b.op("ReduceProd", factors, b.ints(-1), keepdims=0)
        return b.transposed(made, [to_end.index(other) for other in range(rank)])

    return g.through(forward)


@rule("TopK")
def largest(g: Pull) -> Found:
    b, x, places = g.b, g.x(0), g.node.outputs[1] if len(g.node.outputs) > 1 else None
    if places is None:
        places = b.value("places")
        g.node.outputs = [g.node.outputs[0], places]
        b.settle(g.node)
    axis = int(g.number("axis", -1))
    return [b.op("ScatterElements", b.zeros_like(x), places, g.d, axis=axis, reduction="add")]
