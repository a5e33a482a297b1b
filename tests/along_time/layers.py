"""Layers of random models over time: windows, loops, norms, products, and branches that meet."""

from __future__ import annotations

from typing import Any

import numpy as np

from .layer_table import (
    LARGEST_RATE,
    TO_THE_END,
    Signal,
    Stack,
    derived,
    frames_last,
    layer,
)
from .pieces import GATES


def padding(x: Signal, mode: str, extent: int, stride: int, some: tuple[int, int]) -> tuple[dict[str, Any], int, int]:
    """Attributes of a window and the frames it adds before and behind."""
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        out = -(-x.extra // stride)
        total = max((out - 1) * stride + extent - x.extra, 0)
        small, large = total // 2, total - total // 2
        return {"auto_pad": mode}, *((small, large) if mode == "SAME_UPPER" else (large, small))
    if mode == "VALID":
        return {"auto_pad": mode}, 0, 0
    before, behind = {
        "none": (0, 0),
        "left": (extent - 1, 0),
        "both": ((extent - 1) // 2, extent // 2),
        "right": (0, extent - 1),
        "some": (min(some[0], extent - 1), min(some[1], extent - 1)),
    }[mode]
    return {"pads": [before, behind]}, before, behind


PADS = ("left", "left", "both", "both", "none", "right", "some", "SAME_UPPER", "SAME_LOWER", "VALID")
SOME = ((1, 0), (0, 1), (2, 1), (1, 3))


@layer(
    12,
    kernel=(1, 2, 3, 3, 4, 5),
    stride=(1, 1, 1, 1, 2, 3),
    dilation=(1, 1, 1, 2, 3),
    pads=PADS,
    some=SOME,
    groups=("one", "one", "two", "each"),
    channels=(2, 3, 4, 6),
    bias=(True, True, False),
)
def conv(s: Stack, x: Signal, kernel, stride, dilation, pads, some, groups, channels, bias) -> Signal:
    extent = (kernel - 1) * dilation + 1
    attributes, before, behind = padding(x, pads, extent, stride, some)
    if not s.strided(x, stride):
        return x
    group = {"one": 1, "two": 2, "each": x.channels}[groups]
    if x.channels % group:
        group = 1
    channels = -(-channels // group) * group
    s.need(x, max(1, extent - before - behind))
    operands = [s.b.weights(channels, x.channels // group, kernel)] + [s.b.weights(channels)] * bias
    y = s.b.op(
        "Conv",
        x.name,
        *operands,
        kernel_shape=[kernel],
        strides=[stride],
        dilations=[dilation],
        group=group,
        **attributes,
    )
    extra = (x.extra + before + behind - extent) // stride + 1
    return Signal(y, channels, x.rate / stride, extra)


@layer(
    5,
    op=("MaxPool", "MaxPool", "AveragePool"),
    kernel=(2, 2, 3, 4),
    stride=(1, 1, 2, 2, 3),
    dilation=(1, 1, 1, 2),
    pads=PADS,
    some=SOME,
    ceil=(0, 0, 0, 1),
    include=(0, 1),
)
def pool(s: Stack, x: Signal, op, kernel, stride, dilation, pads, some, ceil, include) -> Signal:
    extent = (kernel - 1) * dilation + 1
    attributes, before, behind = padding(x, pads, extent, stride, some)
    if "pads" in attributes and max(before, behind) >= kernel:  # a window of padding alone
        attributes, before, behind = {"pads": [0, 0]}, 0, 0
    if not s.strided(x, stride):
        return x
    if op == "AveragePool":
        attributes["count_include_pad"] = include
    if "pads" in attributes:
        attributes["ceil_mode"] = ceil
    s.need(x, extent)  # so that no window is padding alone, of which there is no mean
    y = s.b.op(op, x.name, kernel_shape=[kernel], strides=[stride], dilations=[dilation], **attributes)
    left = x.extra + before + behind - extent
    extra = left // stride + 1
    if attributes.get("ceil_mode") and left % stride:
        begins = extra * stride  # the last window begins inside of the frames or of the padding before them
        extra += 1 if begins < x.extra + before else 0
    return derived(x, y, rate=x.rate / stride, extra=extra)


@layer(
    5,
    kernel=(1, 2, 3, 4),
    stride=(1, 2, 2, 3),
    dilation=(1, 1, 1, 2),
    before=(0, 0, 1, 2),
    behind=(0, 0, 1, 2),
    more=(0, 0, 1),
    channels=(2, 4),
    chomp=("none", "end", "both"),
    groups=(1, 1, 2),
)
def conv_transpose(
    s: Stack, x: Signal, kernel, stride, dilation, before, behind, more, channels, chomp, groups
) -> Signal:
    if x.rate * stride > LARGEST_RATE:
        stride = 1
    group = groups if x.channels % groups == 0 else 1
    extent = (kernel - 1) * dilation + 1
    before, behind, more = min(before, extent - 1), min(behind, extent - 1), min(more, stride - 1)
    y = s.b.op(
        "ConvTranspose",
        x.name,
        s.b.weights(x.channels, channels // group, kernel),
        s.b.weights(channels),
        kernel_shape=[kernel],
        strides=[stride],
        dilations=[dilation],
        pads=[before, behind],
        output_padding=[more],
        group=group,
    )
    s.need(x, 2)
    out = Signal(y, channels, x.rate * stride, stride * (x.extra - 1) + extent - before - behind + more)
    left = max(out.extra - x.extra * stride, 0)
    if chomp == "end":
        return cut(s, out, 0, left)
    return cut(s, out, left // 2, left - left // 2) if chomp == "both" else out


def cut(s: Stack, x: Signal, first: int, last: int) -> Signal:
    """Without some frames at the start and at the end."""
    if not first and not last:
        return x
    s.need(x, first + last + 1)
    ends = s.b.ints(-last if last else TO_THE_END)
    y = s.b.op("Slice", x.name, s.b.ints(first), ends, s.b.ints(2), s.b.ints(1))
    return derived(x, y, extra=x.extra - first - last)


@layer(3, first=(0, 0, 1, 2, 3), last=(0, 0, 1, 2, 4))
def chomp(s: Stack, x: Signal, first, last) -> Signal:
    return cut(s, x, first, last)


@layer(3, by=(1, 1, 2, 3))
def difference(s: Stack, x: Signal, by) -> Signal:
    later, earlier = cut(s, x, by, 0), cut(s, x, 0, by)
    return derived(later, s.b.op("Sub", later.name, earlier.name))


@layer(
    4,
    before=(0, 1, 2, 3),
    behind=(0, 0, 1, 2),
    mode=("constant", "constant", "constant", "edge", "reflect"),
    number=(0.0, 0.0, 0.5, -2.0),
)
def pad(s: Stack, x: Signal, before, behind, mode, number) -> Signal:
    operands = [s.b.ints(0, 0, before, 0, 0, behind)]
    if mode == "constant" and number:
        operands.append(s.b.constant(np.float32(number)))
    s.need(x, max(before, behind) + 1)
    y = s.b.op("Pad", x.name, *operands, mode=mode)
    return derived(x, y, extra=x.extra + before + behind)


@layer(2, by=(2, 3), first=(0, 1))
def decimate(s: Stack, x: Signal, by, first) -> Signal:
    """x[first::by]"""
    if not s.strided(x, by):
        return x
    s.need(x, first + 1)
    y = s.b.op("Slice", x.name, s.b.ints(first), s.b.ints(TO_THE_END), s.b.ints(2), s.b.ints(by))
    return derived(x, y, rate=x.rate / by, extra=-(-(x.extra - first) // by))


@layer(
    7,
    op=("GRU", "GRU", "LSTM", "RNN"),
    hidden=(3, 4),
    squeeze=("Squeeze", "Reshape"),
    start=("none", "zeros"),
    final=(False, False, True),
)
def recurrent(s: Stack, x: Signal, op, hidden, squeeze, start, final) -> Signal:
    b = s.b
    frames = b.op("Transpose", x.name, perm=[2, 0, 1])
    rows = GATES[op] * hidden
    operands = [b.weights(1, rows, x.channels), b.weights(1, rows, hidden), b.weights(1, 2 * rows)]
    if start == "zeros":
        shape = b.op("Concat", b.ints(1), b.size(x.name, 0), b.ints(hidden), axis=0)
        operands += ["", b.op("ConstantOfShape", shape)]
    y, last = b.op(op, frames, *operands, n_outputs=2, hidden_size=hidden)
    if final:
        s.finals.append(last)
    s.need(x, 1)
    if squeeze == "Squeeze":
        y = b.op("Squeeze", y, b.ints(1))
    else:  # as torch's newer exporter writes it
        moved = b.op("Transpose", y, perm=[0, 2, 1, 3])
        y = b.op("Reshape", moved, b.op("Concat", b.size(moved, 0), b.size(moved, 1), b.ints(hidden), axis=0))
    return derived(x, b.op("Transpose", y, perm=[1, 2, 0]), hidden)


@layer(3, kind=("LayerNormalization", "written", "BatchNormalization", "rms"))
def norm(s: Stack, x: Signal, kind) -> Signal:
    b, n = s.b, x.channels
    if kind == "BatchNormalization":
        positive = b.constant(np.abs(b.rng.normal(1, 0.1, n)).astype(np.float32))
        return derived(x, b.op(kind, x.name, b.weights(n), b.weights(n), b.weights(n), positive))
    if kind == "LayerNormalization":
        return derived(x, frames_last(s, x, lambda f: b.op(kind, f, b.weights(n), b.weights(n), axis=-1)))
    centred = x.name if kind == "rms" else b.op("Sub", x.name, b.op("ReduceMean", x.name, b.ints(1)))
    power = b.op("ReduceMean", b.op("Mul", centred, centred), b.ints(-2))
    return derived(x, b.op("Div", centred, b.op("Sqrt", b.op("Add", power, b.constant(np.float32([0.1]))))))


@layer(4, op=("Relu", "Tanh", "Sigmoid", "LeakyRelu", "PRelu", "Add", "Mul", "Clip"))
def elementwise(s: Stack, x: Signal, op) -> Signal:
    b = s.b
    if op in ("PRelu", "Add", "Mul"):
        return derived(x, b.op(op, x.name, b.weights(x.channels, 1)))
    if op == "Clip":
        return derived(x, b.op(op, x.name, b.constant(np.float32(-0.7)), b.constant(np.float32(0.9))))
    return derived(x, b.op(op, x.name))


@layer(3, kind=("MatMul", "Gemm", "softmax"), channels=(2, 4, 5))
def dense(s: Stack, x: Signal, kind, channels) -> Signal:
    b = s.b

    def build(frames: str) -> str:
        if kind != "Gemm":
            y = b.op("MatMul", frames, b.weights(x.channels, channels))
            return b.op("Softmax", y, axis=-1) if kind == "softmax" else b.op("Add", y, b.weights(channels))
        rows = b.op("Reshape", frames, b.ints(-1, x.channels))
        product = b.op("Gemm", rows, b.weights(channels, x.channels), b.weights(channels), transB=1)
        shape = b.op("Concat", b.size(frames, 0), b.size(frames, 1), b.ints(channels), axis=0)
        return b.op("Reshape", product, shape)

    return derived(x, frames_last(s, x, build), channels)


@layer(2)
def gate(s: Stack, x: Signal) -> Signal:
    if x.channels % 2:
        return x
    left, right = s.b.op("Split", x.name, n_outputs=2, axis=1, num_outputs=2)
    return derived(x, s.b.op("Mul", s.b.op("Tanh", left), s.b.op("Sigmoid", right)), x.channels // 2)


@layer(9, op=("Add", "Add", "Mul", "Concat", "Concat"), back=(1, 2, 3, 4, 5), share=(0.0, 0.5, 1.0))
def join(s: Stack, x: Signal, op, back, share) -> Signal:
    """With something from before; the longer one is cut, at the start, at the end or at both."""
    others = [other for other in s.seen if other.rate == x.rate and other.name != x.name]
    if not others:
        return x
    other = others[-min(back, len(others))]
    if op != "Concat" and other.channels != x.channels:
        op = "Concat"
    if op == "Concat" and other.channels + x.channels > 12:
        return x
    longer = abs(x.extra - other.extra)
    first = round(share * longer)
    x, other = (
        cut(s, each, first, longer - first) if each.extra - mate.extra == longer else each
        for each, mate in ((x, other), (other, x))
    )
    if op == "Concat":
        return derived(x, s.b.op(op, other.name, x.name, axis=1), x.channels + other.channels)
    return derived(x, s.b.op(op, x.name, other.name))
