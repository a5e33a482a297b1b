"""Ops that rearrange a tensor."""

from __future__ import annotations

from math import prod

from webrnn.errors import ModelError
from webrnn.ir import Dim, DType, Shape, SymbolicDim
from webrnn.ir.dims import floor_divide, is_nonnegative
from webrnn.shapes.facts import size_of

from .check import ANY, Check, spell
from .registry import check


@check("Reshape")
def reshape(c: Check) -> None:
    c.is_list(1, "shape")
    target, shape = c.content(1), c.shape(0)
    if target is None:
        return
    allow_zero = bool(c.attribute("allowzero", 0))
    c.that(not (allow_zero and 0 in target and -1 in target), f"shape {spell(target)} has both 0 and -1", "allowzero")
    for entry in target:
        c.at_least(entry, -1, f"shape {spell(target)} is not a shape")
    c.that(target.count(-1) <= 1, f"shape {spell(target)} is not a shape")
    if shape is None:
        return
    sizes: list[Dim | None] = []
    copied = []
    special: list[Dim] = []  # one of them is 0 where an open entry is 0 or -1, which mean something else
    for axis, entry in enumerate(target):
        if entry == 0 and not allow_zero:
            c.that(axis < len(shape), f"shape {spell(target)} copies axis {axis} of an input of shape {spell(shape)}")
            sizes.append(shape[axis])
            copied.append(axis)
        else:
            sizes.append(entry)
            if isinstance(entry, SymbolicDim) and not is_nonnegative(entry):
                special.append(entry + 1)
            copies = not allow_zero and entry not in shape[axis : axis + 1]
            if isinstance(entry, SymbolicDim) and copies and not is_nonnegative(entry - 1):
                special.append(entry)
    total, made = size_of(shape), size_of(tuple(sizes))
    message = f"an input of shape {spell(shape)} cannot be reshaped to {spell(tuple(sizes))}"
    if -1 not in sizes and total is not None and made is not None:
        c.one_is_zero([*special, total - made], message)
    if -1 not in sizes or special:
        return
    rest = size_of(tuple(size for axis, size in enumerate(shape) if axis not in copied))
    others = size_of(tuple(size for axis, size in enumerate(sizes) if axis not in copied and size != -1))
    if isinstance(others, int):
        c.that(others != 0, message)
        c.multiple(rest, others, message)


@check("Flatten")
def flatten(c: Check) -> None:
    axis, rank = c.attribute("axis", 1), c.rank(0)
    if rank is not None:
        c.that(-rank <= axis <= rank, f"axis {axis} is outside a tensor of rank {rank}", "axis")


@check("Squeeze")
def squeeze(c: Check) -> None:
    c.is_list(1, "axes")
    shape = c.shape(0)
    for axis in c.axes(c.ints(1), c.rank(0)) or ():
        assert shape is not None
        c.equal(shape[axis], 1, f"axis {axis} of an input of shape {spell(shape)} is not 1")


@check("Unsqueeze")
def unsqueeze(c: Check) -> None:
    c.is_list(1, "axes")
    axes, rank = c.ints(1), c.rank(0)
    if axes is not None and rank is not None:
        c.axes(axes, rank + len(axes))


@check("Transpose")
def transpose(c: Check) -> None:
    perm, rank = c.attribute("perm"), c.rank(0)
    if perm is not None and rank is not None:
        c.that(sorted(perm) == list(range(rank)), f"{perm} is not a permutation of the {rank} axes", "perm")


@check("Expand")
def expand(c: Check) -> None:
    c.is_list(1, "shape")
    target, shape = c.content(1), c.shape(0)
    for entry in target or ():
        c.at_least(entry, 0, f"shape {spell(target)} has a negative size")
    if target is not None and shape is not None:
        c.broadcast_shapes(shape, target)


@check("Tile")
def tile(c: Check) -> None:
    c.is_list(1, "repeats")
    rank, counts = c.rank(0), c.shape(1)
    if rank is not None and counts is not None:
        c.equal(counts[0] if counts else 1, rank, f"{spell(counts)} repeats for an input of rank {rank}")
    for count in c.content(1) or ():
        c.at_least(count, 0, f"repeats {spell(c.content(1))} has a negative entry")


