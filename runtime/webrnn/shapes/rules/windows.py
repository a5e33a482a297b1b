"""Convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import WEBRNN, Dim, DType, Node, Shape
from webrnn.ir.dims import floor_divide
from webrnn.reference.windows import place_windows

from ..facts import Fact
from .registry import rule, unknown_sizes


def window_counts(node: Node, spatial: Shape, kernel: Sequence[Dim | None]) -> Shape:
    """How often a kernel fits each spatial axis, given that it fits at all."""
    rank = len(spatial)
    strides, dilations = node.attrs.get("strides") or [1] * rank, node.attrs.get("dilations") or [1] * rank
    pads, auto_pad = node.attrs.get("pads") or [0] * 2 * rank, node.attrs.get("auto_pad", "NOTSET")
    rounds_up = node.attrs.get("ceil_mode", 0)
    counts: list[Dim | None] = []
    for axis, (length, size) in enumerate(zip(spatial, kernel, strict=True)):
        stride, dilation, around = strides[axis], dilations[axis], [pads[axis], pads[axis + rank]]
        if length is None or not isinstance(size, int):
            counts.append(None)
        elif isinstance(length, int):
            line = np.broadcast_to(np.int8(0), (1, 1, length))
            counts.extend(place_windows(line, [size], [stride], [dilation], around, auto_pad, rounds_up).output)
        elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            counts.append(floor_divide(length + stride - 1, stride))
        else:
            extent = (size - 1) * dilation + 1
            before, after = (0, 0) if auto_pad == "VALID" else around
            counts.append(_window_count(length + before + after - extent, after, extent, stride, rounds_up))
    return tuple(counts)


def _window_count(room: Dim, after: int, extent: int, stride: int, rounds_up: bool) -> Dim | None:
    if not rounds_up:
        return floor_divide(room, stride) + 1
    if after >= extent:
        return None
    # One more, unless it would start in the pads behind the end.
    starts = room + min(stride, extent - after)
    return floor_divide(starts + stride - 1, stride)


@rule("QLinearConv")
def qlinear_conv(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    (made,) = conv(node, [inputs[0], inputs[3]])
    return [Fact(inputs[7].dtype, made.shape)]


@rule("Conv", "ConvInteger")
def conv(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, w = inputs[0], inputs[1]
    dtype = DType.INT32 if node.op == "ConvInteger" else x.dtype or w.dtype
    if x.shape is None:
        return [Fact(dtype, None if w.shape is None else (None, w.shape[0], *(None,) * (len(w.shape) - 2)))]
    spatial = x.shape[2:]
    kernel = node.attrs.get("kernel_shape") or (None if w.shape is None else w.shape[2:])
    counts = (None,) * len(spatial) if kernel is None else window_counts(node, spatial, kernel)
    return [Fact(dtype, (x.shape[0], None if w.shape is None else w.shape[0], *counts))]


@rule("SmallConv", domain=WEBRNN)
def small_conv(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return conv(node, inputs)


@rule("Ring", domain=WEBRNN)
def ring(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    """The next ring, and its windows side by side."""
    kept, rows, _ = inputs
    windows = rows.shape
    if windows is not None:
        axis, frames = node.attrs["axis"], windows[node.attrs["axis"]]
        count = None if frames is None else floor_divide(frames, node.attrs.get("stride", 1))
        places = None if count is None else (count + node.attrs.get("more", 0)) * node.attrs.get("kernel", 1)
        windows = (*windows[:axis], places, *windows[axis + 1 :])
    return [Fact(kept.dtype, kept.shape), Fact(rows.dtype, windows)]


@rule("ConvTranspose")
def conv_transpose(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, w = inputs[0], inputs[1]
    dtype = x.dtype or w.dtype
    if x.shape is None:
        return [Fact(dtype, unknown_sizes(w.rank))]
    filters = None if w.shape is None else w.shape[1]
    channels = None if filters is None else filters * node.attrs.get("group", 1)
    spatial, rank = x.shape[2:], len(x.shape) - 2
    kernel = node.attrs.get("kernel_shape") or (w.shape or (None,) * (rank + 2))[2:]
    return [Fact(dtype, (x.shape[0], channels, *_spread_lengths(node, spatial, kernel)))]


def _spread_lengths(node: Node, spatial: Shape, kernel: Sequence[Dim | None]) -> Shape:
    rank, auto_pad = len(spatial), node.attrs.get("auto_pad", "NOTSET")
    strides, dilations = node.attrs.get("strides") or [1] * rank, node.attrs.get("dilations") or [1] * rank
    if node.attrs.get("output_shape") is not None:
        return tuple(node.attrs["output_shape"][-rank:])
    if auto_pad.startswith("SAME"):
        return tuple(None if size is None else size * stride for size, stride in zip(spatial, strides, strict=True))
    pads = node.attrs.get("pads") or [0] * 2 * rank
    extra = node.attrs.get("output_padding") or [0] * rank
    lengths: list[Dim | None] = []
    for axis, (length, size) in enumerate(zip(spatial, kernel, strict=True)):
        if length is None or size is None:
            lengths.append(None)
            continue
        around = 0 if auto_pad == "VALID" else pads[axis] + pads[axis + rank]
        spread = (length - 1) * strides[axis] + (size - 1) * dilations[axis] + 1
        lengths.append(spread + extra[axis] - around)
    return tuple(lengths)


@rule("MaxPool", "AveragePool", "LpPool")
def pool(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x = inputs[0]
    sizes: Shape | None = None
    if x.shape is not None:
        sizes = (*x.shape[:2], *window_counts(node, x.shape[2:], node.attrs["kernel_shape"]))
    return [Fact(x.dtype, sizes), Fact(DType.INT64, sizes)]


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x = inputs[0]
    return [Fact(x.dtype, None if x.shape is None else (*x.shape[:2], *(1,) * (len(x.shape) - 2)))]
