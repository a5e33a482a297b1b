"""Normalizations."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Value

from ..expansion import expanded
from ..registry import Pull, rule

Found = Sequence[Value | None]


@rule("LRN")
def across_channels(g: Pull) -> Found:
    b, x, size = g.b, g.x(0), int(g.number("size", 1))

    def forward() -> Value:
        around = b.padded(b.op("Mul", x, x), 1, (size - 1) // 2, size // 2)
        channels = b.size(x, 1)
        parts = [b.sliced(around, 1, at, b.arithmetic("Add", channels, at)) for at in range(size)]
        scaled = b.times(b.op("Sum", *parts), g.number("alpha", 1e-4) / size)
        base = b.op("Add", scaled, b.number(g.number("bias", 1.0), x))
        return b.op("Div", x, b.op("Pow", base, b.number(g.number("beta", 0.75), x)))

    return g.through(forward)


def _only_first(g: Pull) -> None:
    if any(given is not None for given in g.given[1:]):
        raise g.refusal("its statistics have a cotangent")


@rule("LayerNormalization")
def layer(g: Pull) -> Found:
    if any(given is not None for given in g.given[1:]):
        return _layer_with_statistics(g)
    b, x, scale, bias = g.b, g.x(0), g.x(1), g.operand(2)
    rank = b.rank(x)
    axes = b.ints(*range(int(g.number("axis", -1)) % rank, rank))
    centred = b.op("Sub", x, b.op("ReduceMean", x, axes, keepdims=1))
    variance = b.op("ReduceMean", b.op("Mul", centred, centred), axes, keepdims=1)
    factor = b.op("Reciprocal", b.op("Sqrt", b.op("Add", variance, b.number(g.number("epsilon", 1e-5), x))))
    normal = b.op("Mul", centred, factor)
    found: list[Value | None] = [None, None, None]
    if g.wants(0):
        d = b.op("Mul", g.d, scale)
        along = b.op("Mul", normal, b.op("ReduceMean", b.op("Mul", d, normal), axes, keepdims=1))
        rest = b.op("Sub", b.op("Sub", d, b.op("ReduceMean", d, axes, keepdims=1)), along)
        found[0] = b.op("Mul", factor, rest)
    if g.wants(1):
        found[1] = b.summed_to(b.op("Mul", g.d, normal), scale)
    if bias is not None and g.wants(2):
        found[2] = b.summed_to(g.d, bias)
    return found


def _layer_with_statistics(g: Pull) -> Found:
    b, x, bias, rank = g.b, g.x(0), g.operand(2), g.b.rank(g.x(0))

    def forward() -> list[Value]:
        axes = b.ints(*range(int(g.number("axis", -1)) % rank, rank))
        mean = b.op("ReduceMean", x, axes, keepdims=1)
        centred = b.op("Sub", x, mean)
        variance = b.op("ReduceMean", b.op("Mul", centred, centred), axes, keepdims=1)
        root = b.op("Sqrt", b.op("Add", variance, b.number(g.number("epsilon", 1e-5), x)))
        factor = b.op("Reciprocal", root)
        made = b.op("Mul", b.op("Mul", centred, factor), g.x(1))
        return [made if bias is None else b.op("Add", made, bias), mean, factor]

    return g.through(forward)


@rule("InstanceNormalization")
def instance(g: Pull) -> Found:
    b, x = g.b, g.x(0)

    def forward() -> Value:
        rank = b.rank(x)
        axes = b.ints(*range(2, rank))
        centred = b.op("Sub", x, b.op("ReduceMean", x, axes, keepdims=1))
        variance = b.op("ReduceMean", b.op("Mul", centred, centred), axes, keepdims=1)
        root = b.op("Sqrt", b.op("Add", variance, b.number(g.number("epsilon", 1e-5), x)))
        return _scaled(g, b.op("Div", centred, root), g.x(1), g.x(2), rank)

    return g.through(forward)


@rule("BatchNormalization")
def batch(g: Pull) -> Found:
    """With statistics that are given, or, where it trains, with those of the batch."""
    _only_first(g)
    b, x = g.b, g.x(0)

    def forward() -> Value:
        rank = b.rank(x)
        by_channel = b.ints(-1, *[1] * (rank - 2))
        if g.attr("training_mode", 0):
            axes = b.ints(*(axis for axis in range(rank) if axis != 1))
            centred = b.op("Sub", x, b.op("ReduceMean", x, axes, keepdims=1))
            variance = b.op("ReduceMean", b.op("Mul", centred, centred), axes, keepdims=1)
        else:
            centred = b.op("Sub", x, b.op("Reshape", g.x(3), by_channel))
            variance = b.op("Reshape", g.x(4), by_channel)
        root = b.op("Sqrt", b.op("Add", variance, b.number(g.number("epsilon", 1e-5), variance)))
        return _scaled(g, b.op("Div", centred, root), g.x(1), g.x(2), rank)

    return g.through(forward)


def _scaled(g: Pull, x: Value, scale: Value, bias: Value, rank: int) -> Value:
    by_channel = g.b.ints(-1, *[1] * (rank - 2))
    made = g.b.op("Mul", x, g.b.op("Reshape", scale, by_channel))
    return g.b.op("Add", made, g.b.op("Reshape", bias, by_channel))


@rule("GroupNormalization", "RMSNormalization", "MeanVarianceNormalization", "LpNormalization")
def by_expansion(g: Pull) -> Found:
    return expanded(g)


@rule("Dropout")
def dropout(g: Pull) -> Found:
    trains = g.operand(2)
    mode = g.b.ints_of(trains) if trains is not None else [0]
    if trains is not None and trains in g.b.graph.constants:
        mode = [int(g.b.graph.constants[trains].any())]
    if mode is None or any(mode):
        raise g.refusal("it may train")
    return [g.d]


@rule("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "Attention", "RotaryEmbedding")
def made_of_others(g: Pull) -> Found:
    return expanded(g)
