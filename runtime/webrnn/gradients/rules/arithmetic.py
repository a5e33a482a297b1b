"""Arithmetic, element by element, with operands that are repeated along axes. Of several operands or elements that
are the largest (or smallest) together, each takes an equal part of the cotangent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from webrnn.ir import Value

from ..emitter import FLOATS
from ..registry import Pull, rule

Found = Sequence[Value | None]


def _both(g: Pull, first: Callable[[], Value], second: Callable[[], Value]) -> Found:
    """The cotangents of two operands, as far as they are asked for."""
    return [g.b.summed_to(made(), g.x(index)) if g.wants(index) else None for index, made in enumerate((first, second))]


@rule("Add")
def add(g: Pull) -> Found:
    return _both(g, lambda: g.d, lambda: g.d)


@rule("Sub")
def sub(g: Pull) -> Found:
    return _both(g, lambda: g.d, lambda: g.b.op("Neg", g.d))


@rule("Mul")
def mul(g: Pull) -> Found:
    return _both(g, lambda: g.b.op("Mul", g.d, g.x(1)), lambda: g.b.op("Mul", g.d, g.x(0)))


@rule("Div")
def div(g: Pull) -> Found:
    part = g.b.op("Div", g.d, g.x(1))
    return _both(g, lambda: part, lambda: g.b.op("Neg", g.b.op("Mul", part, g.y())))


@rule("Mod")
def mod(g: Pull) -> Found:
    def of_divisor() -> Value:
        quotient = g.b.op("Round", g.b.op("Div", g.b.op("Sub", g.x(0), g.y()), g.x(1)))
        return g.b.op("Neg", g.b.op("Mul", g.d, quotient))

    return _both(g, lambda: g.d, of_divisor)


@rule("Pow")
def power(g: Pull) -> Found:
    """At 0 the power with respect to its exponent has no slope; it is taken as 0."""
    x, exponent = g.x(0), g.x(1)
    found: list[Value | None] = [None, None]
    if g.wants(0):
        wide = exponent if g.b.dtype(exponent) is g.b.dtype(x) else g.b.op("CastLike", exponent, x)
        zero, one = g.b.number(0.0, x), g.b.number(1.0, x)
        less = g.b.op("Where", g.b.op("Equal", wide, zero), one, g.b.op("Sub", wide, one))
        made = g.b.op("Mul", g.d, g.b.op("Mul", wide, g.b.op("Pow", x, less)))
        found[0] = g.b.summed_to(made, x)
    if g.wants(1):
        is_positive = g.b.op("Greater", x, g.b.number(0.0, x))
        safe = g.b.op("Where", is_positive, x, g.b.number(1.0, x))
        made = g.b.where(is_positive, g.b.op("Mul", g.d, g.b.op("Mul", g.y(), g.b.op("Log", safe))), None)
        if g.b.dtype(exponent) is not g.b.dtype(x):
            made = g.b.op("CastLike", made, exponent)
        found[1] = g.b.summed_to(made, exponent)
    return found


@rule("Neg")
def neg(g: Pull) -> Found:
    return [g.b.op("Neg", g.d)]


@rule("Abs")
def absolute(g: Pull) -> Found:
    return [g.b.op("Mul", g.d, g.b.op("Sign", g.x(0)))]


@rule("Sign", "Floor", "Ceil", "Round")
def flat(g: Pull) -> Found:
    """They are constant nearly everywhere."""
    return []


@rule("Reciprocal")
def reciprocal(g: Pull) -> Found:
    return [g.b.op("Neg", g.b.op("Mul", g.d, g.b.op("Mul", g.y(), g.y())))]


@rule("Exp")
def exponential(g: Pull) -> Found:
    return [g.b.op("Mul", g.d, g.y())]


@rule("Log")
def logarithm(g: Pull) -> Found:
    return [g.b.op("Div", g.d, g.x(0))]


@rule("Sqrt")
def square_root(g: Pull) -> Found:
    return [g.b.op("Div", g.b.times(g.d, 0.5), g.y())]


@rule("Max", "Min")
def extreme(g: Pull) -> Found:
    operands, y = [g.x(index) for index in range(len(g.node.inputs))], g.y()
    if len(operands) == 1:
        return [g.d]
    ties = [g.b.op("CastLike", g.b.op("Equal", value, y), y) for value in operands]
    count = ties[0]
    for tie in ties[1:]:
        count = g.b.op("Add", count, tie)
    part = g.b.op("Div", g.d, count)
    return [
        g.b.summed_to(g.b.op("Mul", part, tie), value) if g.wants(index) else None
        for index, (value, tie) in enumerate(zip(operands, ties, strict=True))
    ]


@rule("Sum", "Mean")
def total(g: Pull) -> Found:
    count = len(g.node.inputs)
    d = g.b.times(g.d, 1 / count) if g.node.op == "Mean" else g.d
    return [g.b.summed_to(d, g.x(index)) if g.wants(index) else None for index in range(count)]


@rule("Clip")
def clip(g: Pull) -> Found:
    """What lies on a bound counts as inside. Where the bounds have changed places, the upper one holds."""
    x, low, high = g.x(0), g.operand(1), g.operand(2)
    found: list[Value | None] = [None, None, None]
    d = g.d
    if high is not None:
        above = g.b.op("Greater", x, high)
        if low is not None:
            above = g.b.op("Or", above, g.b.op("Greater", low, high))
        if g.wants(2):
            found[2] = g.b.summed_to(g.b.where(above, d, None), high)
        d = g.b.where(above, None, d)
    if low is not None:
        below = g.b.op("Less", x, low)
        if g.wants(1):
            found[1] = g.b.summed_to(g.b.where(below, d, None), low)
        d = g.b.where(below, None, d)
    found[0] = d
    return found


@rule("Where")
def where(g: Pull) -> Found:
    condition = g.x(0)
    return [
        None,
        g.b.summed_to(g.b.where(condition, g.d, None), g.x(1)) if g.wants(1) else None,
        g.b.summed_to(g.b.where(condition, None, g.d), g.x(2)) if g.wants(2) else None,
    ]


@rule("Cast", "CastLike")
def cast(g: Pull) -> Found:
    x = g.x(0)
    if g.b.dtype(g.d) is g.b.dtype(x):
        return [g.d]
    return [g.b.op("Cast", g.d, to=int(g.b.dtype(x)))] if g.b.dtype(x) in FLOATS else []


def _divided(g: Pull, below: Value) -> Found:
    return [g.b.op("Div", g.d, below)]


def _square(g: Pull, value: Value, sign: str, number: float) -> Value:
    return g.b.op(sign, g.b.op("Mul", value, value), g.b.number(number, value))


@rule("Sin")
def sine(g: Pull) -> Found:
    return [g.b.op("Mul", g.d, g.b.op("Cos", g.x(0)))]


@rule("Cos")
def cosine(g: Pull) -> Found:
    return [g.b.op("Neg", g.b.op("Mul", g.d, g.b.op("Sin", g.x(0))))]


@rule("Tan")
def tangent(g: Pull) -> Found:
    return [g.b.op("Mul", g.d, _square(g, g.y(), "Add", 1.0))]


@rule("Asin", "Acos")
def arc(g: Pull) -> Found:
    x = g.x(0)
    root = g.b.op("Sqrt", g.b.op("Sub", g.b.number(1.0, x), g.b.op("Mul", x, x)))
    return _divided(g, root if g.node.op == "Asin" else g.b.op("Neg", root))


@rule("Atan")
def arc_tangent(g: Pull) -> Found:
    return _divided(g, _square(g, g.x(0), "Add", 1.0))


@rule("Sinh")
def hyperbolic_sine(g: Pull) -> Found:
    return [g.b.op("Mul", g.d, g.b.op("Cosh", g.x(0)))]


@rule("Cosh")
def hyperbolic_cosine(g: Pull) -> Found:
    return [g.b.op("Mul", g.d, g.b.op("Sinh", g.x(0)))]


@rule("Asinh", "Acosh")
def area(g: Pull) -> Found:
    sign = "Add" if g.node.op == "Asinh" else "Sub"
    return _divided(g, g.b.op("Sqrt", _square(g, g.x(0), sign, 1.0)))


@rule("Atanh")
def area_tangent(g: Pull) -> Found:
    x = g.x(0)
    return _divided(g, g.b.op("Sub", g.b.number(1.0, x), g.b.op("Mul", x, x)))
