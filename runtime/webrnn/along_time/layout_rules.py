"""Ops that rearrange a tensor: axes, cutting and joining."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from webrnn.ir import WEBRNN, Dim, Shape
from webrnn.ir.dims import quotient

from .kinds import LAST, TIMELESS, Along, BreaksTime
from .paces import FAR, Pace, mentions_strides
from .view import NodeView, meeting, product, reshaped, rule


@rule("Identity")
def identity(view: NodeView) -> Sequence[Along]:
    return [view.operands[0]]


@rule("ExpectShape", domain=WEBRNN)
def expect_shape(view: NodeView) -> Sequence[Along]:
    return [view.operands[0]]


@rule("CastLike")
def cast_like(view: NodeView) -> Sequence[Along]:
    return [view.operands[0]]


@rule("Transpose")
def transpose(view: NodeView) -> Sequence[Along]:
    rank = view.rank(0)
    order = list(view.node.attrs.get("perm") or range(rank)[::-1])
    return [view.operands[0].at(order.index(view.time_of(0)))]


@rule("Reshape", sizes=[1])
def reshape(view: NodeView) -> Sequence[Along]:
    return _by_shape(view)


@rule("Flatten")
def flatten(view: NodeView) -> Sequence[Along]:
    return _by_shape(view)


def _by_shape(view: NodeView) -> Sequence[Along]:
    view.time_of(0)
    return [reshaped(view.operands[0], view.shape(0), view.output_shape(), view.frames)]


def reshape_target(before: Shape | None, target: Sequence[Dim | None], allow_zero: bool) -> Shape:
    """The shape of the result of a Reshape, given that no size is 0."""
    result: list[Dim | None] = []
    for axis, entry in enumerate(target):
        if entry == 0 and not allow_zero:
            result.append(before[axis] if before is not None and axis < len(before) else None)
        else:
            result.append(None if entry == -1 else entry)
    if list(target).count(-1) == 1 and before is not None and None not in before:
        others = [size for size, entry in zip(result, target, strict=True) if entry != -1]
        if None not in others:
            result[list(target).index(-1)] = quotient(product(before), product(others))
    return tuple(result)


@rule("Squeeze")
def squeeze(view: NodeView) -> Sequence[Along]:
    time, rank = view.time_of(0), view.rank(0)
    if view.has(1) and view.fact(1).shape != (0,):
        gone = {view.from_front(axis, rank) for axis in view.ints(1, "axes")}
    else:
        if not all(isinstance(size, int) for size in view.shape(0)):
            raise BreaksTime("which axes it removes depends on the number of frames")
        gone = {axis for axis, size in enumerate(view.shape(0)) if size == 1}
    if time in gone:
        if view.frames == 1:
            return [LAST]
        raise BreaksTime("it removes the axis of time")
    return [view.operands[0].at(time - sum(axis < time for axis in gone))]


@rule("Unsqueeze")
def unsqueeze(view: NodeView) -> Sequence[Along]:
    view.only(0)
    axes = view.ints(1, "axes")
    rank = view.rank(0) + len(axes)
    new = {view.from_front(axis, rank) for axis in axes}
    kept = [axis for axis in range(rank) if axis not in new]
    return [view.operands[0].at(kept[view.time_of(0)])]


@rule("Expand", sizes=[1])
def expand(view: NodeView) -> Sequence[Along]:
    operand, before, after = view.operands[0], view.shape(0), view.output_shape()
    added = len(after) - len(before)
    if operand.axis is not None:
        if after[operand.axis + added] != before[operand.axis]:
            raise BreaksTime("it expands to a fixed number of frames", operand.axis + added)
        return [operand.at(operand.axis + added)]
    if operand.last:
        raise BreaksTime("it hands what comes after the last frame to every frame")
    return [_repeated(view, after, lambda axis: axis < added or before[axis - added] == 1)]


@rule("Tile", sizes=[1])
def tile(view: NodeView) -> Sequence[Along]:
    operand, before = view.operands[0], view.shape(0)
    repeats = view.fact(1).content
    if operand.last or repeats is None or len(repeats) != len(before):
        raise BreaksTime("how often it repeats is only known when it runs")
    if operand.axis is None:
        return [_repeated(view, view.output_shape(), lambda axis: before[axis] == 1)]
    if repeats[operand.axis] != 1:
        raise BreaksTime("it repeats the sequence along time", operand.axis)
    return [operand]


@rule("ConstantOfShape", sizes=[0])
def constant_of_shape(view: NodeView) -> Sequence[Along]:
    return [_repeated(view, view.output_shape(), lambda axis: True)]


def _repeated(view: NodeView, shape: Shape, is_uniform: Callable[[int], bool]) -> Along:
    """A value that does not depend on frames, as often as there are frames."""
    if None in shape:
        raise BreaksTime("a size of its result is only known when it runs")
    axes = [axis for axis, size in enumerate(shape) if mentions_strides(size)]
    if not axes:
        return TIMELESS
    size = shape[axes[0]]
    shares = None if size is None else quotient(size, view.frames)
    if len(axes) > 1 or size is None or not is_uniform(axes[0]):
        raise BreaksTime("the shape of its result depends on the number of frames")
    if shares is None or mentions_strides(shares):
        Pace.of(size)
        shares = 1
    return Along(axes[0], shares, 1, uniform=True)


@rule("Slice", sizes=[1, 2, 3, 4])
def slice_(view: NodeView) -> Sequence[Along]:
    operand, time = view.operands[0], view.time_of(0)
    starts, ends = view.fact(1).content, view.fact(2).content
    axes: Sequence[int]
    if view.has(3):
        axes = [view.from_front(axis, view.rank(0)) for axis in view.ints(3, "axes")]
    elif starts is None:
        raise BreaksTime("which axes it cuts is only known when it runs")
    else:
        axes = range(len(starts))
    if time not in axes:
        return [operand]
    if starts is None or ends is None:
        raise BreaksTime("which frames it takes is only known when it runs", time)
    place = list(axes).index(time)
    step = view.ints(4, "steps")[place] if view.has(4) else 1
    start, end = starts[place], ends[place]
    if step < 0:
        raise BreaksTime("it turns the sequence round in time", time)
    length = view.shape(0)[time]
    to_the_end = end == length or (isinstance(end, int) and end >= (length if isinstance(length, int) else FAR))
    if start == 0 and step == 1 and to_the_end:
        return [operand]
    if to_the_end and operand.is_pure and _is_last(start, view.frames):
        return [LAST]
    raise BreaksTime("it takes frames out of the sequence along time", time)


def _is_last(index: Dim | None, frames: Dim) -> bool:
    return index == -1 or (index is not None and index == frames - 1)


@rule("Split", sizes=[1])
def split(view: NodeView) -> Sequence[Along]:
    time = view.time_of(0)
    if view.axis_attribute(0) == time:
        raise BreaksTime("it cuts the sequence along time", time)
    return [view.operands[0]] * len(view.node.outputs)


@rule("Concat")
def concat(view: NodeView) -> Sequence[Along]:
    rank = next(view.rank(index) for index, operand in enumerate(view.operands) if operand.axis is not None)
    axis = view.from_front(view.node.attrs["axis"], rank)
    if any(operand.axis == axis for operand in view.operands):
        raise BreaksTime("it joins sequences, or adds frames, along time", axis)
    return [meeting(view, range(len(view.operands)), broadcasts=False)]


@rule("Gather", sizes=[1])
def gather(view: NodeView) -> Sequence[Along]:
    data, indices = view.operands
    axis = view.axis_attribute(0)
    if data.axis is None:
        if data.last:
            raise BreaksTime("it combines each frame with what comes after the last one")
        return [indices.at(axis + view.time_of(1))]
    if not indices.is_timeless and not indices.counts:
        raise BreaksTime("which elements of a frame it takes depends on frames")
    if data.axis == axis:
        content = view.fact(1).content
        if data.is_pure and content is not None and len(content) == 1 and _is_last(content[0], view.frames):
            return [LAST]
        raise BreaksTime("it takes frames out of the sequence by their number", axis if view.rank(1) == 1 else None)
    if indices.counts:
        raise BreaksTime("which elements of a frame it takes depends on the number of frames")
    return [data.at(data.axis if data.axis < axis else data.axis + view.rank(1) - 1)]


@rule("Pad", sizes=[1])
def pad(view: NodeView) -> Sequence[Along]:
    view.only(0, 1)
    time, pads, rank = view.time_of(0), view.fact(1).content, view.rank(0)
    axes = list(range(rank))
    if view.has(3):
        axes = [view.from_front(axis, rank) for axis in view.ints(3, "axes")]
    if pads is None or len(pads) != 2 * len(axes):
        raise BreaksTime("how much it pads is only known when it runs", time)
    if time in axes:
        place = axes.index(time)
        if pads[place] != 0 or pads[place + len(axes)] != 0:
            raise BreaksTime("it adds or cuts frames along time", time)
    return [view.operands[0]]


@rule("ReverseSequence", sizes=[1])
def reverse_sequence(view: NodeView) -> Sequence[Along]:
    view.only(0, 1)
    time = view.time_of(0)
    if time in (view.node.attrs.get("time_axis", 0), view.node.attrs.get("batch_axis", 1)):
        raise BreaksTime("it turns the sequence round in time", time)
    view.only(0)
    return [view.operands[0]]


@rule("SequenceMask", domain=WEBRNN, sizes=[0])
def sequence_mask(view: NodeView) -> Sequence[Along]:
    """[steps, batch, 1]; true while a sequence lasts."""
    lengths, x = view.fact(0).content, view.operands[1]
    if x.axis != 0 or not x.is_pure:
        raise BreaksTime("its sequence_lens count something else than frames")
    if lengths is None or any(length != view.frames for length in lengths):
        raise BreaksTime("its sequence_lens say at which frame a sequence ends", 0)
    return [Along(0, uniform=True)]


@rule("OneHot")
def one_hot(view: NodeView) -> Sequence[Along]:
    view.only(0)
    axis = view.from_front(view.node.attrs.get("axis", -1), view.rank(0) + 1)
    time = view.time_of(0)
    return [view.operands[0].at(time + (axis <= time))]
