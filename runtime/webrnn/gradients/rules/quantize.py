"""Quantization goes back as if nothing was rounded, where it does not saturate: the straight-through estimator.

The cotangent of a quantized tensor is one of floating-point numbers, with respect to its integers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import Value

from ..registry import Pull, rule

Found = Sequence[Value | None]


def _along(g: Pull, value: Value) -> Value:
    """A scale or a zero point, as it is repeated over the first operand."""
    if g.attr("block_size", 0):
        raise g.refusal("its scales are of blocks", "block_size")
    b, rank = g.b, g.b.rank(g.x(0))
    if b.rank(value) == 0 or b.shape(value) == (1,) or rank == 1:
        return value
    sizes = [1] * rank
    sizes[int(g.number("axis", 1))] = -1
    return b.op("Reshape", value, b.ints(*sizes))


def _of_scale(g: Pull, d: Value) -> Value:
    return g.b.reshaped(g.b.summed_to(d, _along(g, g.x(1))), g.x(1))


def _as_float(g: Pull, value: Value, like: Value) -> Value:
    return g.b.op("Cast", value, to=int(g.b.dtype(like)))


@rule("QuantizeLinear")
def quantize(g: Pull) -> Found:
    b, x = g.b, g.x(0)
    kind = b.dtype(g.y()).array_type
    if kind.kind not in "iu" or b.dtype(g.y()).is_narrow:
        raise g.refusal(f"its result is {b.dtype(g.y()).text}")
    scale = _along(g, g.x(1) if b.dtype(g.x(1)) is b.dtype(x) else _as_float(g, g.x(1), x))
    number = b.op("Round", b.op("Div", x, scale))
    zero = g.operand(2)
    if zero is not None:
        number = b.op("Add", number, _as_float(g, _along(g, zero), x))
    low, high = (b.number(float(bound), x) for bound in (np.iinfo(kind).min, np.iinfo(kind).max))
    inside = b.op("And", b.op("GreaterOrEqual", number, low), b.op("LessOrEqual", number, high))
    d = b.op("Div", b.where(inside, g.d, None), scale)
    of_scale = _of_scale(g, b.op("Neg", b.op("Mul", d, b.op("Div", x, scale)))) if g.wants(1) else None
    return [d, of_scale]


@rule("DequantizeLinear")
def dequantize(g: Pull) -> Found:
    b, x, zero = g.b, g.x(0), g.operand(2)
    found: list[Value | None] = [b.op("Mul", g.d, _along(g, g.x(1))) if g.wants(0) else None, None]
    if g.wants(1):
        number = _as_float(g, x, g.d)
        if zero is not None:
            number = b.op("Sub", number, _as_float(g, _along(g, zero), g.d))
        found[1] = _of_scale(g, b.op("Mul", g.d, number))
    return found
