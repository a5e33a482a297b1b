"""Layers of random models over time that need the whole sequence."""

from __future__ import annotations

from onnx import TensorProto

from .layer_table import (
    TO_THE_END,
    Build,
    Signal,
    Stack,
    derived,
)


def reverse(s: Stack, x: Signal) -> Signal:
    b = s.b
    operands = [b.weights(1, 9, x.channels), b.weights(1, 9, 3)]
    y, _ = b.op(
        "GRU",
        b.op("Transpose", x.name, perm=[2, 0, 1]),
        *operands,
        n_outputs=2,
        hidden_size=3,
        direction="reverse",
        name="backwards",
    )
    return derived(x, b.op("Transpose", b.op("Squeeze", y, b.ints(1)), perm=[1, 2, 0]), 3)


def softmax_over_time(s: Stack, x: Signal) -> Signal:
    return derived(x, s.b.op("Softmax", x.name, axis=2, name="softmax"))


def centred_over_time(s: Stack, x: Signal) -> Signal:
    return derived(x, s.b.op("Sub", x.name, s.b.op("ReduceMean", x.name, s.b.ints(2), name="mean")))


def instance_norm(s: Stack, x: Signal) -> Signal:
    operands = [s.b.weights(x.channels), s.b.weights(x.channels)]
    return derived(x, s.b.op("InstanceNormalization", x.name, *operands, name="norm"))


def attention(s: Stack, x: Signal) -> Signal:
    scores = s.b.op("MatMul", s.b.op("Transpose", x.name, perm=[0, 2, 1]), x.name, name="scores")
    weights = s.b.op("Softmax", scores, axis=-1)
    return derived(x, s.b.op("MatMul", x.name, s.b.op("Transpose", weights, perm=[0, 2, 1])))


def flip(s: Stack, x: Signal) -> Signal:
    b = s.b
    return derived(x, b.op("Slice", x.name, b.ints(-1), b.ints(-(2**31)), b.ints(2), b.ints(-1), name="flip"))


def divided_by_length(s: Stack, x: Signal) -> Signal:
    b = s.b
    length = b.op("Cast", b.size(x.name, 2), to=TensorProto.FLOAT)
    return derived(x, b.op("Div", x.name, length, name="by_length"))


def last_frame_everywhere(s: Stack, x: Signal) -> Signal:
    b = s.b
    last = b.op("Slice", x.name, b.ints(-1), b.ints(TO_THE_END), b.ints(2), name="last")
    return derived(x, b.op("Add", x.name, last))


NEED_ALL: dict[str, Build] = {
    build.__name__: build
    for build in (
        reverse,
        softmax_over_time,
        centred_over_time,
        instance_norm,
        attention,
        flip,
        divided_by_length,
        last_frame_everywhere,
    )
}
"""Layers of which a frame depends on the whole sequence: a model with one of them is refused."""
