"""Ops that cut, join and pad along time, and that trade time for other axes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from webrnn.ir import Dim, Shape, Value
from webrnn.ir.dims import quotient

from .kinds import LAST, Along, BreaksTime, Mirror
from .moves import Move, move
from .number_moves import frames_by_number
from .paces import FAR, Pace, mentions_strides
from .view import NodeView, product, reshaped
from .writer import Writer


def _length(view: NodeView, axis: int, rate: int) -> Dim:
    length = view.output_shape()[axis]
    if length is None or Pace.of(length).rate != rate:
        raise BreaksTime("how many frames its result has is not known before it runs", axis)
    return length


def _require_pure(view: NodeView, along: Along) -> None:
    if not along.is_pure:
        raise BreaksTime("its axis of time counts frames and others together", along.axis)


@move("Pad")
def pad(view: NodeView) -> Move | None:
    """Frames around the sequence. They are made where they are read: a history starts from those before it."""
    view.only(0, 1)
    along, time, pads, rank = view.operands[0], view.time_of(0), view.fact(1).content, view.rank(0)
    axes = [view.from_front(axis, rank) for axis in view.ints(3, "axes")] if view.has(3) else list(range(rank))
    if pads is None or len(pads) != 2 * len(axes) or time not in axes:
        return None
    place = axes.index(time)
    before, after = pads[place], pads[place + len(axes)]
    if before == 0 and after == 0:
        return None
    if not isinstance(before, int) or not isinstance(after, int):
        raise BreaksTime("how much it pads is only known when it runs", time)
    _require_pure(view, along)
    length = _length(view, time, Pace.of(along.length).rate)
    mode = view.node.attrs.get("mode", "constant")
    others = [size if axis != time else 0 for axis, size in zip([*axes, *axes], pads, strict=True)]
    if any(size != 0 for size in others):
        if mode != "constant":
            raise BreaksTime("it pads by frames of its own along time and along others at once", time)
        if any(not isinstance(size, int) for size in others):
            raise BreaksTime("how much it pads is only known when it runs", time)
    if mode == "constant":
        return _pad_constant(view, before, after, length, others)
    if mode not in ("edge", "reflect") or min(before, after) < 0:
        raise BreaksTime(f"what it pads with ({mode}) is not known in time", time)
    settled = along.settled(along.earliest if not after else max(along.earliest, -Pace.of(along.length).extra))
    mirrored = replace(
        settled, length=length, delay=settled.delay - before, mirror=Mirror(mode, before, after), start=()
    )

    def write(writer: Writer) -> None:
        writer.new[view.result] = writer.at(view.operand, settled.delay)

    reads = {0: lambda needed: min(needed - before, Pace.of(along.length).extra)}
    return Move([mirrored], write, reads, {0: lambda frame: frame - before})


def _pad_constant(view: NodeView, before: int, after: int, length: Dim, others: list[Dim | None]) -> Move:
    along, time = view.operands[0], view.time_of(0)
    number = 0.0
    if view.has(2):
        value = view.node.inputs[2]
        array = view.constants.get(value) if value is not None else None
        if array is None:
            raise BreaksTime("what it pads with is only known when it runs", time)
        number = float(array.reshape(-1)[0])
    if along.mirror is not None:
        along = along.settled(along.earliest)
    if after > 0:
        along = along.before_end(Pace.of(along.length).extra)
    start = (*[number] * before, *along.start) if before >= 0 else along.start[-before:]
    delay = along.delay - before
    padded = replace(along, length=length, delay=delay, start=start[: max(0, -delay)])

    def write(writer: Writer) -> None:
        value = view.operand
        source = writer.read(value) if along == view.operands[0] else writer.at(value, along.delay)
        at_end = after > 0 and writer.needs_end(value)
        frames = writer.masked(value, along, before > 0 and along.delay > 0, at_end, number, source)
        if any(size != 0 for size in others):
            sizes = writer.builder.ints(*(size for size in others if isinstance(size, int)))
            rest = [None if each is None else writer.read(each) for each in view.node.inputs[2:]]
            writer.write(view.node, [frames, sizes, *rest])
        else:
            writer.new[view.result] = frames

    return Move([padded], write, {0: lambda needed: needed - before}, {0: lambda frame: frame - before})


@move("Slice")
def slice_(view: NodeView) -> Move | None:
    """Leaving out frames at the start makes what follows later, leaving out some at the end makes it shorter."""
    along, time = view.operands[0], view.time_of(0)
    starts, ends = view.fact(1).content, view.fact(2).content
    if starts is None or ends is None:
        return None
    axes = [view.from_front(axis, view.rank(0)) for axis in view.ints(3, "axes")] if view.has(3) else range(len(starts))
    if time not in axes or not along.is_pure:
        return None
    place = list(axes).index(time)
    step = view.ints(4, "steps")[place] if view.has(4) else 1
    start, end = starts[place], ends[place]
    is_to_end = end == along.length or (isinstance(end, int) and end >= FAR)
    if step == 1 and is_to_end and len(axes) == 1 and (start == -1 or start == along.length - 1):
        return _last_frame(view, is_kept=True)
    if not isinstance(start, int) or start < 0 or step < 1 or isinstance(along.length, int):
        return None
    if isinstance(end, int) and 0 <= end < FAR:
        return _head(view, end) if start == 0 and step == 1 and len(axes) == 1 else None
    if start == 0 and step == 1 and is_to_end:
        return None
    length = _length(view, time, Pace.of(along.length).every(step))
    own = along.settled(along.earliest) if along.mirror is not None or step > 1 else along
    e = own.delay + start
    delay = max(0, e // step) if step > 1 else e
    taken = replace(own, length=length, delay=delay, start=own.start[start:])

    def write(writer: Writer) -> None:
        frames = writer.read(view.operand) if own is along else writer.at(view.operand, own.delay)
        if step > 1:
            frames = writer.cut(frames, time, e - delay * step, FAR, step)
        if len(axes) > 1:
            frames = _cut_others(view, writer, frames, list(axes), place)
        writer.new[view.result] = frames

    reads = {0: lambda needed: (needed - 1) * step + 1 + start}
    return Move([taken], write, reads, {0: lambda frame: frame * step + start})


def _head(view: NodeView, count: int) -> Move:
    """The first frames: all of them go on, and whoever reads them takes the first ones."""
    own = view.operands[0].settled(view.operands[0].earliest)

    def write(writer: Writer) -> None:
        writer.new[view.result] = writer.at(view.operand, own.delay)

    return Move([replace(own, head=count)], write)


def _cut_others(view: NodeView, writer: Writer, frames: Value, axes: list[int], place: int) -> Value:
    """The same cut along all axes but that of time."""
    operands: list[Value | None] = []
    for index in (1, 2, 4):
        if not view.has(index):
            operands.append(None)
            continue
        content = view.fact(index).content
        if content is None:
            raise BreaksTime("where it cuts is only known when it runs", axes[place])
        operands.append(writer.sizes([size for at, size in enumerate(content) if at != place]))
    kept = writer.builder.ints(*(axis for at, axis in enumerate(axes) if at != place))
    return writer.builder.op("Slice", frames, operands[0], operands[1], kept, *([operands[2]] if operands[2] else []))


@move("Gather")
def gather(view: NodeView) -> Move | None:
    along, indices = view.operands[0], view.operands[1]
    if along.axis is None or along.axis != view.axis_attribute(0):
        return None
    if indices.axis is not None:
        return frames_by_number(view, view.numbers_of(1))
    if not (indices.is_timeless or indices.counts):
        return None
    content = view.fact(1).content
    if content is None or len(content) != 1 or not along.is_pure:
        return None
    (index,) = content
    if index == -1 or (index is not None and index == along.length - 1):
        return _last_frame(view, is_kept=view.rank(1) == 1)
    return None


def _last_frame(view: NodeView, is_kept: bool) -> Move:
    """The last frame so far, and behind the end the last frame of all. A state keeps it while none comes."""
    along, time = view.operands[0], view.time_of(0)
    own = along.settled(along.earliest)
    if not isinstance(along.length, int):
        own = own.before_end(Pace.of(along.length).extra)
    is_newest = (
        own.delay == 0 and along.is_settled and (isinstance(along.length, int) or Pace.of(along.length).extra == 0)
    )

    def write(writer: Writer) -> None:
        value = view.operand
        frames = writer.at(value, own.delay)
        last = (
            writer.cut(frames, time, -1, FAR) if is_newest and not writer.flushes else writer.held(value, own, frames)
        )
        writer.new[view.result] = last if is_kept else writer.builder.op("Squeeze", last, writer.builder.ints(time))

    rest = 0 if isinstance(along.length, int) else Pace.of(along.length).left(own.delay)
    return Move([LAST], write, rest=rest)


@move("Concat")
def concat(view: NodeView) -> Move | None:
    """Frames put before or behind the sequence are padding."""
    places = [index for index, operand in enumerate(view.operands) if operand.axis is not None]
    rank = view.rank(places[0])
    axis = view.from_front(view.node.attrs["axis"], rank)
    timed = [index for index in places if view.operands[index].axis == axis and not view.operands[index].uniform]
    if not any(view.operands[index].axis == axis for index in places):
        return None
    if len(timed) == len(view.operands) == 2 and view.operands[0].head is not None:
        return _joined_to_head(view, axis)
    if len(timed) != 1 or len(places) > 1:
        raise BreaksTime("it joins sequences along time", axis)
    (at,) = timed
    along = view.operands[at]
    _require_pure(view, along)
    before = [_filled(view, index, axis) for index in range(at)]
    after = [_filled(view, index, axis) for index in range(at + 1, len(view.operands))]
    length = _length(view, axis, Pace.of(along.length).rate)
    if len({number for number, _ in after}) > 1:
        raise BreaksTime("it adds different frames behind the sequence", axis)
    own = along.settled(along.earliest) if along.mirror is not None else along
    if after:
        own = own.before_end(Pace.of(along.length).extra)
    if own.delay > 0 and len({number for number, _ in before}) > 1:
        raise BreaksTime("it adds different frames before the sequence", axis)
    added = tuple(number for number, count in before for _ in range(count))
    delay = own.delay - len(added)
    joined = replace(own, length=length, delay=delay, start=(*added, *own.start)[: max(0, -delay)])

    def write(writer: Writer) -> None:
        value = view.node.inputs[at]
        assert value is not None
        source = writer.read(value) if own is along else writer.at(value, own.delay)
        if added and own.delay > 0:
            source = writer.masked(value, own, True, False, added[0], source)
        if after and writer.needs_end(value):
            source = writer.masked(value, own, False, True, after[0][0], source)
        writer.new[view.result] = source

    reads = {at: lambda needed: needed - len(added)}
    return Move([joined], write, reads, {at: lambda frame: frame - len(added)})


def _joined_to_head(view: NodeView, axis: int) -> Move:
    """The first frames of one sequence, then all of another."""
    first, second = view.operands
    count, pace = first.head or 0, Pace.of(second.length)
    if second.head is not None or not (first.is_pure and second.is_pure) or Pace.of(first.length).rate != pace.rate:
        raise BreaksTime("it joins sequences along time", axis)
    length = _length(view, axis, pace.rate)
    delay = max(first.earliest, second.delay - count, second.earliest - count, 0)
    joined = Along(axis, length=length, delay=delay)

    def write(writer: Writer) -> None:
        head, rest = view.node.inputs
        assert head is not None
        assert rest is not None
        later = writer.at(rest, delay + count)
        is_rest = writer.beside(rest, writer.valid(Along(axis, length=length, delay=delay + count), True, False), axis)
        writer.new[view.result] = writer.builder.op("Where", is_rest, later, writer.at(head, delay))

    return Move([joined], write, {1: lambda needed: needed - count}, {1: lambda frame: frame - count})


def _filled(view: NodeView, index: int, axis: int) -> tuple[float, int]:
    """The number that an operand is filled with, and how many frames it has."""
    value, count = view.node.inputs[index], view.shape(index)[axis]
    fill = view.fill_of(value)
    if fill is None or not isinstance(count, int) or not view.operands[index].is_timeless:
        raise BreaksTime("it adds frames along time that are not all one number", axis)
    return fill, count


@move("Reshape")
def reshape(view: NodeView) -> Move | None:
    """Time for others and back: [batch, time, n] to [batch, time / k, k * n], or to [batch, time * k, n / k]."""
    along, before, after = view.operands[0], view.shape(0), view.output_shape()
    if along.axis is None or along.uniform or not along.is_pure:
        return None
    try:
        if reshaped(along, before, after, along.length).is_pure:
            return None
    except BreaksTime:
        pass
    found = _traded(along, before, after)
    if found is None:
        return None
    axis, gathered, spread = found
    length = after[axis]
    assert length is not None
    pace = Pace.of(along.length)
    rate = pace.every(gathered) * spread
    if Pace.of(length).rate != rate:
        return None
    late = -(-along.earliest // gathered)
    made = Along(axis, length=length, delay=late * spread)

    def write(writer: Writer) -> None:
        frames = writer.at(view.operand, late * gathered)
        writer.write(view.node, [frames, writer.sizes(after)], {"allowzero": 1})

    reads = {0: lambda needed: -(-needed // spread) * gathered}
    return Move([made], write, reads, {0: lambda frame: frame // spread * gathered})


def _traded(along: Along, before: Shape, after: Shape) -> tuple[int, int, int] | None:
    """The axis of frames of the result; how many frames become one of it, and how many of it one frame becomes."""
    assert along.axis is not None
    outer, inner = product(before[: along.axis]), product(before[along.axis + 1 :])
    for axis, size in enumerate(after):
        if not mentions_strides(size) or size is None or product(after[:axis]) != outer:
            continue
        rest = product(after[axis + 1 :])
        gathered, spread = quotient(rest, inner), quotient(inner, rest)
        if isinstance(gathered, int) and gathered > 1 and size * gathered == along.length:
            return axis, gathered, 1
        if isinstance(spread, int) and spread > 1 and size == along.length * spread:
            return axis, 1, spread
    return None


@move("Resize")
def resize(view: NodeView) -> Move | None:
    """Each frame several times."""
    along, time, rank, attrs = view.operands[0], view.time_of(0), view.rank(0), view.node.attrs
    axes = [view.from_front(axis, rank) for axis in attrs.get("axes") or range(rank)]
    if time not in axes or not along.is_pure:
        return None
    length = view.output_shape()[time]
    if length is None or length == along.length:
        return None
    times = quotient(length, along.length)
    if not isinstance(times, int) or times < 1 or not _repeats(attrs):
        raise BreaksTime("it makes frames of several others (mode nearest with a whole factor repeats them)", time)
    scales = view.fact(2).floats if view.has(2) else None
    if scales is None:
        sizes = view.shape(0), view.output_shape()
        factors = [
            1 if a == b else quotient(b, a) for a, b in zip(*sizes, strict=True) if a is not None and b is not None
        ]
        if len(factors) != rank or not all(isinstance(factor, int) for factor in factors):
            raise BreaksTime("by how much it makes frames more is only known when it runs", time)
        scales = tuple(float(str(factors[axis])) for axis in axes)
    settled = along.settled(along.earliest)
    made = replace(settled, length=length, delay=settled.delay * times)

    def write(writer: Writer) -> None:
        by = writer.builder.constant(np.array(scales, np.float32), "scales")
        writer.write(view.node, [writer.at(view.operand, settled.delay), None, by])

    return Move([made], write, {0: lambda needed: -(-needed // times)}, {0: lambda frame: frame // times})


def _repeats(attrs: dict[str, object]) -> bool:
    """Whether a whole factor only repeats: place o is of o // factor."""
    if attrs.get("mode", "nearest") != "nearest" or attrs.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return False
    mode, rounding = attrs.get("coordinate_transformation_mode", "half_pixel"), attrs.get("nearest_mode")
    if mode == "asymmetric":
        return rounding == "floor"
    return mode in ("half_pixel", "pytorch_half_pixel") and rounding in (
        None,
        "round_prefer_floor",
        "round_prefer_ceil",
    )
