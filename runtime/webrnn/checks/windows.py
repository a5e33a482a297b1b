"""Convolutions and pools: kernels that fit their input. X is (batch, channels, spatial...)."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.errors import ModelError, UnsupportedOp
from webrnn.ir import WEBRNN, Dim
from webrnn.ir.dims import floor_divide

from .check import ANY, Check, spell
from .registry import check


def spatial_rank(c: Check, *others: int) -> int | None:
    """How many axes windows move along; `others` are operands of the same rank."""
    c.has_rank(0, "X", 3, ANY)
    rank = c.rank(0)
    for index in others:
        if rank is None:
            c.has_rank(index, "W", 3, ANY)
            rank = c.rank(index)
        else:
            c.has_rank(index, "W", rank)
    return None if rank is None else rank - 2


def per_axis(c: Check, name: str, rank: int | None, least: int = 1) -> list[int] | None:
    values = c.attribute(name)
    if values is None:
        return None if rank is None else [1] * rank
    c.that(rank is None or len(values) == rank, f"{list(values)} for {rank} spatial axes", name)
    c.that(all(value >= least for value in values), f"{list(values)} must be at least {least}", name)
    return list(values)


def pads(c: Check, rank: int | None) -> tuple[list[int], list[int]] | None:
    values = c.attribute("pads")
    if values is None or rank is None:
        return None if rank is None else ([0] * rank, [0] * rank)
    c.that(len(values) == 2 * rank, f"{list(values)} for {rank} spatial axes", "pads")
    c.that(min(values, default=0) >= 0, f"{list(values)} has a negative entry", "pads", UnsupportedOp)
    return list(values[:rank]), list(values[rank:])


def kernel_of(c: Check, w: int, rank: int | None) -> Sequence[Dim | None] | None:
    """The size of the kernels in W, which an attribute may repeat."""
    shape, stated = c.shape(w), per_axis(c, "kernel_shape", rank)
    if shape is None:
        return stated if c.attribute("kernel_shape") is not None else None
    if stated is not None and c.attribute("kernel_shape") is not None:
        for have, need in zip(shape[2:], stated, strict=True):
            c.equal(have, need, f"{stated} contradicts W of shape {spell(shape)}", "kernel_shape")
    for size in shape[2:]:
        c.at_least(size, 1, f"W of shape {spell(shape)} has an empty kernel")
    return shape[2:]


def fits(c: Check, rank: int | None, kernel: Sequence[Dim | None] | None) -> None:
    """That a window fits each spatial axis with its pads at least once."""
    strides, dilations, around = per_axis(c, "strides", rank), per_axis(c, "dilations", rank), pads(c, rank)
    auto_pad, shape = c.attribute("auto_pad", "NOTSET"), c.shape(0)
    if shape is None or kernel is None or rank is None or strides is None or dilations is None or around is None:
        return
    if auto_pad.startswith("SAME"):
        return
    for size, length, stride, dilation, before, after in zip(
        kernel, shape[2:], strides, dilations, *around, strict=True
    ):
        if size is None or length is None:
            continue
        room = length + (0 if auto_pad == "VALID" else before + after)
        extent = (size - 1) * dilation + 1
        slack = stride - 1 if c.attribute("ceil_mode", 0) else 0
        c.at_least(room + slack, extent, f"a window of {extent} does not fit a padded length of {room}")


def bias(c: Check, index: int, filters: Dim | None) -> None:
    c.has_rank(index, "B", 1)
    c.has_shape(index, (filters,), "B")


def _groups(c: Check, w: int) -> None:
    group, x, kernels = c.attribute("group", 1), c.shape(0), c.shape(w)
    c.that(group >= 1, f"{group} is not positive", "group")
    if kernels is None:
        return
    message = f"X {spell(x)} and W {spell(kernels)} do not fit with group={group}"
    c.multiple(kernels[0], group, message, "group")
    if x is not None and kernels[1] is not None:
        c.equal(x[1], kernels[1] * group, message, "group")


@check("Conv")
def conv(c: Check) -> None:
    rank = spatial_rank(c, 1)
    fits(c, rank, kernel_of(c, 1, rank))
    _groups(c, 1)
    shape = c.shape(1)
    bias(c, 2, None if shape is None else shape[0])


@check("SmallConv", domain=WEBRNN)
def small_conv(c: Check) -> None:
    rank = spatial_rank(c, 1)
    fits(c, rank, kernel_of(c, 1, rank))
    _groups(c, 1)
    shape = c.shape(1)
    if shape is not None:
        c.has_shape(2, shape[:1], "the scales")
        bias(c, 3, shape[0])


@check("Ring", domain=WEBRNN)
def ring(c: Check) -> None:
    """Frames that all windows have: new ones, or among the last of a history that the ring has room for."""
    axis, history = c.attribute("axis"), c.attribute("history")
    steps = {name: c.attribute(name, 1) for name in ("kernel", "dilation", "stride")}
    for name, number in {**steps, "axis": axis}.items():
        c.that(number >= 1, f"{number} must be at least 1", name)
    for name in ("history", "rate"):
        c.that(c.attribute(name, 0) >= 0, f"{c.attribute(name)} is negative", name)
    kept, rows = c.shape(0), c.shape(1)
    if kept is None or rows is None:
        return
    message = f"frames {spell(rows)} do not fit the ring {spell(kept)}"
    c.that(len(kept) == len(rows) > axis, message)
    for at, (a, b) in enumerate(zip(kept, rows, strict=True)):
        if at != axis:
            c.equal(a, b, message)
    c.at_least(kept[axis], max(history, 1), f"a ring of {kept[axis]} frames has no room for a history of {history}")
    c.has_rank(2, "position", 1)
    if c.shape(2) not in (None, (1,)):
        c.has_shape(2, rows[:1], "position")
    frames = rows[axis]
    if frames is not None:
        count = floor_divide(frames, steps["stride"]) + c.attribute("more", 0)
        needed = (count - 1) * steps["stride"] + (steps["kernel"] - 1) * steps["dilation"] + 1
        c.at_least(count, 0, f"{count} windows")
        c.at_least(frames + history, needed, f"windows need {needed} frames, there are {frames + history}")


@check("ConvInteger")
def conv_integer(c: Check) -> None:
    rank = spatial_rank(c, 1)
    fits(c, rank, kernel_of(c, 1, rank))
    _groups(c, 1)
    if c.given(2):
        c.is_single(2, "x_zero_point")
    per_filter(c, 3, 1, "w_zero_point")


def per_filter(c: Check, index: int, w: int, name: str) -> None:
    """One for all, or one for each output channel."""
    found, shape = c.shape(index), c.shape(w)
    if found is not None and not all(size == 1 for size in found):
        c.has_shape(index, (None if shape is None else shape[0],), name)


@check("QLinearConv")
def qlinear_conv(c: Check) -> None:
    rank = spatial_rank(c, 3)
    fits(c, rank, kernel_of(c, 3, rank))
    _groups(c, 3)
    for index, name in ((1, "x_scale"), (2, "x_zero_point"), (6, "y_scale"), (7, "y_zero_point")):
        c.is_single(index, name)
    per_filter(c, 4, 3, "w_scale")
    per_filter(c, 5, 3, "w_zero_point")
    shape = c.shape(3)
    bias(c, 8, None if shape is None else shape[0])


@check("ConvTranspose")
def conv_transpose(c: Check) -> None:
    rank = spatial_rank(c, 1)
    kernel, group = kernel_of(c, 1, rank), c.attribute("group", 1)
    strides, dilations, around = per_axis(c, "strides", rank), per_axis(c, "dilations", rank), pads(c, rank)
    c.that(group >= 1, f"{group} is not positive", "group")
    x, w = c.shape(0), c.shape(1)
    if w is not None:
        message = f"X {spell(x)} and W {spell(w)} do not fit with group={group}"
        c.multiple(w[0], group, message, "group")
        if x is not None:
            c.equal(x[1], w[0], message)
        bias(c, 2, None if w[1] is None else w[1] * group)
    extra = c.attribute("output_padding")
    if extra is not None and strides is not None and dilations is not None:
        c.that(len(extra) == len(strides), f"{list(extra)} for {len(strides)} spatial axes", "output_padding")
        for size, stride, dilation in zip(extra, strides, dilations, strict=True):
            fitting = 0 <= size < max(stride, dilation)
            c.that(fitting, f"{size} is not from 0 to below the stride of {stride} or the dilation", "output_padding")
    if rank is None or kernel is None or strides is None or dilations is None or around is None or x is None:
        return
    _output_lengths(c, rank, kernel, strides, dilations, around, extra or [0] * rank)


def _output_lengths(
    c: Check, rank: int, kernel: Sequence[Dim | None], strides: list[int], dilations: list[int],
    around: tuple[list[int], list[int]], extra: Sequence[int],
) -> None:  # fmt: skip
    x, stated = c.shape(0), c.attribute("output_shape")
    assert x is not None
    if stated is not None:
        c.that(len(stated) in (rank, rank + 2), f"{list(stated)} for {rank} spatial axes", "output_shape")
        stated = list(stated)[-rank:]
        c.that(min(stated, default=0) >= 0, f"{stated} has a negative size", "output_shape")
    same = c.attribute("auto_pad", "NOTSET").startswith("SAME")
    for axis, (size, length) in enumerate(zip(kernel, x[2:], strict=True)):
        if size is None or length is None:
            continue
        reached = (length - 1) * strides[axis] + (size - 1) * dilations[axis] + 1
        full = reached + extra[axis]
        if stated is not None:  # beyond that, a convolution of the output would have more results than the input has
            most = reached + max(extra[axis], strides[axis] - 1)
            c.at_least(most, stated[axis], f"{stated[axis]} of axis {axis} is more than {most}", "output_shape")
        elif not same and c.attribute("auto_pad", "NOTSET") == "NOTSET":
            cut = around[0][axis] + around[1][axis]
            c.at_least(full, cut, f"pads of {cut} leave less than nothing of {full}", "pads")


@check("MaxPool", "AveragePool", "LpPool")
def pool(c: Check) -> None:
    rank = spatial_rank(c)
    kernel = per_axis(c, "kernel_shape", rank)
    fits(c, rank, kernel)
    if c.op == "LpPool":
        _exponent(c)


@check("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(c: Check) -> None:
    c.has_rank(0, "the input", 3, ANY)
    if c.op == "GlobalLpPool":
        _exponent(c)
    for size in (c.shape(0) or ())[2:]:
        if c.op == "GlobalMaxPool":
            c.at_least(size, 1, f"an input of shape {spell(c.shape(0))} has no maximum")


def _exponent(c: Check) -> None:
    p = c.attribute("p", 2)
    c.that(p >= 1, f"it must be positive, not {p}", "p", ModelError)


@check("MaxUnpool")
def max_unpool(c: Check) -> None:
    rank = spatial_rank(c)
    per_axis(c, "kernel_shape", rank)
    per_axis(c, "strides", rank)
    pads(c, rank)
    shape = c.shape(0)
    c.is_list(2, "output_shape")
    for size in c.content(2) or () if c.given(2) else ():
        c.at_least(size, 0, f"output_shape {spell(c.content(2))} is not a shape")
    if shape is not None:
        c.has_shape(1, shape, "I")
        if c.given(2):
            c.has_shape(2, (len(shape),), "output_shape")
