"""Activations. Where a function has a corner, the slope is that of the side which the op itself takes there."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webrnn.ir import Value

from ..registry import Pull, rule

Found = Sequence[Value | None]


def _positive(g: Pull, x: Value) -> Value:
    return g.b.op("Greater", x, g.b.number(0.0, x))


def _negative(g: Pull, x: Value) -> Value:
    return g.b.op("Less", x, g.b.number(0.0, x))


def _plus_number(g: Pull, value: Value, number: float) -> Value:
    return g.b.op("Add", value, g.b.number(number, value))


def _one_minus(g: Pull, value: Value) -> Value:
    return g.b.op("Sub", g.b.number(1.0, value), value)


@rule("Relu")
def relu(g: Pull) -> Found:
    return [g.b.where(_positive(g, g.x(0)), g.d, None)]


@rule("LeakyRelu")
def leaky_relu(g: Pull) -> Found:
    return [g.b.op("Where", _negative(g, g.x(0)), g.b.times(g.d, g.number("alpha", 0.01)), g.d)]


@rule("PRelu")
def prelu(g: Pull) -> Found:
    x, slope = g.x(0), g.x(1)
    is_negative = _negative(g, x)
    found: list[Value | None] = [None, None]
    if g.wants(0):
        found[0] = g.b.op("Where", is_negative, g.b.op("Mul", g.d, slope), g.d)
    if g.wants(1):
        found[1] = g.b.summed_to(g.b.where(is_negative, g.b.op("Mul", g.d, x), None), slope)
    return found


@rule("ThresholdedRelu")
def thresholded_relu(g: Pull) -> Found:
    x = g.x(0)
    return [g.b.where(g.b.op("Greater", x, g.b.number(g.number("alpha", 1.0), x)), g.d, None)]


@rule("Elu")
def elu(g: Pull) -> Found:
    slope = _plus_number(g, g.y(), g.number("alpha", 1.0))
    return [g.b.op("Where", _negative(g, g.x(0)), g.b.op("Mul", g.d, slope), g.d)]


@rule("Celu")
def celu(g: Pull) -> Found:
    slope = _plus_number(g, g.b.times(g.y(), 1 / g.number("alpha", 1.0)), 1.0)
    return [g.b.op("Where", _negative(g, g.x(0)), g.b.op("Mul", g.d, slope), g.d)]


@rule("Selu")
def selu(g: Pull) -> Found:
    gamma, alpha = g.number("gamma", 1.0507010221481323), g.number("alpha", 1.6732631921768188)
    slope = _plus_number(g, g.y(), gamma * alpha)
    return [g.b.op("Where", _positive(g, g.x(0)), g.b.times(g.d, gamma), g.b.op("Mul", g.d, slope))]


@rule("Sigmoid")
def sigmoid(g: Pull) -> Found:
    return [g.b.op("Mul", g.d, g.b.op("Mul", g.y(), _one_minus(g, g.y())))]


@rule("HardSigmoid")
def hard_sigmoid(g: Pull) -> Found:
    y = g.y()
    inside = g.b.op("And", _positive(g, y), g.b.op("Less", y, g.b.number(1.0, y)))
    return [g.b.where(inside, g.b.times(g.d, g.number("alpha", 0.2)), None)]


@rule("HardSwish")
def hard_swish(g: Pull) -> Found:
    x = g.x(0)
    between = _plus_number(g, g.b.times(x, 1 / 3), 0.5)
    right = g.b.op("Where", g.b.op("Less", x, g.b.number(3.0, x)), g.b.op("Mul", g.d, between), g.d)
    return [g.b.where(g.b.op("Greater", x, g.b.number(-3.0, x)), right, None)]


def _swish_slope(g: Pull, x: Value, alpha: float) -> Value:
    scaled = g.b.times(x, alpha)
    gate = g.b.op("Sigmoid", scaled)
    return g.b.op("Mul", gate, _plus_number(g, g.b.op("Mul", scaled, _one_minus(g, gate)), 1.0))


@rule("Swish")
def swish(g: Pull) -> Found:
    return [g.b.op("Mul", g.d, _swish_slope(g, g.x(0), g.number("alpha", 1.0)))]


@rule("SwiGLU")
def swiglu(g: Pull) -> Found:
    gate, value, alpha = g.x(0), g.x(1), g.number("alpha", 1.0)
    swished = g.b.op("Mul", gate, g.b.op("Sigmoid", g.b.times(gate, alpha)))
    inner = g.b.op("Mul", g.b.op("Mul", g.d, value), _swish_slope(g, gate, alpha))
    return [g.b.summed_to(inner, gate), g.b.summed_to(g.b.op("Mul", g.d, swished), value)]


@rule("Tanh")
def tanh(g: Pull) -> Found:
    return [g.b.op("Mul", g.d, _one_minus(g, g.b.op("Mul", g.y(), g.y())))]


@rule("Softplus")
def softplus(g: Pull) -> Found:
    return [g.b.op("Mul", g.d, g.b.op("Sigmoid", g.x(0)))]


@rule("Softsign")
def softsign(g: Pull) -> Found:
    below = _plus_number(g, g.b.op("Abs", g.x(0)), 1.0)
    return [g.b.op("Div", g.d, g.b.op("Mul", below, below))]


@rule("Mish")
def mish(g: Pull) -> Found:
    x = g.x(0)
    return g.through(lambda: g.b.op("Mul", x, g.b.op("Tanh", g.b.op("Softplus", x))))


@rule("Erf")
def erf(g: Pull) -> Found:
    bell = g.b.op("Exp", g.b.op("Neg", g.b.op("Mul", g.x(0), g.x(0))))
    return [g.b.op("Mul", g.d, g.b.times(bell, 2 / math.sqrt(math.pi)))]


@rule("Gelu")
def gelu(g: Pull) -> Found:
    x = g.x(0)

    def forward() -> Value:
        if g.attr("approximate", "none") == "tanh":
            cube = g.b.op("Mul", g.b.op("Mul", x, x), x)
            inner = g.b.op("Tanh", g.b.times(g.b.op("Add", x, g.b.times(cube, 0.044715)), math.sqrt(2 / math.pi)))
        else:
            inner = g.b.op("Erf", g.b.times(x, 1 / math.sqrt(2)))
        return g.b.op("Mul", g.b.times(x, 0.5), _plus_number(g, inner, 1.0))

    return g.through(forward)


@rule("Shrink")
def shrink(g: Pull) -> Found:
    x = g.x(0)
    return [g.b.where(g.b.op("Greater", g.b.op("Abs", x), g.b.number(g.number("lambd", 0.5), x)), g.d, None)]


@rule("Hardmax")
def hardmax(g: Pull) -> Found:
    """It is constant nearly everywhere."""
    return []


@rule("Softmax")
def softmax(g: Pull) -> Found:
    """Of a row that is all masked it is NaN. A model that has other numbers there takes nothing back through it."""
    y, axes = g.y(), g.b.ints(int(g.number("axis", -1)))
    if _is_replaced(g, y):
        y = g.b.where(g.b.op("IsNaN", y), None, y)
    total = g.b.op("ReduceSum", g.b.op("Mul", g.d, y), axes, keepdims=1)
    return [g.b.op("Mul", y, g.b.op("Sub", g.d, total))]


def _is_replaced(g: Pull, y: Value) -> bool:
    """Whether a Where chooses between y and something else."""
    same = {y, *(node.outputs[0] for node in g.b.graph.nodes if node.op == "Cast" and node.inputs[0] is y)}
    return any(node.op == "Where" and not same.isdisjoint(node.inputs[1:]) for node in g.b.graph.nodes)


@rule("LogSoftmax")
def log_softmax(g: Pull) -> Found:
    total = g.b.op("ReduceSum", g.d, g.b.ints(int(g.number("axis", -1))), keepdims=1)
    return [g.b.op("Sub", g.d, g.b.op("Mul", g.b.op("Exp", g.y()), total))]
