"""Convolutions and pools whose channels lie behind each other.

Vectors run across channels then, windows are runs of memory, and a chain of convolutions, pools and element-wise ops
never transposes. What comes in with other strides is copied once, together with the zeros around it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import Dim

from ..lowering import Lowering
from ..opcodes import GRAIN
from ..views import View
from .axes import Axis
from .pads import fill

ONE = Axis(1, 1, 1, 0, 0, 1)
"""The axis that data along one axis lacks."""

FEWEST_CHANNELS = 4
"""Fewer do not fill the vectors of any target."""


def rows_of_channels(x: View) -> View:
    """[n, h, w, c] of x[n, c, h, w] or x[n, c, w]"""
    return x.transposed([0, 2, 3, 1]) if x.rank == 4 else x.transposed([0, 2, 1]).with_axis(1)


def channels_second(rows: View, rank: int) -> View:
    """The other way round."""
    return rows.transposed([0, 3, 1, 2]) if rank == 4 else rows.without_axis(1).transposed([0, 2, 1])


def is_channels_last(rows: View) -> bool:
    return rows.strides[3] == 1 or rows.shape[3] == 1


def pair_of(axes: Sequence[Axis]) -> list[Axis]:
    return [*(ONE,) * (2 - len(axes)), *axes]


def steps_of(axes: Sequence[Axis]) -> list[int]:
    """kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w"""
    return [getattr(axis, name) for name in ("kernel", "stride", "dilation") for axis in axes]


def convolve(
    l: Lowering, x: View, weights: np.ndarray, bias: View | None, axes: Sequence[Axis], group: int, place: View | None
) -> View | None:
    """[batch, filters, positions ...] of x[batch, channels, sizes ...], at `place` if its channels lie behind each
    other; None where vectors across filters do not pay."""
    pair, rows = pair_of(axes), rows_of_channels(x)
    filters, depth = weights.shape[0], weights.shape[1]
    if not all(axis.is_stepped for axis in pair) or not _pays(rows, filters, group, pair):
        return None
    if filters // group < GRAIN and group > 1:
        if depth > 1 and pair[1].dilation > 1:
            return None
        return _filtered(l, rows, weights, bias, pair, group, place, x.rank)
    padded = with_zeros(l, rows, pair)
    target = place_of(l, rows, filters, pair, place)
    width = filters // group
    kernels = weights.reshape(filters, depth, *(axis.kernel for axis in pair))
    for g in range(group):
        own = slice(g * width, (g + 1) * width)
        part = bias if bias is None or group == 1 else bias.sliced(0, g * width, width)
        packed = _packed(l, weights, kernels[own], f"group {g}")
        l.emit(
            "conv_rows", padded.sliced(3, g * depth, depth), packed, part, target.sliced(3, g * width, width),
            *steps_of(pair), 0,
        )  # fmt: skip
    return channels_second(target, x.rank)


def _pays(rows: View, filters: int, group: int, pair: Sequence[Axis]) -> bool:
    """Few filters do not fill vectors. They pay where windows have many taps, or where channels lie behind each other
    already: the other instruction adds up taps one by one, in planes."""
    channels, taps = rows.shape[3], pair[0].kernel * pair[1].kernel
    if filters >= FEWEST_CHANNELS or group > 1 or not isinstance(channels, int):
        return filters >= FEWEST_CHANNELS
    if is_channels_last(rows) and channels >= (2 if filters > 1 else 2 * GRAIN):
        return True
    return taps > 1 and channels <= taps


def place_of(l: Lowering, rows: View, filters: int, pair: Sequence[Axis], place: View | None) -> View:
    if place is not None and is_channels_last(rows_of_channels(place)):
        return rows_of_channels(place)
    return l.temporary((rows.shape[0], *(axis.positions for axis in pair), filters))


def _packed(l: Lowering, weights: np.ndarray, kernels: np.ndarray, which: str) -> View:
    """kernels[filters, channels, h, w] as a product takes them: the channels of a tap lie behind each other."""
    filters = kernels.shape[0]
    matrix = l.once(
        (id(weights), f"channels last, {which}"), weights, lambda: kernels.transpose(2, 3, 1, 0).reshape(-1, filters)
    )
    return l.packed(matrix)


def _filtered(
    l: Lowering, rows: View, weights: np.ndarray, bias: View | None, pair: Sequence[Axis], group: int,
    place: View | None, rank: int,
) -> View:  # fmt: skip
    """Few filters for each group. If a group has several channels or filters, each filter gets its channels side by
    side first: x[n, h, w * depth, filters], in which the taps of a filter are a window of one channel."""
    filters, depth = weights.shape[:2]
    height, width = pair
    padded = with_zeros(l, rows, pair)
    if (filters, depth) != (group, 1):
        n, h, w, _ = padded.shape
        strides = padded.strides
        spread = padded.relaid(
            (n, h, w, depth, group, filters // group), (*strides[:3], strides[3], strides[3] * depth, 0)
        )
        padded = l.reshaped(l.dense(spread), (n, h, w * depth, filters))
        width = width._replace(kernel=width.kernel * depth, stride=width.stride * depth)
    kernels = weights.reshape(filters, depth, height.kernel, -1)
    taps = l.once(
        (id(weights), "taps first"),
        weights,
        lambda: np.ascontiguousarray(kernels.transpose(2, 3, 1, 0)).reshape(-1, filters),
    )
    target = place_of(l, rows, filters, pair, place)
    l.emit("depthwise", padded, l.constant(taps), bias, target, *steps_of((height, width)), 0)
    return channels_second(target, rank)


def with_zeros(l: Lowering, rows: View, pair: Sequence[Axis], zero: View | None = None) -> View:
    """rows[n, h, w, c] with the zeros that windows read around it, and its channels behind each other. `zero` is the
    number of one element that stands for zero, if it is not 0.0."""
    room, inside, kept = [], [], []
    for axis, have in zip(pair, rows.shape[1:3], strict=True):
        length, before, count = _length_with_zeros(axis, have)
        room.append(length)
        inside.append(before)
        kept.append(count)
    for at, count in enumerate(kept, 1):
        if count != rows.shape[at]:
            rows = rows.sliced(at, 0, count)
    if [*rows.shape[1:3]] == room:
        return rows if is_channels_last(rows) else l.dense(rows)
    return _in_room(l, rows, room, inside, zero)


def padded(l: Lowering, rows: View, pads: Sequence[Sequence[Dim]]) -> View:
    """rows[n, h, w, c] with zeros before and behind its height and its width."""
    room = [before + size + after for (before, after), size in zip(pads, rows.shape[1:3], strict=True)]
    return _in_room(l, rows, room, [before for before, _ in pads])


def _in_room(l: Lowering, rows: View, room: Sequence[Dim], at: Sequence[Dim], zero: View | None = None) -> View:
    made = l.temporary((rows.shape[0], *room, rows.shape[3]), rows.dtype)
    fill(l, made, np.zeros(1, np.float32) if zero is None else zero)
    l.copy(rows, made.sliced(1, at[0], rows.shape[1]).sliced(2, at[1], rows.shape[2]))
    return made


def _length_with_zeros(axis: Axis, have: Dim) -> tuple[Dim, Dim, Dim]:
    """How long an axis is with its zeros, where the elements begin, and how many of them are read."""
    read = (axis.positions - 1) * axis.stride + axis.extent
    if isinstance(have, int) and isinstance(read, int) and isinstance(axis.before, int):
        if axis.before == 0 and read <= have:
            return have, 0, have
        return read, axis.before, max(min(have, read - axis.before), 0)
    unread = min(axis.after, 0) if isinstance(axis.after, int) else 0
    if axis.before == 0 and isinstance(axis.after, int) and axis.after <= 0:
        return have, 0, have
    return axis.before + have + axis.after, axis.before, have + unread