@check("Concat")
def concat(c: Check) -> None:
    c.that(len(c.operands) > 0, "at least one input is required", kind=ModelError)
    shapes = [shape for index in range(len(c.operands)) if (shape := c.shape(index)) is not None]
    if not shapes:
        return
    first = shapes[0]
    axis = c.axis_attribute(0, len(first))
    for shape in shapes[1:]:
        message = f"{spell(first)} and {spell(shape)} cannot be joined on axis {axis}"
        c.that(len(shape) == len(first), message)
        for index, (a, b) in enumerate(zip(first, shape, strict=True)):
            if index != axis:
                c.equal(a, b, message)


@check("Split")
def split(c: Check) -> None:
    axis, shape = c.axis_attribute(0, c.rank(0)), c.shape(0)
    length = None if axis is None or shape is None else shape[axis]
    parts = c.attribute("num_outputs")
    if c.given(1):
        c.is_list(1, "split")
        c.that(parts is None, "both split and num_outputs are given", kind=ModelError)
        count, lengths = c.shape(1), c.content(1)
        if count is not None:
            c.equal(count[0] if count else 1, c.n_outputs, f"{spell(count)} split sizes for {c.n_outputs} outputs")
        if lengths is not None:
            message = f"split {spell(lengths)} does not add up to axis {axis} of an input of shape {spell(shape)}"
            for size in lengths:
                c.at_least(size, 0, message)
            known = [size for size in lengths if size is not None]
            c.equal(sum(known) if len(known) == len(lengths) else None, length, message)
        return
    parts = c.n_outputs if parts is None else parts
    c.that(0 < parts == c.n_outputs, f"it is {parts}, the node has {c.n_outputs} outputs", "num_outputs", ModelError)
    equal_parts(c, length, parts)


@check("SplitToSequence")
def split_to_sequence(c: Check) -> None:
    axis, shape, lengths = c.axis_attribute(0, c.rank(0)), c.shape(0), c.shape(1)
    if not c.given(1):
        return
    c.is_list(1, "split")
    numbers = c.content(1)
    if lengths is None or numbers is None:
        return
    message = f"split {spell(numbers)} does not add up to axis {axis} of an input of shape {spell(shape)}"
    for number in numbers:
        c.at_least(number, 0 if lengths else 1, message)
    if lengths and axis is not None and shape is not None and None not in numbers:
        c.equal(sum(number for number in numbers if number is not None), shape[axis], message)


def equal_parts(c: Check, length: Dim | None, parts: int) -> None:
    """That none of the parts, of which only the last may be smaller, is of less than nothing."""
    if length is not None:
        size = floor_divide(length + parts - 1, parts)
        c.at_least(length - size * (parts - 1), 0, f"{length} elements cannot be split into {parts} parts")


@check("Slice")
def slice_(c: Check) -> None:
    lengths: list[Dim] = []
    for index, name in ((1, "starts"), (2, "ends"), (3, "axes"), (4, "steps")):
        if c.given(index):
            c.is_list(index, name)
            shape = c.shape(index)
            if shape is not None and (not shape or shape[0] is not None):
                lengths.append((shape[0] if shape else 1) or 0)
    for length in lengths[1:]:
        c.equal(lengths[0], length, "starts, ends, axes and steps have different lengths")
    rank = c.rank(0)
    if c.given(3):
        c.axes(c.ints(3), rank)
    elif lengths and rank is not None:
        c.at_least(rank, lengths[0], f"{lengths[0]} starts for a tensor of rank {rank}")
    c.that(0 not in (c.content(4) or ()), "a step is 0")


@check("Pad")
def pad(c: Check) -> None:
    c.is_list(1, "pads")
    c.is_list(3, "axes")
    if c.given(2):
        c.is_single(2, "constant_value")
    shape, rank, mode = c.shape(0), c.rank(0), c.attribute("mode", "constant")
    axes: list[int] | None
    if c.given(3):
        axes = c.axes(c.ints(3), rank)
        listed = c.shape(3)
        n_axes = None if listed is None else listed[0] if listed else 1
    else:
        axes, n_axes = None if rank is None else list(range(rank)), rank
    length = c.shape(1)
    if length is not None and n_axes is not None:
        have = length[0] if length else 1
        c.equal(have, n_axes * 2, f"{have} pads for {n_axes} axes")
    pads = c.content(1)
    if pads is None or axes is None or shape is None or len(pads) != 2 * len(axes):
        return
    for index, axis in enumerate(axes):
        _padded_axis(c, axis, shape, pads[index], pads[index + len(axes)], mode)


