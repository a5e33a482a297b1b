"""Layers of random models over time: each takes a value of [batch, channels, time] and gives such a one.

A layer is a row of `LAYERS`: how often it is drawn, the options of each of its parameters, and how it is built. It
knows how many frames it gives: `rate` times the frames of the inputs, which are a multiple of the stack's stride, plus
`extra`. A layer that does not fit what is before it (an odd number of channels to be split) gives what it got.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from onnx import TensorProto

from .pieces import GATES, Builder

LARGEST_STRIDE = 24
LARGEST_RATE = 4
TO_THE_END = 2**31 - 1


@dataclass(frozen=True)
class Signal:
    """A value of [batch, channels, time]."""

    name: str
    channels: int
    rate: Fraction = Fraction(1)
    extra: int = 0

    def frames(self, time: int) -> int:
        return int(self.rate * time) + self.extra


@dataclass
class Stack:
    """A model under construction."""

    b: Builder
    now: Signal
    stride: int = 1
    """The frames of the inputs are to be a multiple of it."""
    seen: list[Signal] = field(default_factory=list)
    """What later layers may go back to."""
    needs: list[tuple[Signal, int]] = field(default_factory=list)
    """How many frames a value has at least, so that the model can run."""
    outputs: dict[str, Signal] = field(default_factory=dict)
    finals: list[str] = field(default_factory=list)
    """Outputs without time."""

    def strided(self, signal: Signal, by: int) -> bool:
        """Take care that the frames of a value can be cut into groups of `by`; False if strides get too large."""
        rate = signal.rate / by
        stride = math.lcm(self.stride, rate.denominator)
        if stride > LARGEST_STRIDE:
            return False
        self.stride = stride
        return True

    def need(self, signal: Signal, frames: int) -> None:
        self.needs.append((signal, frames))

    def shortest(self) -> int:
        """The fewest frames for which the model runs."""
        least = self.stride
        for signal, frames in self.needs:
            short = Fraction(frames - signal.extra) / signal.rate
            least = max(least, -(-short.numerator // (short.denominator * self.stride)) * self.stride)
        return least


Build = Callable[..., Signal]


@dataclass(frozen=True)
class Layer:
    weight: int
    options: dict[str, tuple[Any, ...]]
    build: Build


LAYERS: dict[str, Layer] = {}


def layer(weight: int, **options: tuple[Any, ...]) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        LAYERS[build.__name__] = Layer(weight, options, build)
        return build

    return register


def derived(x: Signal, name: str, channels: int | None = None, **changes: Any) -> Signal:
    return replace(x, name=name, channels=x.channels if channels is None else channels, **changes)


def frames_last(s: Stack, x: Signal, build: Callable[[str], str]) -> str:
    """What is built on [batch, time, channels]."""
    return s.b.op("Transpose", build(s.b.op("Transpose", x.name, perm=[0, 2, 1])), perm=[0, 2, 1])


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


@layer(2, by=(2, 3), target=("sizes", "minus one"))
def fold_time(s: Stack, x: Signal, by, target) -> Signal:
    """[batch, time, n] -> [batch, time / by, by * n]"""
    if (x.extra % by) or x.channels * by > 12 or not s.strided(x, by):
        return x
    s.need(x, by)
    b = s.b
    if target == "sizes":
        size = b.op("Div", b.size(x.name, 2), b.ints(by))
        shape = b.op("Concat", b.size(x.name, 0), size, b.ints(by * x.channels), axis=0)
    else:
        shape = b.op("Concat", b.size(x.name, 0), b.ints(-1, by * x.channels), axis=0)
    y = frames_last(s, x, lambda frames: b.op("Reshape", frames, shape))
    return Signal(y, by * x.channels, x.rate / by, x.extra // by)


@layer(2, by=(2, 3))
def unfold_channels(s: Stack, x: Signal, by) -> Signal:
    """[batch, time, n] -> [batch, time * by, n / by]"""
    if x.channels % by or x.rate * by > LARGEST_RATE:
        return x
    b = s.b
    shape = b.op("Concat", b.size(x.name, 0), b.ints(-1, x.channels // by), axis=0)
    y = frames_last(s, x, lambda frames: b.op("Reshape", frames, shape))
    return Signal(y, x.channels // by, x.rate * by, x.extra * by)


@layer(2, by=(2, 3), how=("Resize", "Resize", "Expand"))
def repeat(s: Stack, x: Signal, by, how) -> Signal:
    if x.rate * by > LARGEST_RATE:
        return x
    b = s.b
    s.need(x, 1)
    if how == "Resize":
        scales = b.constant(np.float32([1, 1, by]))
        y = b.op(
            "Resize",
            x.name,
            "",
            scales,
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
    else:
        sizes = b.op("Concat", b.size(x.name, 0), b.ints(x.channels), b.size(x.name, 2), b.ints(by), axis=0)
        wide = b.op("Expand", b.op("Unsqueeze", x.name, b.ints(3)), sizes)
        y = b.op("Reshape", wide, b.op("Concat", b.size(x.name, 0), b.ints(x.channels, -1), axis=0))
    return derived(x, y, rate=x.rate * by, extra=x.extra * by)


def framed(s: Stack, x: Signal, size: int, hop: int, how: str) -> Signal | None:
    """[batch, time, size] from one channel."""
    b = s.b
    if x.channels > 1:
        x = derived(x, b.op("Conv", x.name, b.weights(1, x.channels, 1)), 1)
    if not s.strided(x, hop):
        return None
    s.need(x, size)
    extra = (x.extra - size) // hop + 1
    samples = b.op("Squeeze", x.name, b.ints(1))
    if how == "slices":
        spare = (x.extra - size) % hop  # frames at the end that fill no window
        parts = []
        for place in range(size):
            left = size - 1 - place + spare
            ends = b.ints(-left if left else TO_THE_END)
            part = b.op("Slice", samples, b.ints(place), ends, b.ints(1), b.ints(hop))
            parts.append(b.op("Unsqueeze", part, b.ints(2)))
        y = b.op("Concat", *parts, axis=2)
    else:
        count = b.op("Add", b.op("Div", b.op("Sub", b.size(samples, 1), b.ints(size)), b.ints(hop)), b.ints(1))
        starts = b.op("Range", b.scalar(0), b.op("Squeeze", count, b.ints(0)), b.scalar(1))
        starts = b.op("Unsqueeze", b.op("Mul", starts, b.scalar(hop)), b.ints(1))
        y = b.op("Gather", samples, b.op("Add", starts, b.constant(np.arange(size)[None])), axis=1)
    return Signal(y, size, x.rate / hop, extra)


@layer(2, size=(2, 3, 4), hop=(1, 2, 3), how=("slices", "slices", "indices"), then=("none", "DFT"))
def frame(s: Stack, x: Signal, size, hop, how, then) -> Signal:
    y = framed(s, x, size, hop, how)
    if y is None:
        return x
    b, name, channels = s.b, y.name, size
    if then == "DFT":
        bins = size // 2 + 1
        spectrum = b.op("DFT", b.op("Unsqueeze", name, b.ints(3)), "", b.scalar(2), onesided=1)
        sizes = b.op("Concat", b.size(name, 0), b.size(name, 1), b.ints(2 * bins), axis=0)
        name, channels = b.op("Reshape", spectrum, sizes), 2 * bins
    return derived(y, b.op("Transpose", name, perm=[0, 2, 1]), channels)


@layer(2, size=(4, 6), hop=(1, 2, 3), window=(True, False))
def stft(s: Stack, x: Signal, size, hop, window) -> Signal:
    b = s.b
    if x.channels > 1:
        x = derived(x, b.op("Conv", x.name, b.weights(1, x.channels, 1)), 1)
    if not s.strided(x, hop):
        return x
    s.need(x, size)
    bins = size // 2 + 1
    samples = b.op("Transpose", x.name, perm=[0, 2, 1])
    shape = b.constant(np.hanning(size + 2)[1:-1].astype(np.float32)) if window else ""
    spectrum = b.op("STFT", samples, b.scalar(hop), shape, b.scalar(size), onesided=1)
    sizes = b.op("Concat", b.size(spectrum, 0), b.size(spectrum, 1), b.ints(2 * bins), axis=0)
    frames = b.op("Transpose", b.op("Reshape", spectrum, sizes), perm=[0, 2, 1])
    return Signal(frames, 2 * bins, x.rate / hop, (x.extra - size) // hop + 1)


@layer(
    5,
    kernel=((2, 3), (3, 3), (1, 3), (3, 1)),
    pads=("left", "left", "both", "none"),
    stride=(1, 1, 2),
    over=(1, 2),
    back=(False, True),
)
def spatial(s: Stack, x: Signal, kernel, pads, stride, over, back) -> Signal:
    """[batch, 1, time, channels] through a Conv2d, and perhaps a ConvTranspose2d whose end is cut."""
    if x.channels < 3 or not s.strided(x, stride):
        return x
    b = s.b
    along, across = kernel
    before, behind = {"left": (along - 1, 0), "both": ((along - 1) // 2, along // 2), "none": (0, 0)}[pads]
    wide = b.op("Unsqueeze", b.op("Transpose", x.name, perm=[0, 2, 1]), b.ints(1))
    s.need(x, max(1, along - before - behind))
    y = b.op(
        "Conv",
        wide,
        b.weights(2, 1, along, across),
        b.weights(2),
        pads=[before, across // 2, behind, across // 2],
        strides=[stride, over],
        kernel_shape=[along, across],
    )
    out = Signal(y, 2, x.rate / stride, (x.extra + before + behind - along) // stride + 1)
    features, channels = (x.channels - 1) // over + 1, 2
    if back:
        up = b.op("ConvTranspose", b.op("Relu", y), b.weights(2, 2, along, 3), kernel_shape=[along, 3], strides=[1, 2])
        features = 2 * (features - 1) + 3
        ends = b.ints(1 - along if along > 1 else TO_THE_END)
        out = derived(out, b.op("Slice", up, b.ints(0), ends, b.ints(2)))
    if features * channels > 14:
        features = 4
        out = derived(out, b.op("Slice", out.name, b.ints(0), b.ints(4), b.ints(3)))
    moved = b.op("Transpose", out.name, perm=[0, 2, 1, 3])
    shape = b.op("Concat", b.size(moved, 0), b.size(moved, 1), b.ints(features * channels), axis=0)
    frames = b.op("Transpose", b.op("Reshape", moved, shape), perm=[0, 2, 1])
    return derived(out, frames, features * channels)


@layer(2, kind=("sine", "rows by Gather", "rows by Slice", "head"), dtype=(TensorProto.INT64, TensorProto.INT32))
def numbered(s: Stack, x: Signal, kind, dtype) -> Signal:
    """Each frame meets something of its own number."""
    b, rows = s.b, 400
    count = b.size(x.name, 2)
    if kind == "rows by Slice":
        ends = b.op("Cast", b.op("Cast", count, to=dtype), to=TensorProto.INT64)
        return derived(
            x, b.op("Add", x.name, b.op("Slice", b.weights(1, x.channels, rows), b.ints(0), ends, b.ints(2)))
        )
    array = np.int32 if dtype == TensorProto.INT32 else np.int64
    first, one = b.constant(np.array(0, array)), b.constant(np.array(1, array))
    numbers = b.op("Range", first, b.op("Cast", b.op("Squeeze", count, b.ints(0)), to=dtype), one)
    if kind == "rows by Gather":
        return derived(x, b.op("Mul", x.name, b.op("Gather", b.weights(x.channels, rows), numbers, axis=1)))
    if kind == "head":
        is_early = b.op("Less", numbers, b.constant(np.array(5, array)))
        return derived(x, b.op("Where", is_early, x.name, b.constant(np.float32([0.5]))))
    return derived(x, b.op("Add", x.name, b.op("Sin", b.op("Cast", numbers, to=TensorProto.FLOAT))))


@layer(2, kind=("mask", "speaker", "beside"))
def more_inputs(s: Stack, x: Signal, kind) -> Signal:
    """A mask of each frame, numbers that belong to the whole sequence, or a second signal."""
    b = s.b
    name = f"{kind}{len(b.inputs)}"
    if kind == "speaker":
        b.input(name, [b.batch, x.channels])
        return derived(x, b.op("Add", x.name, b.op("Unsqueeze", name, b.ints(2))))
    if x.rate != 1 or x.extra > 0:
        return x
    if kind == "mask":
        b.input(name, [b.batch, "time"])
        given = cut(s, Signal(b.op("Unsqueeze", name, b.ints(1)), 1), 0, -x.extra)
        return derived(x, b.op("Mul", x.name, given.name))
    b.input(name, ["time", b.batch, x.channels])
    given = cut(s, Signal(b.op("Transpose", name, perm=[1, 2, 0]), x.channels), -x.extra, 0)
    return derived(x, b.op("Add", x.name, given.name))


@layer(2)
def output(s: Stack, x: Signal) -> Signal:
    """What is here is an output too."""
    if len(s.outputs) < 2:
        s.outputs[x.name] = x
    return x


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
