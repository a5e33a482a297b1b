"""Convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import Dim, DType, Node, Shape
from webrnn.ir.dims import is_nonnegative
from webrnn.reference.windows import place_windows

from ..facts import Fact
from .registry import rule


def window_counts(node: Node, spatial: Shape, kernel: Sequence[Dim | None]) -> Shape:
    """How often a kernel fits each spatial axis. Of a symbolic length only if the count is linear in it."""
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
        elif stride != 1 or rounds_up:
            counts.append(None)
        elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            counts.append(length)
        else:
            count = length + (0 if auto_pad == "VALID" else sum(around)) - (size - 1) * dilation
            counts.append(count if is_nonnegative(count) else None)
    return tuple(counts)


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
