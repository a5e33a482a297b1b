"""Convolutions over any number of axes, and convolutions the other way round.

`convolve` is the one way down: along one axis with constant weights as a product of windows, else by the instruction
`conv` over two axes. Further axes are folded into channels: the windows along the first axis are laid beside each
other, so that each of its taps is a channel of a convolution over the others, with the same weights in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from webrnn.ir import Dim, Node, Value
from webrnn.ir.dims import floor_divide

from ..lowering import Lowering, attribute, present, rule
from ..opcodes import GRAIN, PANEL
from ..views import View, count_of
from . import channels_last
from .axes import Axis, axes_of, window_of

MOST_PHASES = 1 << 10
"""Of a transposed convolution along an axis: each is a convolution of its own."""


@rule("Conv")
def _conv(l: Lowering, node: Node) -> None:
    x, w, output = present(node.inputs[0]), present(node.inputs[1]), present(node.outputs[0])
    group = attribute(node, "group", 1)
    view, weights = l.view(x), _weights(l, w)
    _require_floats(l, view)
    l.require_equal(view.shape[1], weights.shape[1] * group)
    axes = axes_of(l, node, _kernel(l, weights), view.shape[2:], l.shape(output)[2:])
    place = l.destinations.get(output)
    l.views[output] = convolve(l, view, weights, _bias(l, node), axes, group, output, place)


def _require_floats(l: Lowering, view: View) -> None:
    if view.dtype != "f32":
        raise l.refuse("it is not of float")


def _weights(l: Lowering, w: Value) -> np.ndarray | View:
    array = l.array(w)
    return l.view(w) if array is None else array


def _bias(l: Lowering, node: Node) -> View | None:
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    return None if bias is None else l.dense(l.view(bias))


def _kernel(l: Lowering, weights: np.ndarray | View) -> list[int]:
    kernel = [size for size in weights.shape[2:] if isinstance(size, int)]
    if len(kernel) != len(weights.shape) - 2:
        raise l.refuse("the size of its kernel is not known")
    return kernel


def convolve(
    l: Lowering, x: View, weights: np.ndarray | View, bias: View | None, axes: Sequence[Axis], group: int,
    output: Value | None = None, place: View | None = None,
) -> View:  # fmt: skip
    """[batch, filters, positions ...] of x[batch, channels, sizes ...]. It is written where `output` belongs, or to
    `place`, if an instruction can write it there."""
    if 0 in (x.shape[1], weights.shape[1]):
        return _only_bias(l, (x.shape[0], weights.shape[0], *(axis.positions for axis in axes)), bias)
    if len(axes) > 2:
        return _folded(l, x, weights, bias, axes, group)
    if isinstance(weights, np.ndarray):
        if len(axes) == 1 and group == 1 and _is_product(x, weights, axes[0]):
            return _conv_as_product(l, x, weights, bias, axes[0], place)
        made = channels_last.convolve(l, x, weights, bias, axes, group, place)
        if made is not None:
            return made
    return _conv_by_windows(l, x, weights, bias, axes, group, output)


def _is_product(x: View, weights: np.ndarray, axis: Axis) -> bool:
    """Whether windows are rows of memory, and there are enough filters to fill vectors, or few positions."""
    is_short = isinstance(axis.positions, int) and axis.positions <= 8
    has_gaps = axis.kernel != 1 and axis.dilation != 1
    is_one = x.shape[0] == 1 and not has_gaps and (weights.shape[0] >= GRAIN or is_short)
    return is_one or not axis.is_stepped


def _conv_as_product(
    l: Lowering, x: View, weights: np.ndarray, bias: View | None, axis: Axis, place: View | None
) -> View:
    """A convolution along one axis as the product of its windows with packed weights, channels last: consecutive
    elements of a window lie behind each other then, so that windows without gaps are views. Worth it where there are
    enough results to fill a vector, or few positions."""
    n_out, channels, taps = weights.shape
    batch, positions = x.shape[0], axis.positions
    rows = _with_pads(l, l.dense(x.transposed([0, 2, 1])), axis)
    padded = rows.shape[1]
    windows = rows.relaid(
        (batch, positions, taps, channels), (padded * channels, axis.stride * channels, axis.dilation * channels, 1)
    )
    flat = _flat_windows(l, windows, taps * channels)
    has_place = place is not None and batch == 1 and place.strides[1] == 1
    result = place.transposed([0, 2, 1]) if has_place else l.temporary((batch, positions, n_out))  # type: ignore[union-attr]
    packed = l.packed_once(weights, lambda array: array.transpose(2, 1, 0).reshape(-1, n_out))
    target = result.without_axis(0) if batch == 1 else result.reshaped((batch * positions, n_out))
    l.emit("gemm", flat, packed, bias, target)
    return result.transposed([0, 2, 1])


def _with_pads(l: Lowering, rows: View, axis: Axis) -> View:
    """Windows lie along axis 1: with zeros around, or without what no window reads. A length that is not known gets
    all of the pads."""
    have = rows.shape[1]
    read = (axis.positions - 1) * axis.stride + axis.extent
    if isinstance(have, int) and isinstance(read, int) and isinstance(axis.before, int):
        if axis.before == 0 and read <= have:
            return rows if read == have else l.dense(rows.sliced(1, 0, read))
        kept: Dim = max(min(have, read - axis.before), 0)
    elif axis.before == 0 and isinstance(axis.after, int) and axis.after <= 0:
        return rows
    else:
        unread = min(axis.after, 0) if isinstance(axis.after, int) else 0
        kept, read = have + unread, axis.before + have + axis.after
    room = l.temporary((rows.shape[0], read, *rows.shape[2:]))
    l.emit("fill", room, 0.0)
    l.copy(rows.sliced(1, 0, kept), room.sliced(1, axis.before, kept))
    return room


def _flat_windows(l: Lowering, windows: View, width: Dim) -> View:
    """[batch * positions, taps * channels]; a copy where windows have gaps or batches do not follow each other."""
    batch, positions, taps, channels = windows.shape
    has_gaps = taps != 1 and windows.strides[2] != channels
    if has_gaps or batch != 1:
        return l.reshaped(l.dense(windows), (batch * positions, width))
    return windows.relaid((positions, width), (windows.strides[1], 1))


def _conv_by_windows(
    l: Lowering, x: View, weights: np.ndarray | View, bias: View | None, axes: Sequence[Axis], group: int,
    output: Value | None,
) -> View:  # fmt: skip
    shape = (x.shape[0], weights.shape[0], *(axis.positions for axis in axes))
    target = l.temporary(shape) if output is None else l.dense_output(output)
    padded, plain = x, []
    for at, axis in enumerate(axes, 2):
        if not axis.is_plain:  # zeros in front, as many as only a run knows; behind the end conv reads zeros
            padded = _zeros_before(l, padded, at, axis.before)
            axis = axis._replace(before=0)
        if not axis.is_plain:
            raise l.refuse(f"a window of {axis.kernel} every {axis.stride} with a dilation of {axis.dilation}")
        plain.append(axis)
    order = [0, *range(2, len(weights.shape)), 1]
    if isinstance(weights, np.ndarray):
        turned = l.once(
            (id(weights), "taps, then channels"), weights, lambda: np.ascontiguousarray(weights.transpose(order))
        )
        kernels = l.constant(turned)
    else:
        kernels = l.dense(weights.transposed(order))
    if kernels.rank == 3:
        kernels = kernels.with_axis(1)
    scratch = l.temporary((count_of(kernels.shape[1:]) * PANEL,))
    l.emit("conv", planes(l, padded), kernels, bias, planes(l, target), scratch, *window_of(plain), group)
    return target


def _zeros_before(l: Lowering, view: View, axis: int, count: Dim) -> View:
    size = view.shape[axis]
    room = l.temporary((*view.shape[:axis], count + size, *view.shape[axis + 1 :]))
    l.emit("fill", room, 0.0)
    l.copy(view, room.sliced(axis, count, size))
    return room


def planes(l: Lowering, view: View) -> View:
    """[n, c, h, w]; one axis is a width."""
    dense = l.dense(view)
    return dense if view.rank == 4 else dense.with_axis(2)


def _folded(
    l: Lowering, x: View, weights: np.ndarray | View, bias: View | None, axes: Sequence[Axis], group: int
) -> View:
    """Without the first axis: its windows are channels, its positions more batches."""
    first, others = axes[0], axes[1:]
    batch, channels, size, *rest = x.shape
    rows = l.reshaped(x, (batch * channels, size, count_of(rest)))
    rows = _with_pads(l, rows if rows.is_contiguous else l.dense(rows), first)
    length, inner = rows.shape[1:]
    windows = rows.relaid(
        (batch, first.positions, channels, first.kernel, inner),
        (channels * length * inner, first.stride * inner, length * inner, first.dilation * inner, 1),
    )
    folded = l.reshaped(l.dense(windows), (batch * first.positions, channels * first.kernel, *rest))
    filters, depth, _, *kernel = weights.shape
    shape = (filters, depth * first.kernel, *kernel)
    kernels = weights.reshape(shape) if isinstance(weights, np.ndarray) else l.reshaped(weights, shape)
    made = convolve(l, folded, kernels, bias, others, group)
    apart = made.relaid((batch, first.positions, *made.shape[1:]), (made.strides[0] * first.positions, *made.strides))
    return apart.transposed([0, 2, 1, *range(3, apart.rank)])


class _Phase(NamedTuple):
    """Every stride-th result of a transposed convolution along one axis, from `first` on: a convolution of its own."""

    first: int
    taps: list[int]
    """Of the kernel, last one first."""
    axis: Axis


@rule("ConvTranspose")
def _conv_transpose(l: Lowering, node: Node) -> None:
    """Results that are `stride` apart have the same taps of the kernel, so they are a convolution with these."""
    x, w, output = present(node.inputs[0]), present(node.inputs[1]), present(node.outputs[0])
    view, weights, group = l.view(x), _weights(l, w), attribute(node, "group", 1)
    _require_floats(l, view)
    l.require_equal(view.shape[1], weights.shape[0])
    kernel, shape = _kernel(l, weights), l.shape(output)
    phases = [_phases(l, *along) for along in zip(*_spread(l, node, kernel, view.shape[2:], shape[2:]), strict=True)]
    bias = _bias(l, node)
    if prod(len(each) for each in phases) == 1:
        chosen = [each[0] for each in phases]
        l.views[output] = _phase(l, view, weights, bias, chosen, group, output)
        return
    if isinstance(weights, np.ndarray) and len(kernel) <= 2 and weights.shape[1] * group >= GRAIN:
        rows = l.temporary((shape[0], *(shape[2:] if len(kernel) == 2 else (1, shape[2])), shape[1]))
        l.views[output] = channels_last.channels_second(rows, len(shape))
        view, phases = _with_shared_zeros(l, view, phases)
    target = l.output(output)
    for chosen in map(list, product(*phases)):
        place = target
        for at, phase in enumerate(chosen, 2):
            place = place.sliced(at, phase.first, phase.axis.positions, len(phases[at - 2]))
        made = _phase(l, view, weights, bias, chosen, group, None, place)
        if not made.is_at(place):
            l.copy(made, place)


def _with_shared_zeros(l: Lowering, x: View, phases: list[list[_Phase]]) -> tuple[View, list[list[_Phase]]]:
    """The zeros that any of the phases reads, made once for all of them."""
    pads = []
    for each in phases:
        axes = [phase.axis for phase in each if phase.taps]
        around = [(axis.before, axis.after) for axis in axes]
        if not all(isinstance(pad, int) for pair in around for pad in pair):
            return x, phases
        pads.append([max([0, *(pair[side] for pair in around)]) for side in range(2)])  # type: ignore[type-var]
    if not any(map(any, pads)):
        return x, phases
    padded = channels_last.padded(l, channels_last.rows_of_channels(x), pads if len(pads) == 2 else [[0, 0], *pads])
    shared = [
        [phase._replace(axis=_inside(phase.axis, around)) for phase in each]
        for each, around in zip(phases, pads, strict=True)
    ]
    return channels_last.channels_second(padded, x.rank), shared


def _inside(axis: Axis, zeros: list[Dim]) -> Axis:
    """The windows of an axis to which zeros were added."""
    return axis._replace(before=axis.before - zeros[0], after=axis.after - zeros[1])


def _spread(
    l: Lowering, node: Node, kernel: list[int], sizes: Sequence[Dim], lengths: Sequence[Dim]
) -> tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int], Sequence[Dim], Sequence[Dim]]:
    """For each axis: kernel, stride, dilation, how much is cut off at the start, the size, the length of the result."""
    n = len(kernel)
    strides, dilations = attribute(node, "strides", [1] * n), attribute(node, "dilations", [1] * n)
    extra, auto = attribute(node, "output_padding", None) or [0] * n, attribute(node, "auto_pad", "NOTSET")
    pads, stated = attribute(node, "pads", [0] * (2 * n)), attribute(node, "output_shape", None)
    cut = list(pads[:n]) if auto not in ("VALID", "SAME_UPPER", "SAME_LOWER") else [0] * n
    if stated is not None or auto.startswith("SAME"):
        for axis, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
            full = (size - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1 + extra[axis]
            total = full - length
            if not isinstance(total, int):
                raise l.refuse("how much is cut off depends on a size that is not known")
            total = max(total, 0)
            cut[axis] = total // 2 if auto == "SAME_UPPER" else total - total // 2
    return kernel, strides, dilations, cut, sizes, lengths


def _phases(l: Lowering, kernel: int, stride: int, dilation: int, cut: int, size: Dim, length: Dim) -> list[_Phase]:
    """Result o reads tap t of element (o + cut - t * dilation) / stride, where that is an integer."""
    found = []
    common = gcd(stride, dilation)
    count = min(stride, length) if isinstance(length, int) else stride
    if count > MOST_PHASES:
        raise l.refuse(f"a stride of {stride}")
    for first in range(count):
        positions = floor_divide(length - first + stride - 1, stride)
        l.require_not_negative(positions)
        taps = [t for t in range(kernel) if (first + cut - t * dilation) % stride == 0][::-1]
        start = (first + cut - taps[0] * dilation) // stride if taps else 0
        apart = dilation // common
        before = -start
        after = positions - 1 + start + (len(taps) - 1) * apart - (size - 1)
        found.append(_Phase(first, taps, Axis(len(taps), 1, apart, before, after, positions)))
    return found


def _phase(
    l: Lowering, x: View, weights: np.ndarray | View, bias: View | None, phases: Sequence[_Phase], group: int,
    output: Value | None, place: View | None = None,
) -> View:  # fmt: skip
    filters = weights.shape[1] * group
    shape = (x.shape[0], filters, *(phase.axis.positions for phase in phases))
    axes = []
    for at, phase in enumerate(phases, 2):
        axis, size = phase.axis, x.shape[at]
        assert isinstance(axis.before, int)
        if axis.before < 0:  # it begins behind the first element
            skipped = min(-axis.before, size) if isinstance(size, int) else -axis.before
            l.require_not_negative(size - skipped)
            x = x.sliced(at, skipped, size - skipped)
            axis = axis._replace(before=0)
        axes.append(axis)
    if 0 in x.shape[2:] or not all(phase.taps for phase in phases):
        return _only_bias(l, shape, bias)
    kernels = _turned(l, weights, [phase.taps for phase in phases], group)
    return convolve(l, x, kernels, bias, axes, group, output, place)


def _only_bias(l: Lowering, shape: Sequence[Dim], bias: View | None) -> View:
    """Where no element of the input is read."""
    if bias is None:
        zeros = l.temporary(shape)
        l.emit("fill", zeros, 0.0)
        return zeros
    repeated = bias.relaid((*bias.shape, *(1,) * (len(shape) - 2)), (1, *(0,) * (len(shape) - 2))).broadcast(shape)
    assert repeated is not None
    return repeated


def _turned(l: Lowering, weights: np.ndarray | View, taps: Sequence[list[int]], group: int) -> np.ndarray | View:
    """[channels, filters / group, kernel ...] as weights of a convolution: [filters, channels / group, taps ...]."""
    channels, filters = weights.shape[:2]
    apart = (group, _part(l, channels, group), filters, *weights.shape[2:])
    order = [0, 2, 1, *range(3, len(apart))]
    shape = (filters * group, apart[1], *(len(each) for each in taps))
    if isinstance(weights, np.ndarray):
        chosen = weights.reshape(apart).transpose(order)
        for axis, each in enumerate(taps, 3):
            chosen = chosen.take(each, axis=axis)
        return np.ascontiguousarray(chosen).reshape(shape)
    view = l.reshaped(weights, apart).transposed(order)
    for axis, each in enumerate(taps, 3):
        view = view.sliced(axis, each[0], len(each), each[1] - each[0] if len(each) > 1 else 1)
    return l.reshaped(view, shape)


def _part(l: Lowering, channels: Dim, group: int) -> Dim:
    part = floor_divide(channels, group)
    l.require_equal(part * group, channels)
    return part
