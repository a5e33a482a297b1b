"""Ops that slide a window along time: convolutions, pooling, framing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.ir import Dim, Value

from .kinds import Along, BreaksTime
from .means import Counted, counts_along
from .moves import Move, move
from .paces import FAR, Pace
from .view import NodeView
from .writer import Writer


@dataclass(frozen=True, slots=True)
class Window:
    """Frame i of the result reads `extent` frames of the operand, from frame `i * step - before`."""

    extent: int
    step: int = 1
    before: int = 0
    dilation: int = 1
    """Of the frames that it reads only each so many count."""

    def delay(self, along: Along) -> int:
        """Of the result: a frame is there when the last frame that it reads is."""
        newest = self.extent - 1 - self.before
        if along.mirror is not None:
            newest = max(newest, along.mirror.reach)
        return max(0, (along.delay + newest) // self.step)

    def history(self, along: Along) -> int:
        """How many frames before those of a step the windows of the step begin; negative if they begin later."""
        return self.before - along.delay + self.delay(along) * self.step

    def reads(self, needed: int) -> int:
        return (needed - 1) * self.step - self.before + self.extent

    def oldest(self, frame: int) -> int:
        return frame * self.step - self.before

    def result(self, along: Along, axis: int, length: Dim) -> Along:
        return Along(axis, length=length, delay=self.delay(along))

    def frames(self, writer: Writer, value: Value, along: Along, pad: float, order: tuple[int, ...] | None) -> Value:
        """The frames that the windows of a step see: windows begin with the first and are `step` apart."""
        if along.mirror is not None:
            if (self.before > 0 and along.delay > 0) or writer.needs_end(value):
                raise BreaksTime("it pads what is padded by frames of its own already")
            frames = writer.buffer(value, along, self.history(along))
        else:
            masked = self._masked(writer, value, along, pad)
            frames = writer.buffer(value, along, self.history(along), pad, order, masked)
        late = self.history(along) - (self.extent - 1)
        return frames if late <= 0 or along.axis is None else writer.cut(frames, along.axis, 0, -late)

    def spread(self, writer: Writer, value: Value, along: Along, pad: float, order: tuple[int, ...]) -> Value | None:
        """The frames that count, window by window: nothing else of a long history is read. None where `frames` is as
        quick."""
        if self.dilation == 1 or along.mirror is not None:
            return None
        masked = self._masked(writer, value, along, pad)
        kernel = (self.extent - 1) // self.dilation + 1
        steps = {"kernel": kernel, "dilation": self.dilation, "stride": self.step}
        return writer.spread(value, along, self.history(along), pad, order, masked, **steps)

    def _masked(self, writer: Writer, value: Value, along: Along, pad: float) -> Value:
        """The frames of a step, as late as `along` says, with padding where there are no frames."""
        source = writer.read(value) if along == writer.along[value] else writer.at(value, along.delay)
        return writer.masked(value, along, self.before > 0 and along.delay > 0, writer.needs_end(value), pad, source)


def _known_end(along: Along, slid: Window, length: Dim) -> Along:
    """The operand of a window: late enough if the window reads frames behind its last one, and with frames around it
    made where the window pads as well."""
    own = Pace.of(along.length)
    reads_behind = slid.reads(Pace.of(length).extra) > own.extra
    if along.mirror is not None and (slid.before > 0 or reads_behind):
        along = along.settled(along.earliest)
    return along.before_end(own.extra) if reads_behind else along


def _checked_length(view: NodeView, axis: int, step: int) -> Dim:
    """The length of the result, which has a frame for every `step` frames of the operand."""
    rate = Pace.of(view.operands[0].length).every(step)
    length = view.output_shape()[axis]
    if length is None or Pace.of(length).rate != rate:
        raise BreaksTime("how many frames its result has is not known before it runs", axis)
    return length


_WEIGHTS = {"QLinearConv": 3}
"""The operand that is the weights, where it is not the second."""


def _padding(view: NodeView, time: int) -> float:
    """What a window reads where there are no frames: what counts for nothing in it."""
    op, dtype = view.node.op, view.fact(0).dtype
    if op == "MaxPool":
        kind = None if dtype is None else dtype.array_type
        if kind is None or kind.kind not in "fiu":
            raise BreaksTime("what its elements are is not known, so neither what the least of them is", time)
        return float("-inf") if kind.kind == "f" else float(np.iinfo(kind).min)
    zero = 2 if op in ("ConvInteger", "QLinearConv") else None
    if zero is None or not view.has(zero):
        return 0.0
    point = view.fill_of(view.node.inputs[zero])
    if point is None:
        raise BreaksTime("the zero point that it pads with is only known when it runs", time)
    return point


@dataclass(frozen=True, slots=True)
class Places:
    """What the attributes of a convolution or a pooling say of each axis of places."""

    extents: list[int]
    steps: list[int]
    pads: list[list[int]]
    """Before and after."""
    dilations: list[int]


def _places(view: NodeView, kernel: Sequence[Dim | None]) -> Places:
    attrs, n = view.node.attrs, view.rank(0) - 2
    if any(not isinstance(size, int) for size in kernel):
        raise BreaksTime("how many frames it looks at is only known when it runs", view.time_of(0))
    dilations = attrs.get("dilations") or [1] * n
    steps = list(attrs.get("strides") or [1] * n)
    extents = [(int(str(size)) - 1) * by + 1 for size, by in zip(kernel, dilations, strict=True)]
    given = attrs.get("pads") or [0] * 2 * n
    pads = [[given[place], given[place + n]] for place in range(n)]
    mode = attrs.get("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        pads = [_same(view.shape(0)[2 + i], extents[i], steps[i], mode) for i in range(n)]
    elif mode == "VALID":
        pads = [[0, 0] for _ in range(n)]
    return Places(extents, steps, pads, list(dilations))


def _same(size: Dim | None, extent: int, step: int, mode: str) -> list[int]:
    """As many places as there are strides, the last one begun counted."""
    if isinstance(size, int):
        rest = size
    elif size is not None:
        pace = Pace.of(size)
        pace.every(step)
        rest = pace.extra
    elif step == 1:
        rest = 0
    else:
        raise BreaksTime("how much it pads is only known when it runs")
    total = max(0, (-(-rest // step) - 1) * step + extent - rest)
    return [total // 2, total - total // 2] if mode == "SAME_UPPER" else [total - total // 2, total // 2]


def _channels_last(rank: int) -> tuple[int, ...]:
    return (0, *range(2, rank), 1)


def _without_time(attrs: dict[str, Any], places: Places, place: int) -> dict[str, Any]:
    """Attributes that pad all axes but that of time."""
    pads = [[0, 0] if index == place else pad for index, pad in enumerate(places.pads)]
    kept = {name: item for name, item in attrs.items() if name not in ("auto_pad", "pads", "ceil_mode")}
    return {**kept, "pads": [pad[0] for pad in pads] + [pad[1] for pad in pads]}


@move("Conv", "ConvInteger", "QLinearConv", "MaxPool", "AveragePool", "LpPool")
def window(view: NodeView) -> Move | None:
    """[batch, channels, *places]"""
    op, attrs, time = view.node.op, view.node.attrs, view.time_of(0)
    is_pool = op.endswith("Pool")
    if time < 2:
        return None
    view.only(0)
    if len(view.node.outputs) > 1 and view.node.outputs[1] is not None:
        raise BreaksTime("its indices count over all frames", time)
    if not view.operands[0].is_pure:
        raise BreaksTime("its axis of time counts frames and others together", time)
    kernel = attrs["kernel_shape"] if is_pool else attrs.get("kernel_shape") or view.shape(_WEIGHTS.get(op, 1))[2:]
    places, place = _places(view, kernel), time - 2
    before = places.pads[place][0]
    slid = Window(places.extents[place], places.steps[place], before, places.dilations[place])
    along = view.operands[0]
    length = _checked_length(view, time, slid.step)
    along = _known_end(along, slid, length)
    if attrs.get("ceil_mode") and any(step > 1 for index, step in enumerate(places.steps) if index != place):
        raise BreaksTime("it rounds up the number of its windows", time)
    result = slid.result(along, time, length)
    if op == "AveragePool" and not _is_full(view, places, place, slid, length):
        return Move([result], _means(view, places, place, slid, along, result), {0: slid.reads}, {0: slid.oldest})
    pad = _padding(view, time)
    order = _channels_last(view.rank(0))

    def write(writer: Writer) -> None:
        value = view.node.inputs[0]
        assert value is not None
        given = _without_time(attrs, places, place)
        # Means are summed in another order if their windows have gaps.
        frames = None if op in ("AveragePool", "LpPool") else slid.spread(writer, value, along, pad, order)
        if frames is None:
            frames = slid.frames(writer, value, along, pad, order)
        else:
            given["dilations"], given["strides"] = list(places.dilations), list(places.steps)
            given["dilations"][place], given["strides"][place] = 1, kernel[place]
        others = [None if each is None else writer.read(each) for each in view.node.inputs[1:]]
        writer.write(view.node, [frames, *others], given)

    return Move([result], write, {0: slid.reads}, {0: slid.oldest})


def _is_full(view: NodeView, places: Places, place: int, slid: Window, length: Dim) -> bool:
    """Whether all windows of a mean count as many frames."""
    behind = slid.reads(Pace.of(length).extra) - Pace.of(view.operands[0].length).extra
    if view.node.attrs.get("count_include_pad", 0):
        if behind > places.pads[place][1]:
            raise BreaksTime("it rounds up the number of its windows (ceil_mode)", place + 2)
        return True
    return slid.before <= 0 and behind <= 0


def _means(
    view: NodeView, places: Places, place: int, slid: Window, along: Along, result: Along
) -> Callable[[Writer], None]:
    node, channels, shape = view.node, view.shape(0)[1], view.output_shape()
    if not isinstance(channels, int):
        raise BreaksTime("how many channels it has is only known when it runs", place + 2)
    elements = np.ones([1] * len(shape), np.float32)
    for at, extent in enumerate(places.extents):
        axis, taps = at + 2, range(0, extent, places.dilations[at])
        if at != place:
            counts = counts_along(view.shape(0)[axis], shape[axis], taps, places.steps[at], places.pads[at][0])
            if counts is None:
                raise BreaksTime("how many elements it takes the mean of is only known when it runs", place + 2)
            elements = elements * counts.reshape([-1 if each == axis else 1 for each in range(len(shape))])
    counted = Counted((slid.extent - 1) // slid.dilation + 1, slid.step, slid.before, slid.dilation)
    attrs = _without_time(node.attrs, places, place)
    attrs.pop("count_include_pad", None)

    def write(writer: Writer) -> None:
        value, made, b = node.inputs[0], node.outputs[0], writer.builder
        assert value is not None
        assert made is not None
        frames = slid.frames(writer, value, along, 0.0, _channels_last(len(shape)))
        ones = b.constant(np.ones((channels, 1, *attrs["kernel_shape"]), np.float32), "ones")
        sums = b.op("Conv", frames, ones, name=node.name, group=channels, **attrs)
        count = b.op("Mul", counted.frames(writer, made, along, result), b.constant(elements, "elements"))
        writer.new[made] = b.op("Div", sums, count)

    return write


@move("STFT")
def stft(view: NodeView) -> Move | None:
    """[batch, signal, 1 or 2] -> [batch, frames, bins, 2]"""
    view.only(0)
    if view.time_of(0) != 1 or not view.operands[0].is_pure:
        return None
    (step,) = view.ints(1, "steps")
    if view.has(3):
        (extent,) = view.ints(3, "frame lengths")
    else:
        size = view.shape(2)[0]
        if not isinstance(size, int):
            raise BreaksTime("how many frames it looks at is only known when it runs", 1)
        extent = size
    slid, along = Window(extent, step), view.operands[0]
    length = _checked_length(view, 1, step)
    along = _known_end(along, slid, length)

    def write(writer: Writer) -> None:
        value = view.node.inputs[0]
        assert value is not None
        frames = slid.frames(writer, value, along, 0.0, None)
        others = [None if each is None else writer.read(each) for each in view.node.inputs[1:]]
        writer.write(view.node, [frames, *others])

    return Move([slid.result(along, 1, length)], write, {0: slid.reads}, {0: slid.oldest})


@move("ConvTranspose")
def conv_transpose(view: NodeView) -> Move | None:
    """Frame o of the result sums the frames i for which i * step is from o - extent + 1 to o, before it is cut."""
    attrs, time = view.node.attrs, view.time_of(0)
    if time < 2:
        return None
    view.only(0)
    if not view.operands[0].is_pure:
        raise BreaksTime("its axis of time counts frames and others together", time)
    n, place = view.rank(0) - 2, time - 2
    if attrs.get("output_shape"):
        raise BreaksTime("its output_shape may add or cut frames", time)
    kernel = attrs.get("kernel_shape") or view.shape(1)[2:]
    if attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise BreaksTime("nothing is known of how it pads (auto_pad)", time)
    places = _places(view, kernel)
    extent, step, before = places.extents[place], places.steps[place], places.pads[place][0]
    along = view.operands[0]
    length = view.output_shape()[time]
    rate = Pace.of(along.length).rate
    if length is None or Pace.of(length).rate != rate * step:
        raise BreaksTime("how many frames its result has is not known before it runs", time)

    def reads(needed: int) -> int:
        return (needed + before - 1) // step + 1

    own = Pace.of(along.length)
    if reads(Pace.of(length).extra) > own.extra:
        along = along.before_end(own.extra)
    settled = along.settled(along.earliest)
    history = max(0, -(-extent // step) - 1)

    def write(writer: Writer) -> None:
        value = view.node.inputs[0]
        assert value is not None
        frames = writer.at(value, settled.delay)
        at_start = settled.delay > 0 and history > 0
        frames = writer.masked(value, settled, at_start, writer.needs_end(value), 0.0, frames)
        frames = writer.buffer(value, settled, history, 0.0, _channels_last(view.rank(0)), frames)
        others = [None if each is None else writer.read(each) for each in view.node.inputs[1:]]
        more = list(attrs.get("output_padding") or [0] * n)
        more[place] = max(0, step - extent)
        made = {**_without_time(attrs, places, place), "output_padding": more}
        (whole,) = writer.write(view.node, [frames, *others], made)
        behind = max(0, extent - step)
        result, *_ = view.node.outputs
        assert result is not None
        if history or behind:
            writer.new[result] = writer.cut(whole, time, history * step, -behind if behind else FAR)

    def oldest(frame: int) -> int:
        return -((extent - 1 - before - frame) // step)

    return Move([Along(time, length=length, delay=settled.delay * step + before)], write, {0: reads}, {0: oldest})
