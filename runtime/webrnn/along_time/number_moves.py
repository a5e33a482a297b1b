"""Ops that count frames, and those that take frames by their number."""

from __future__ import annotations

from webrnn.ir import DType

from .kinds import Along, BreaksTime
from .moves import COUNTING, Move, move
from .numbers import Numbers
from .paces import Pace, mentions_strides
from .view import NodeView
from .window_moves import Window
from .writer import Writer


@move("Range", table=COUNTING)
def range_(view: NodeView) -> Move | None:
    """The numbers of frames, or multiples of them: in a stream they go on where the step before ended."""
    start, limit, step = ((view.fact(index).content or (None,))[0] for index in range(3))
    if isinstance(step, int) and step < 0:
        raise BreaksTime("it counts frames backwards")
    if limit is None or not isinstance(start, int) or not isinstance(step, int):
        raise BreaksTime("it counts frames from a number, or by one, that is only known at the end")
    if start < 0:
        raise BreaksTime("it counts from a negative number")
    (length,) = view.output_shape()
    if length is None:
        raise BreaksTime("how many frames it counts is not known before it runs")
    pace = Pace.of(length)
    along = Along(0, length=length, delay=max(0, -pace.extra))
    dtype = view.facts.dtype(view.node.outputs[0])

    def write(writer: Writer) -> None:
        b, numbers = writer.builder, writer.frame_numbers(pace, along.delay)
        if step != 1:
            numbers = b.op("Mul", numbers, writer.scalar(step))
        if start != 0:
            numbers = b.op("Add", numbers, writer.scalar(start))
        if dtype is not None and dtype is not DType.INT64:
            numbers = b.op("Cast", numbers, to=int(dtype))
        writer.new[view.result] = numbers

    return Move([along], write, unread=frozenset({0, 1, 2}))


@move("Slice", table=COUNTING)
def rows_of_a_table(view: NodeView) -> Move | None:
    """As many rows of what does not depend on frames as there are frames: each frame has its own."""
    starts, ends = view.fact(1).content, view.fact(2).content
    if not view.operands[0].is_timeless or starts is None or ends is None or len(starts) != 1:
        return None
    axis = view.from_front(view.ints(3, "axes")[0] if view.has(3) else 0, view.rank(0))
    step = view.ints(4, "steps")[0] if view.has(4) else 1
    (start,), (end,) = starts, ends
    if not isinstance(start, int) or start < 0 or step != 1 or end is None or not mentions_strides(end):
        return None
    pace = Pace.of(end - start)
    along = Along(axis, length=end - start, delay=max(0, -pace.extra))

    def write(writer: Writer) -> None:
        b, numbers = writer.builder, writer.frame_numbers(pace, along.delay)
        if start != 0:
            numbers = b.op("Add", numbers, writer.scalar(start))
        writer.new[view.result] = b.op("Gather", writer.read(view.operand), numbers, axis=axis)

    return Move([along], write, unread=frozenset({1, 2}))


@move("GatherND")
def gather_nd(view: NodeView) -> Move | None:
    """Indices with one number each pick along the first axis."""
    index, shape = view.operands[1], view.shape(1)
    is_along_first = view.operands[0].axis == 0 and not view.node.attrs.get("batch_dims") and shape[-1:] == (1,)
    if not is_along_first or index.axis is None or index.axis == len(shape) - 1:
        return None
    numbers = view.numbers_of(1)
    return frames_by_number(view, None if numbers is None else numbers.both(lambda array: array[..., 0]))


def frames_by_number(view: NodeView, numbers: Numbers | None) -> Move:
    """Gather: frame i of the result has the frames `i * step + offset` of the operand, for each of some offsets."""
    axis, along, index = view.time_of(0), view.operands[0], view.operands[1]
    step = None if numbers is None else numbers.step
    if numbers is None or step is None or index.axis is None:
        raise BreaksTime("it takes frames by numbers that are no multiple of the frame's own number and a fixed rest")
    if step < 1:
        raise BreaksTime("it takes frames that come later before earlier ones")
    first, last = int(numbers.first.min()), int(numbers.first.max())
    if first < 0:
        raise BreaksTime("it takes frames from the end of the sequence")
    if not along.is_pure or along.head is not None:
        raise BreaksTime("its axis of time counts frames and others together", along.axis)
    if along.mirror is not None:
        along = along.settled(along.earliest)
    own, pace = Pace.of(along.length), Pace.of(index.length)
    slid = Window(last - first + 1, step, -first)
    if pace.rate != own.every(step):
        raise BreaksTime("it does not take as many frames as there are")
    if slid.reads(pace.extra) > own.extra:
        raise BreaksTime("it takes frames behind the end of the sequence")
    others = [place for place in range(numbers.first.ndim) if place != index.axis]
    result = slid.result(along, axis + index.axis, index.length)

    def write(writer: Writer) -> None:
        b = writer.builder
        frames = slid.frames(writer, view.operand, along, 0.0, None)
        if step == 1 and slid.extent == 1 and numbers.first.size == 1:
            new = [axis + place for place in others]
            writer.new[view.result] = b.op("Unsqueeze", frames, b.ints(*new)) if new else frames
            return
        count = b.op("Squeeze", writer.size_of(pace), b.ints(0))
        begins = b.op("Mul", b.op("Range", writer.scalar(0), count, writer.scalar(1)), writer.scalar(step))
        begins = b.op("Unsqueeze", begins, b.ints(*others)) if others else begins
        offsets = b.constant(numbers.first.astype("int64") - first, "offsets")
        writer.new[view.result] = b.op("Gather", frames, b.op("Add", begins, offsets), axis=axis)

    return Move([result], write, {0: slid.reads}, {0: slid.oldest}, unread=frozenset({1}))
