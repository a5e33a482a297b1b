"""Convolutions and pools. A convolution goes back as a ConvTranspose, and its weights as products with what each of
their places saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from webrnn.ir import Value

from ..emitter import Size
from ..registry import Pull, rule

Found = Sequence[Value | None]

MOST_PLACES = 32
"""Of a kernel of more places the cotangent is one convolution, not a product for each place."""


@dataclass
class _Windows:
    """How windows lie over the axes of space."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    begins: list[int]
    ends: list[int]
    group: int

    @property
    def attrs(self) -> dict[str, Any]:
        return {"strides": self.strides, "dilations": self.dilations, "group": self.group}


def _windows(g: Pull, x: Value, kernel: Sequence[object] | None) -> _Windows:
    n_space = g.b.rank(x) - 2
    sizes = [size for size in (kernel or ()) if isinstance(size, int)]
    if kernel is None or len(sizes) != n_space:
        raise g.refusal("the size of its kernel is known only while it runs")
    attrs = g.node.attrs
    strides = list(attrs.get("strides") or [1] * n_space)
    dilations = list(attrs.get("dilations") or [1] * n_space)
    pads = list(attrs.get("pads") or [0] * 2 * n_space)
    begins, ends = pads[:n_space], pads[n_space:]
    if attrs.get("ceil_mode", 0):
        raise g.refusal("its last windows may be cut off", "ceil_mode")
    auto = attrs.get("auto_pad", "NOTSET")
    if auto == "VALID":
        begins, ends = [0] * n_space, [0] * n_space
    elif auto in ("SAME_UPPER", "SAME_LOWER") and g.node.op != "ConvTranspose":
        begins, ends = [], []
        for axis in range(n_space):
            extent = (sizes[axis] - 1) * dilations[axis] + 1
            size = g.b.shape(x)[2 + axis]
            if isinstance(size, int):
                total = max((-(-size // strides[axis]) - 1) * strides[axis] + extent - size, 0)
            elif strides[axis] == 1:
                total = extent - 1
            else:
                raise g.refusal("how much it pads is known only while it runs", "auto_pad")
            less, more = total // 2, total - total // 2
            begins.append(less if auto == "SAME_UPPER" else more)
            ends.append(more if auto == "SAME_UPPER" else less)
    return _Windows(sizes, strides, dilations, begins, ends, int(attrs.get("group", 1)))


def _kernel_of(g: Pull, w: Value) -> Sequence[object]:
    return g.node.attrs.get("kernel_shape") or g.b.shape(w)[2:]


@rule("Conv")
def conv(g: Pull) -> Found:
    x, w, bias = g.x(0), g.x(1), g.operand(2)
    windows = _windows(g, x, _kernel_of(g, w))
    return [
        _spread(g, g.d, w, x, windows) if g.wants(0) else None,
        _weights(g, x, g.d, w, windows) if g.wants(1) else None,
        _of_channels(g, g.d) if bias is not None and g.wants(2) else None,
    ]


@rule("ConvTranspose")
def conv_transpose(g: Pull) -> Found:
    b, x, w, bias = g.b, g.x(0), g.x(1), g.operand(2)
    windows = _windows(g, x, _kernel_of(g, w))
    d = g.d
    ends = _crop(g, windows)
    for axis, end in enumerate(ends):
        if end < 0:  # a window never reaches what was added at the end
            d = b.sliced(d, 2 + axis, 0, b.arithmetic("Add", b.size(d, 2 + axis), end))
    windows.ends = [max(end, 0) for end in ends]
    pads = [*windows.begins, *windows.ends]
    return [
        b.op("Conv", d, w, pads=pads, kernel_shape=windows.kernel, **windows.attrs) if g.wants(0) else None,
        _weights(g, d, x, w, windows) if g.wants(1) else None,
        _of_channels(g, g.d) if bias is not None and g.wants(2) else None,
    ]


def _crop(g: Pull, windows: _Windows) -> list[int]:
    """What a ConvTranspose cuts off at the ends, which is less than nothing where it adds zeros. What it cuts off at
    the beginnings follows from the size of its result, if that is given."""
    attrs, n_space = g.node.attrs, len(windows.kernel)
    extra = list(attrs.get("output_padding") or [0] * n_space)
    wanted, auto = attrs.get("output_shape"), attrs.get("auto_pad", "NOTSET")
    if not wanted and not auto.startswith("SAME"):
        return [end - more for end, more in zip(windows.ends, extra, strict=True)]
    ends = []
    for axis in range(n_space):
        size, stride = g.b.shape(g.x(0))[2 + axis], windows.strides[axis]
        reach = (windows.kernel[axis] - 1) * windows.dilations[axis] + 1
        if not wanted:
            over = reach - stride
        elif isinstance(size, int):
            over = (size - 1) * stride + reach - int(wanted[axis - n_space])
        else:
            raise g.refusal("its pads follow from sizes that are known only while it runs", "output_shape")
        total = max(over + extra[axis], 0)
        windows.begins[axis] = total // 2 if auto == "SAME_UPPER" else total - total // 2
        ends.append(over - windows.begins[axis])
    return ends


def _of_channels(g: Pull, d: Value) -> Value:
    return g.b.op("ReduceSum", d, g.b.ints(*(axis for axis in range(g.b.rank(d)) if axis != 1)), keepdims=0)


def _spread(g: Pull, d: Value, w: Value, x: Value, windows: _Windows) -> Value:
    """Each element of d goes to all that its window saw."""
    b = g.b
    kept: list[tuple[int, Size]] = []
    pads, more = [*windows.begins, *windows.ends], []
    for axis, stride in enumerate(windows.strides):
        size, count = b.size(x, 2 + axis), b.size(d, 2 + axis)
        reach = (windows.kernel[axis] - 1) * windows.dilations[axis] + 1
        if isinstance(size, int) and isinstance(count, int):
            more.append(size + windows.begins[axis] + windows.ends[axis] - (count - 1) * stride - reach)
        elif stride == 1:
            more.append(0)
        else:
            more.append(stride - 1)
            kept.append((axis, size))
    for axis, _ in kept:
        pads[axis] = pads[axis + len(more)] = 0
    made = b.op("ConvTranspose", d, w, pads=pads, output_padding=more, kernel_shape=windows.kernel, **windows.attrs)
    for axis, size in kept:
        begin = windows.begins[axis]
        made = b.sliced(made, 2 + axis, begin, b.arithmetic("Add", size, begin))
    return made


def _weights(g: Pull, x: Value, d: Value, w: Value, windows: _Windows) -> Value:
    """w[m, c, k] is the sum of d[n, m, o] times x[n, c, o * stride + k * dilation - pad]."""
    b = g.b
    for axis, (begin, end) in enumerate(zip(windows.begins, windows.ends, strict=True)):
        x = b.padded(x, 2 + axis, begin, end)
    if prod(windows.kernel) > MOST_PLACES:
        return _weights_by_conv(g, x, d, windows)
    rank, group = b.rank(x), windows.group
    rows = _by_group(g, d, group)
    places = []
    for place in product(*(range(size) for size in windows.kernel)):
        seen = x
        for axis, at in enumerate(place):
            stride = windows.strides[axis]
            start = at * windows.dilations[axis]
            count = b.arithmetic("Mul", b.arithmetic("Sub", b.size(d, 2 + axis), 1), stride)
            seen = b.sliced(seen, 2 + axis, start, b.arithmetic("Add", count, start + 1), stride)
        places.append(b.op("MatMul", rows, b.swapped(_by_group(g, seen, group))))
    stacked = [b.op("Unsqueeze", made, b.ints(-1)) for made in places]
    whole = stacked[0] if len(stacked) == 1 else b.op("Concat", *stacked, axis=-1)
    return b.op("Reshape", whole, b.sizes([b.size(w, axis) for axis in range(rank)]))


def _by_group(g: Pull, value: Value, group: int) -> Value:
    """[n, channels, ...] to [group, channels of one, n * ...]; without groups the first axis is left out."""
    b, rank = g.b, g.b.rank(value)
    if group == 1:
        first = b.op("Transpose", value, perm=[1, 0, *range(2, rank)])
        return b.op("Reshape", first, b.sizes([b.size(value, 1), -1]))
    channels = b.arithmetic("Div", b.size(value, 1), group)
    first = b.op("Transpose", value, perm=[1, 0, *range(2, rank)])
    return b.op("Reshape", first, b.sizes([group, channels, -1]))


def _weights_by_conv(g: Pull, x: Value, d: Value, windows: _Windows) -> Value:
    """A convolution of x with d, strides and dilations having changed places; channels and batches too."""
    b, rank, group = g.b, g.b.rank(x), windows.group
    n, space = b.size(x, 0), [b.size(x, axis) for axis in range(2, rank)]
    channels = b.arithmetic("Div", b.size(x, 1), group)
    cut = b.op("Reshape", x, b.sizes([n, group, channels, *space]), allowzero=1)
    turned = b.op("Transpose", cut, perm=[2, 1, 0, *range(3, rank + 1)])
    turned = b.op("Reshape", turned, b.sizes([channels, b.arithmetic("Mul", n, group), *space]), allowzero=1)
    filters = b.op("Transpose", d, perm=[1, 0, *range(2, rank)])
    made = b.op("Conv", turned, filters, strides=windows.dilations, dilations=windows.strides, group=group)
    for axis, size in enumerate(windows.kernel):
        made = b.sliced(made, 2 + axis, 0, size)
    return b.op("Transpose", made, perm=[1, 0, *range(2, rank)])


@rule("AveragePool")
def average_pool(g: Pull) -> Found:
    """The mean of a window as a convolution with ones, for each channel on its own."""
    b, x = g.b, g.x(0)
    windows = _windows(g, x, g.node.attrs["kernel_shape"])
    includes = bool(g.attr("count_include_pad", 0)) or not any((*windows.begins, *windows.ends))
    space = [b.size(x, axis) for axis in range(2, b.rank(x))]
    attrs: dict[str, Any] = {
        "pads": [*windows.begins, *windows.ends],
        "strides": windows.strides,
        "dilations": windows.dilations,
    }

    def forward() -> Value:
        alone = b.op("Reshape", x, b.sizes([-1, 1, *space]))
        total = b.op("Conv", alone, _ones(g, windows.kernel), **attrs)
        if includes:
            mean = b.times(total, 1 / prod(windows.kernel))
        else:
            one = b.op("Expand", b.number(1.0, x), b.sizes([1, 1, *space]))
            mean = b.op("Div", total, b.op("Conv", one, _ones(g, windows.kernel), **attrs))
        return b.reshaped(mean, g.y())

    return g.through(forward)


def _ones(g: Pull, kernel: list[int]) -> Value:
    return g.b.constant(np.ones((1, 1, *kernel), g.b.dtype(g.x(0)).array_type), "ones")


@rule("MaxPool")
def max_pool(g: Pull) -> Found:
    """Of equal elements the first one takes all, as the indices of the op say."""
    b, x = g.b, g.x(0)
    if len(g.node.outputs) < 2 or g.node.outputs[1] is None:
        g.node.outputs = [g.node.outputs[0], b.value("places")]
        b.settle(g.node)
    if g.attr("storage_order", 0):
        raise g.refusal("its indices go by columns", "storage_order")
    places = g.y(1)
    zeros = b.op("Reshape", b.zeros_like(x), b.ints(-1))
    flat = [b.op("Reshape", value, b.ints(-1)) for value in (places, g.d)]
    made = b.op("ScatterElements", zeros, *flat, axis=0, reduction="add")
    return [b.op("Reshape", made, b.shape_of(x))]


@rule("LpPool")
def norm_pool(g: Pull) -> Found:
    """The sum of powers in a window as a convolution with ones, for each channel on its own."""
    b, x, p = g.b, g.x(0), g.number("p", 2)
    windows = _windows(g, x, g.node.attrs["kernel_shape"])
    space = [b.size(x, axis) for axis in range(2, b.rank(x))]
    attrs: dict[str, Any] = {"strides": windows.strides, "dilations": windows.dilations}

    def forward() -> Value:
        alone = b.op("Abs", b.op("Reshape", x, b.sizes([-1, 1, *space])))
        power = b.op("Pow", alone, b.number(p, x))
        total = b.op("Conv", power, _ones(g, windows.kernel), pads=[*windows.begins, *windows.ends], **attrs)
        return b.reshaped(b.op("Pow", total, b.number(1 / p, x)), g.y())

    return g.through(forward)


_GLOBAL = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(g: Pull) -> Found:
    b, x, p = g.b, g.x(0), g.number("p", 2)
    axes = b.ints(*range(2, b.rank(x)))
    if g.node.op != "GlobalLpPool":
        return g.through(lambda: b.op(_GLOBAL[g.node.op], x, axes, keepdims=1))
    if p in (1, 2):
        return g.through(lambda: b.op(f"ReduceL{int(p)}", x, axes, keepdims=1))

    def forward() -> Value:
        total = b.op("ReduceSum", b.op("Pow", b.op("Abs", x), b.number(p, x)), axes, keepdims=1)
        return b.op("Pow", total, b.number(1 / p, x))

    return g.through(forward)
