"""Layers of random models over time that change, number or regroup frames, and those with more inputs or outputs."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .layer_table import (
    LARGEST_RATE,
    TO_THE_END,
    Signal,
    Stack,
    derived,
    frames_last,
    layer,
)
from .layers import cut


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
