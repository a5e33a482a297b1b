"""How windows of convolutions and pools lie along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from webrnn.ir import Dim, Node
from webrnn.ir.dims import floor_divide

from ..lowering import Lowering, attribute

MOST = 1 << 15
"""What the numbers of a window are below."""


class Axis(NamedTuple):
    """How windows lie along an axis."""

    kernel: int
    stride: int
    dilation: int
    before: Dim
    """The pads, which `auto_pad` may make depend on the size."""
    after: Dim
    positions: Dim
    """How many windows there are."""

    @property
    def extent(self) -> int:
        return (self.kernel - 1) * self.dilation + 1

    @property
    def is_stepped(self) -> bool:
        """Whether instructions that find their zeros in memory take it."""
        return max(self.kernel, self.stride, self.dilation) < MOST

    @property
    def is_plain(self) -> bool:
        """Whether instructions that have pads of their own take it."""
        return self.is_stepped and isinstance(self.before, int) and self.before < MOST


def axes_of(
    l: Lowering, node: Node, kernel: Sequence[int], sizes: Sequence[Dim], positions: Sequence[Dim]
) -> list[Axis]:
    """The windows of a convolution or pool, with as many positions as the shape of its result says."""
    n = len(kernel)
    strides, dilations = attribute(node, "strides", [1] * n), attribute(node, "dilations", [1] * n)
    pads, auto = attribute(node, "pads", [0] * (2 * n)), attribute(node, "auto_pad", "NOTSET")
    found = []
    for axis, size in enumerate(sizes):
        axis_of = Axis(kernel[axis], strides[axis], dilations[axis], 0, 0, positions[axis])
        if auto.startswith("SAME"):
            total = _same_pads(axis_of, size)
            small = floor_divide(total, 2)
            around = (small, total - small) if auto == "SAME_UPPER" else (total - small, small)
        else:
            around = (0, 0) if auto == "VALID" else (pads[axis], pads[axis + n])
        found.append(axis_of._replace(before=around[0], after=around[1]))
        l.require_not_negative(positions[axis] - 1)
    return found


def _same_pads(axis: Axis, size: Dim) -> Dim:
    """Both pads together, so that there is a window for each stride: what is missing at the end, if anything is."""
    missing = (axis.positions - 1) * axis.stride + axis.extent - size
    if isinstance(missing, int):
        return max(missing, 0)
    if axis.extent >= axis.stride:
        return missing
    return missing * floor_divide(missing + axis.stride, axis.stride)  # it lies between -stride and stride


def window_of(axes: Sequence[Axis]) -> list[Dim]:
    """kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w"""
    one = Axis(1, 1, 1, 0, 0, 1)
    pair = [*(one,) * (2 - len(axes)), *axes]
    return [getattr(axis, name) for name in ("kernel", "stride", "before", "dilation") for axis in pair]