def _padded_axis(c: Check, axis: int, shape: Shape, before: Dim | None, after: Dim | None, mode: str) -> None:
    size = shape[axis]
    if size is None or before is None or after is None:
        return
    message = f"pads {before} and {after} of axis {axis} of {spell(shape)}"
    c.at_least(size + before + after, 0, f"{message} leave less than nothing")
    if mode == "constant" or (before == 0 and after == 0):
        return
    adds = [each for each in (before, after) if not isinstance(each, int) or each > 0]
    if adds:
        c.at_least(size, 1, f"{message}: an empty axis cannot be padded with mode {mode}")
    if mode == "reflect":  # an element is mirrored once: there are no more of them than the axis has
        for each in adds:
            c.at_least(size - 1, each, f"{message}: more than the axis has to reflect", "mode")


@check("CenterCropPad")
def center_crop_pad(c: Check) -> None:
    c.is_list(1, "shape")
    axes = c.attribute("axes")
    c.axes(axes, c.rank(0), attribute="axes")
    count = c.rank(0) if axes is None else len(axes)
    sizes = c.shape(1)
    if sizes is not None and count is not None:
        c.equal(sizes[0] if sizes else 1, count, f"{spell(sizes)} sizes for {count} axes")
    for size in c.content(1) or ():
        c.at_least(size, 0, f"{size} is not a size")


@check("DepthToSpace")
def depth_to_space(c: Check) -> None:
    c.has_rank(0, "input", 4)
    block, shape = c.attrs["blocksize"], c.shape(0)
    c.that(block >= 1, f"{block} is not positive", "blocksize")
    if shape is not None:
        c.multiple(shape[1], block**2, f"{shape[1]} channels are not divisible by {block} squared", "blocksize")


@check("SpaceToDepth")
def space_to_depth(c: Check) -> None:
    c.has_rank(0, "input", 4)
    block, shape = c.attrs["blocksize"], c.shape(0)
    c.that(block >= 1, f"{block} is not positive", "blocksize")
    for size in (shape or ())[2:]:
        c.multiple(size, block, f"{spell(shape)} is not divisible by {block}", "blocksize")


@check("Trilu")
def trilu(c: Check) -> None:
    c.has_rank(0, "input", 2, ANY)
    if c.given(1):
        c.is_single(1, "k")


@check("ReverseSequence")
def reverse_sequence(c: Check) -> None:
    c.has_rank(0, "input", 2, ANY)
    batch_axis, time_axis = c.attribute("batch_axis", 1), c.attribute("time_axis", 0)
    c.that(batch_axis in (0, 1), f"it must be 0 or 1, not {batch_axis}", "batch_axis")
    c.that(time_axis in (0, 1), f"it must be 0 or 1, not {time_axis}", "time_axis")
    c.that(batch_axis != time_axis, "batch_axis and time_axis are the same", "batch_axis")
    shape = c.shape(0)
    c.has_rank(1, "sequence_lens", 1)
    if shape is not None:
        c.has_shape(1, (shape[batch_axis],), "sequence_lens")
        for length in c.content(1) or ():
            message = f"sequence_lens {spell(c.content(1))} do not fit {shape[time_axis]} steps"
            c.at_least(length, 0, message)
            c.at_least(shape[time_axis], length, message)


@check("ConstantOfShape")
def constant_of_shape(c: Check) -> None:
    c.is_list(0, "input")
    for size in c.content(0) or ():
        c.at_least(size, 0, f"the output would have the shape {spell(c.content(0))}")
    value = c.attribute("value")
    if value is not None:
        c.that(prod(getattr(value, "shape", ())) == 1, "it must hold one value", "value")


@check("OneHot")
def one_hot(c: Check) -> None:
    rank = c.rank(0)
    c.axis_attribute(-1, None if rank is None else rank + 1)
    c.is_single(1, "depth")
    c.has_shape(2, (2,), "values")
    for depth in c.content(1) or ():
        c.at_least(depth, 1, f"depth is {depth}")


@check("EyeLike")
def eye_like(c: Check) -> None:
    c.has_rank(0, "input", 2)


@check("Range")
def range_(c: Check) -> None:
    for index, name in enumerate(("start", "limit", "delta")):
        c.is_single(index, name)
    c.that(c.ints(2) != (0,), "delta is 0")
    if c.dtype(0) == DType.FLOAT16:
        from webrnn.reference.dtypes import computing_dtype  # few models have a Range

        computing_dtype(c.attribute("stash_type", DType.FLOAT), "stash_type")
