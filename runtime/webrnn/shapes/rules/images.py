"""Sampling and assembling images."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from webrnn.ir import Dim, Node
from webrnn.ir.dims import floor_divide

from ..facts import Fact
from .registry import operand, rule, unknown_sizes
from .windows import window_counts


@rule("GridSample")
def grid_sample(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, grid = inputs[0], inputs[1]
    if x.shape is None or grid.shape is None:
        return [Fact(x.dtype, unknown_sizes(x.rank or grid.rank))]
    return [Fact(x.dtype, (*x.shape[:2], *grid.shape[1:-1]))]


@rule("AffineGrid")
def affine_grid(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    theta, size = inputs[0], inputs[1]
    if size.content is None:
        rank = theta.shape[1] if theta.shape is not None else None
        return [Fact(theta.dtype, unknown_sizes(rank + 2 if isinstance(rank, int) else None))]
    batch, _, *spatial = size.content
    return [Fact(theta.dtype, (batch, *spatial, len(spatial)))]


@rule("RoiAlign")
def roi_align(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, rois = inputs[0], inputs[1]
    regions, channels = (None if fact.shape is None else fact.shape[at] for fact, at in ((rois, 0), (x, 1)))
    height, width = node.attrs.get("output_height", 1), node.attrs.get("output_width", 1)
    return [Fact(x.dtype, (regions, channels, height, width))]


@rule("DeformConv")
def deform_conv(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, w = inputs[0], inputs[1]
    if x.shape is None or w.shape is None:
        return [Fact(x.dtype, (None,) * 4)]
    return [Fact(x.dtype, (x.shape[0], w.shape[0], *window_counts(node, x.shape[2:], w.shape[2:])))]


@rule("Col2Im")
def col2im(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, image, block = inputs[0], inputs[1], inputs[2]
    if image.content is None or x.shape is None:
        rank = image.shape[0] if image.shape else None
        return [Fact(x.dtype, unknown_sizes(rank + 2 if isinstance(rank, int) else None))]
    batch, columns, _ = x.shape
    channels: Dim | None = None
    if block.ints is not None and columns is not None:
        channels = floor_divide(columns, prod(block.ints))
    return [Fact(x.dtype, (batch, channels, *image.content))]


@rule("MaxUnpool")
def max_unpool(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, stated = inputs[0], operand(inputs, 2)
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        return [Fact(x.dtype, unknown_sizes(x.rank) if stated.content is None else stated.content)]
    if x.shape is None:
        return [Fact(x.dtype)]
    return [Fact(x.dtype, (*x.shape[:2], *implied_lengths(node, x.shape[2:])))]


def implied_lengths(node: Node, spatial: Sequence[Dim | None]) -> list[Dim | None]:
    """Of what a pool with these attributes has made so many windows of."""
    rank, kernel = len(spatial), node.attrs["kernel_shape"]
    strides, pads = node.attrs.get("strides") or [1] * rank, node.attrs.get("pads") or [0] * 2 * rank
    return [
        None if size is None else (size - 1) * strides[axis] + kernel[axis] - pads[axis] - pads[axis + rank]
        for axis, size in enumerate(spatial)
    ]


@rule("Det")
def det(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x = inputs[0]
    return [Fact(x.dtype, None if x.shape is None else x.shape[:-2])]
