"""Writes a stream: the graph of one step, its states, and what they start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from webrnn.ir import Dim, DType, Graph, GraphBuilder, Node, SymbolicDim, Value
from webrnn.shapes.facts import Facts

from .kinds import Along, BreaksTime
from .paces import FAR, STRIDES, Pace, mentions_strides
from .rings import is_ring, keep_ring
from .starts import Starts, named_sizes, polynomial

POSITION, END = "time.position", "time.end"
"""The states that say how many strides came before a step, and after how many the sequence ends."""
NEVER = 2**40
"""More strides than any sequence has; their frames can still be counted in 64 bits."""
Order = tuple[int, ...]


@dataclass
class StreamGraph:
    """The graph of one step, with its states as inputs and outputs."""

    graph: Graph
    initial: Graph
    """From the inputs of the model to what the states start from, in the order of the pairs."""
    pairs: list[tuple[str, str]] = field(default_factory=list)
    end: str | None = None


class Writer:
    """Adds to the graph of a step. `new` is what stands there for each value of the model."""

    def __init__(
        self,
        model: Graph,
        along: Mapping[Value, Along],
        facts: Facts,
        time: Mapping[Value, int],
        stride: int,
        needed: Mapping[Value, int],
        flushes: bool,
    ):
        """`needed` says how many frames of a value are read, beyond its rate; a value that is not in it is not read.
        `flushes` says that frames come behind the end of the sequence."""
        self.along, self.facts, self.stride = along, facts, stride
        self.needed, self.flushes = needed, flushes
        self.builder = GraphBuilder(model.name)
        for value in (*model.inputs, *model.outputs):
            self.builder.unique_name(value.name)
        self.new: dict[Value, Value] = {value: value.like(value.name) for value in model.inputs}
        self.graph = self.builder.graph
        self.graph.inputs = list(self.new.values())
        self._states: list[tuple[Value, Value]] = []
        self._sizes = named_sizes(model, facts, time)
        self._starts = Starts(model, facts, self._sizes)
        self._aligned: dict[tuple[Value, int], Value] = {}
        self._cache: dict[Any, Value] = {}
        self._counts_from = next(iter(time.items()), None)
        if stride > 1:
            for value, axis in time.items():
                self._require_strides(value, axis)

    def finish(self, model: Graph, delays: Mapping[Value, int]) -> StreamGraph:
        if self.flushes or any(delay > 0 for delay in delays.values()):
            self._counter(POSITION, 0)
        for value in model.outputs:
            self.graph.outputs.append(self._named(value, self.at(value, delays[value]) if value in delays else None))
        self.graph.inputs += [before for before, _ in self._states]
        self.graph.outputs += [after for _, after in self._states]
        pairs = [(before.name, after.name) for before, after in self._states]
        end = END if any(before.name == END for before, _ in self._states) else None
        return StreamGraph(self.graph, self._starts.finish([before for before, _ in self._states]), pairs, end)

    def _named(self, value: Value, made: Value | None) -> Value:
        made = made or self.read(value)
        fact = self.facts.of(value)
        shape = value.shape if fact.shape is None else tuple(None if mentions_strides(s) else s for s in fact.shape)
        result = Value(value.name, fact.dtype or value.dtype, shape, value.container)
        self.graph.nodes.append(Node("Identity", [made], [result]))
        return result

    # Values of the model, in the stream

    def read(self, value: Value) -> Value:
        """What stands for a value, as late as it is."""
        return self.new[value]

    def constant_of(self, value: Value, array: np.ndarray) -> None:
        self.new[value] = self.builder.constant(array, value.name, value.dtype)

    def write(self, node: Node, inputs: Sequence[Value | None], attrs: Mapping[str, Any] | None = None) -> list[Value]:
        """A node like one of the model on other operands; what stands for its results."""
        made: list[Value | None] = []
        for output in node.outputs:
            made.append(None if output is None else self.builder.value(output.name, output.dtype))
        copied = {
            name: item.copy() if isinstance(item, Graph) else item
            for name, item in (node.attrs if attrs is None else attrs).items()
        }
        self.builder.add(Node(node.op, list(inputs), made, copied, node.name, node.domain))
        for output, value in zip(node.outputs, made, strict=True):
            if output is not None and value is not None:
                self.new[output] = value
        return [value for value in made if value is not None]

    def at(self, value: Value, delay: int) -> Value:
        """What stands for a value, with a delay that is not smaller than its own."""
        along = self.along[value]
        if along.axis is None or along.uniform or (along.delay == delay and along.is_settled):
            return self.read(value)
        if (value, delay) not in self._aligned:
            if not along.is_pure:
                raise BreaksTime("frames that are to be kept share an axis with others")
            self._aligned[value, delay] = self._later(value, along, delay)
        return self._aligned[value, delay]

    def _later(self, value: Value, along: Along, delay: int) -> Value:
        by = delay - along.delay
        axis = along.axis
        assert axis is not None
        start = self._start(along, by, 0.0)
        if along.mirror is None and self._is_ring(value, along, by):
            return self._ring(value, along, self.read(value), start, None)
        buffer = self.buffer(value, along, by)
        return self.cut(buffer, axis, 0, -by) if by else buffer

    def buffer(
        self,
        value: Value,
        along: Along,
        n_before: int,
        pad: float = 0.0,
        order: Order | None = None,
        source: Value | None = None,
    ) -> Value:
        """The frames of a step with those that came before; a negative number leaves out frames of the step.

        Before the stream began there is what the padding says, and behind that `pad`. A history is stored with its axes
        in `order`.
        """
        axis = along.axis
        assert axis is not None
        new = source or self.read(value)
        if along.mirror is not None:
            return self._mirrored(value, along, n_before, new)
        if n_before <= 0:
            return self._without_first(value, new, axis, -n_before) if n_before else new
        start = self._start(along, n_before, pad)
        if self._is_ring(value, along, n_before):
            return self._ring(value, along, new, start, order, more=n_before)
        return self._with_history(value, axis, new, n_before, start, order)

    def spread(
        self, value: Value, along: Along, n_before: int, pad: float, order: Order, source: Value, **steps: int
    ) -> Value | None:
        """The windows of a step side by side, as `keep_ring` takes them; None if there is no history."""
        if along.axis is None or along.mirror is not None or n_before <= 0:
            return None
        return self._ring(value, along, source, self._start(along, n_before, pad), order, **steps)

    def _ring(
        self, value: Value, along: Along, new: Value, start: Sequence[float], order: Order | None, **steps: int
    ) -> Value:
        """Windows as `keep_ring` takes them; one ring for all that ask for the same."""
        assert along.axis is not None
        key = ("ring", new, tuple(start), order, *steps.items())
        if key not in self._cache:
            rate = Pace.of(along.length).rate
            self._cache[key] = keep_ring(self, value, along.axis, new, start, rate, order, **steps)
        return self._cache[key]

    def _is_ring(self, value: Value, along: Along, n_before: int) -> bool:
        return is_ring(n_before, Pace.of(along.length).rate, self.facts.of(value).rank or 0)

    def _start(self, along: Along, n_before: int, pad: float) -> list[float]:
        """What frames before the stream are, the last so many."""
        return [*[pad] * (n_before - len(along.start)), *along.start[max(0, len(along.start) - n_before) :]]

    def _with_history(
        self, value: Value, axis: int, new: Value, n_before: int, start: Sequence[float], order: Order | None
    ) -> Value:
        fact = self.facts.of(value)
        if fact.shape is None or fact.dtype is None:
            raise BreaksTime("the shape or the type of what is to be kept is not known before it runs")
        order = order or tuple(range(len(fact.shape)))
        key = ("history", new, tuple(start), order)
        if key in self._cache:
            return self._cache[key]
        shape = [n_before if place == axis else fact.shape[place] for place in order]
        filled = np.array(start, fact.dtype.array_type)
        before = self.state(f"{value.name}.before", fact.dtype, shape, filled, order.index(axis))
        at = order.index(axis)
        buffer = self.builder.op("Concat", before, self.transposed(new, order), axis=at)
        self.next_state(before, self.cut(buffer, at, -n_before, FAR))
        self._cache[key] = self.transposed(buffer, tuple(np.argsort(order).tolist()))
        return self._cache[key]

    def _without_first(self, value: Value, new: Value, axis: int, count: int) -> Value:
        """The frames of a step without the first ones. As many zeros behind them, which no window reads, keep their
        number that of a step, so that it is known before it runs."""
        rank = self.facts.of(value).rank
        if rank is None:
            raise BreaksTime("the rank of what is to be kept is not known before it runs")
        pads = [count if place == rank + axis else 0 for place in range(2 * rank)]
        return self.cut(self.builder.op("Pad", new, self.builder.ints(*pads)), axis, count, FAR)

    def _mirrored(self, value: Value, along: Along, n_before: int, new: Value) -> Value:
        """The frames of a step and those before it, with those around the sequence made of others."""
        axis, mirror = along.axis, along.mirror
        assert axis is not None
        assert mirror is not None
        pace = Pace.of(along.length)
        inner = replace(
            along,
            mirror=None,
            delay=along.delay + mirror.before,
            start=(),
            length=along.length - mirror.before - mirror.after,
        )
        more = max(0, 2 * mirror.after - n_before) + mirror.after if mirror.after else 0
        buffer = self.buffer(value, inner, n_before + more, source=new)
        length = Pace(pace.rate, pace.extra - mirror.before - mirror.after)
        at = self._places(pace.rate, inner.delay, n_before + more)
        last = self.last_frame(length)
        is_edge = mirror.mode == "edge"
        from_start = self.builder.op("Max", at, self.scalar(0)) if is_edge else self.builder.op("Abs", at)
        over = self.builder.op("Max", self.builder.op("Sub", from_start, last), self.scalar(0))
        back = over if mirror.mode == "edge" else self.builder.op("Mul", over, self.scalar(2))
        wanted = self.builder.op("Sub", from_start, back)
        moved = self.builder.op("Sub", wanted, at)
        n_frames = self.builder.op("Add", self.size_of(pace), self.scalar(n_before + more))
        own = self.builder.op("Range", self.scalar(0), self.builder.op("Squeeze", n_frames), self.scalar(1))
        index = self.builder.op("Add", own, moved)
        index = self.builder.op(
            "Max", self.builder.op("Min", index, self.builder.op("Sub", n_frames, self.scalar(1))), self.scalar(0)
        )
        gathered = self.builder.op("Gather", buffer, index, axis=axis)
        return self.cut(gathered, axis, more, FAR) if more else gathered

    # States

    def state(self, name: str, dtype: DType, shape: Sequence[Dim | None], start: np.ndarray, axis: int) -> Value:
        """A state that starts from one number for each place along an axis."""
        before = self.builder.value(name, dtype, tuple(shape))
        self._starts.filled(before, start, axis, shape)
        return before

    def carried(self, name: str, init: Value, is_fed: bool = False) -> Value:
        """A state that starts from a value of the model, or, if that depends on what is fed, takes it in the first
        step: see `at_first`."""
        fact = self.facts.of(init)
        if is_fed:
            if fact.shape is None or fact.dtype is None or not fact.shape:
                raise BreaksTime("the shape or the type of what is fed to it is not known before it runs")
            return self.state(name, fact.dtype, fact.shape, np.zeros(1, fact.dtype.array_type), -1)
        before = self.builder.value(name, fact.dtype, fact.shape)
        self._starts.of(before, init)
        return before

    def at_first(self, before: Value, init: Value) -> Value:
        """A state, and in the first step of the stream another value."""
        b, rank = self.builder, self.facts.of(init).rank or 0
        is_first = b.op("Equal", self.position(), self.scalar(0))
        return b.op("Where", b.op("Reshape", is_first, b.ints(-1, *[1] * (rank - 1))), self.read(init), before)

    def next_state(self, before: Value, after: Value) -> None:
        result = Value(self.builder.unique_name(f"{before.name}.next"), before.dtype, before.shape)
        self.graph.nodes.append(Node("Identity", [after], [result]))
        self._states.append((before, result))

    def _counter(self, name: str, start: int) -> Value:
        if name not in self._cache:
            self._cache[name] = self.state(name, DType.INT64, [1], np.array([start], np.int64), 0)
            before = self._cache[name]
            self.next_state(before, self.builder.op("Add", before, self.strides()) if name == POSITION else before)
        return self._cache[name]

    def position(self) -> Value:
        """How many strides came before the step, int64[1]."""
        return self._counter(POSITION, 0)

    # Which frames there are

    def strides(self) -> Value:
        """How many strides a step has, int64[1]."""
        if "strides" not in self._cache:
            if self._counts_from is None:
                raise BreaksTime("no input has an axis of time")
            value, axis = self._counts_from
            frames = self.builder.op("Shape", self.new[value], start=axis, end=axis + 1)
            self._cache["strides"] = (
                frames if self.stride == 1 else self.builder.op("Div", frames, self.builder.ints(self.stride))
            )
        return self._cache["strides"]

    def _require_strides(self, value: Value, axis: int) -> None:
        """Let the size of an axis say that it is a number of strides: hosts see to it that it is."""
        frames = self.builder.op("Shape", self.new[value], start=axis, end=axis + 1)
        strides = self.builder.op("Div", frames, self.builder.ints(self.stride))
        whole = self.builder.op("Mul", strides, self.builder.ints(self.stride))
        self._cache.setdefault("strides", strides)
        self.new[value] = self.builder.op(
            "Slice", self.new[value], self.builder.ints(0), whole, self.builder.ints(axis)
        )

    def size_of(self, pace: Pace) -> Value:
        """How many frames a step has, int64[1]."""
        key = ("frames", pace.rate)
        if key not in self._cache:
            rate = self.builder.ints(pace.rate)
            self._cache[key] = self.strides() if pace.rate == 1 else self.builder.op("Mul", self.strides(), rate)
        return self._cache[key]

    def _places(self, rate: int, delay: int, n_before: int) -> Value:
        """The numbers, in the whole run, of the frames of a step and of some before it: int64[frames]."""
        n_frames = self.builder.op("Add", self.size_of(Pace(rate, 0)), self.scalar(n_before))
        own = self.builder.op("Range", self.scalar(0), self.builder.op("Squeeze", n_frames), self.scalar(1))
        first = self.builder.op("Mul", self._counter(POSITION, 0), self.scalar(rate))
        return self.builder.op("Add", own, self.builder.op("Sub", first, self.scalar(n_before + delay)))

    def last_frame(self, pace: Pace) -> Value:
        """The number of the last frame of the whole run, int64[1]."""
        frames = self.builder.op("Mul", self._counter(END, NEVER), self.scalar(pace.rate))
        return self.builder.op("Add", frames, self.scalar(pace.extra - 1))

    def frame_numbers(self, pace: Pace, delay: int) -> Value:
        """The numbers, in the whole run, of the frames of a step, int64[frames]. Frames that the whole run does not
        have get the number of one that it has."""
        key = ("numbers", pace, delay)
        if key not in self._cache:
            numbers = self.builder.op("Min", self._places(pace.rate, delay, 0), self.last_frame(pace))
            self._cache[key] = self.builder.op("Max", numbers, self.scalar(0))
        return self._cache[key]

    def numbers(self, along: Along) -> Value:
        """The numbers, in the whole run, of the frames of a step: int64[streams, frames]."""
        b, pace = self.builder, Pace.of(along.length)
        key = ("numbers", pace.rate, along.delay)
        if key not in self._cache:
            count = b.op("Range", self.scalar(0), b.op("Squeeze", self.size_of(pace)), self.scalar(1))
            first = b.op("Mul", self.position(), self.scalar(pace.rate))
            first = b.op("Unsqueeze", b.op("Sub", first, self.scalar(along.delay)), b.ints(1))
            self._cache[key] = b.op("Add", count, first)
        return self._cache[key]

    def valid(self, along: Along, left: bool, right: bool) -> Value:
        """Which frames of a step are frames of the whole run: bool[streams, frames]."""
        pace = Pace.of(along.length)
        key = ("valid", pace, along.delay, left, right)
        if key not in self._cache:
            b = self.builder
            place, tests = self.numbers(along), []
            if left:
                tests.append(b.op("GreaterOrEqual", place, self.scalar(0)))
            if right:
                last = b.op("Unsqueeze", self.last_frame(pace), b.ints(1))
                tests.append(b.op("LessOrEqual", place, last))
            self._cache[key] = tests[0] if len(tests) == 1 else b.op("And", *tests)
        return self._cache[key]

    def masked(
        self, value: Value, along: Along, left: bool, right: bool, pad: float, source: Value | None = None
    ) -> Value:
        """The frames of a step, those that are no frames of the whole run filled with a number."""
        new = source or self.read(value)
        if not left and not right:
            return new
        fact = self.facts.of(value)
        if fact.dtype is None or along.axis is None:
            raise BreaksTime("the type of what is to be kept is not known before it runs")
        key = ("masked", new, along.length, along.delay, left, right, pad)
        if key not in self._cache:
            mask = self.beside(value, self.valid(along, left, right), along.axis)
            filled = self.builder.constant(np.array(pad, fact.dtype.array_type), "pad", fact.dtype)
            self._cache[key] = self.builder.op("Where", mask, new, filled)
        return self._cache[key]

    def beside(self, value: Value, mask: Value, axis: int) -> Value:
        """[streams, frames] beside a value with frames on an axis: streams are on the first of the others."""
        b, rank = self.builder, self.facts.of(value).rank
        if rank is None:
            raise BreaksTime("the rank of what is to be kept is not known before it runs")
        if rank == 1:
            return b.op("Reshape", mask, b.ints(-1))
        if axis == 0:
            mask = b.op("Transpose", mask, perm=[1, 0])
        streams = 0 if axis else 1
        others = [place for place in range(rank) if place not in (axis, streams)]
        return b.op("Unsqueeze", mask, b.ints(*others)) if others else mask

    def held(self, value: Value, along: Along, frames: Value) -> Value:
        """The last frame of the whole run that has come, which a state keeps while none comes: one frame."""
        b, axis, pace = self.builder, along.axis, Pace.of(along.length)
        fact = self.facts.of(value)
        if fact.shape is None or fact.dtype is None or axis is None:
            raise BreaksTime("the shape or the type of what is to be kept is not known before it runs")
        shape = [1 if place == axis else size for place, size in enumerate(fact.shape)]
        before = self.state(f"{value.name}.last", fact.dtype, shape, np.zeros(1, fact.dtype.array_type), axis)
        known = b.op("Concat", before, frames, axis=axis)
        came = b.op("Mul", b.op("Add", self._counter(POSITION, 0), self.strides()), self.scalar(pace.rate))
        last = b.op("Min", b.op("Sub", came, self.scalar(along.delay + 1)), self.last_frame(pace))
        first = b.op("Sub", b.op("Mul", self._counter(POSITION, 0), self.scalar(pace.rate)), self.scalar(along.delay))
        in_step = b.op("Add", b.op("Sub", last, first), self.scalar(1))
        is_new = b.op("And", b.op("GreaterOrEqual", last, self.scalar(0)), b.op("Greater", in_step, self.scalar(0)))
        at = b.op("Where", is_new, in_step, self.scalar(0))
        after = b.op("Gather", known, at, axis=axis)
        self.next_state(before, after)
        return after

    def needs_end(self, value: Value) -> bool:
        """Whether somebody reads frames of a value behind its last one."""
        along = self.along[value]
        return self.needed.get(value, 0) > Pace.of(along.length).extra

    # Sizes

    def sizes(self, content: Sequence[Dim | None]) -> Value:
        """The elements of an operand that says sizes, for the frames of a step: int64[elements]."""
        parts = []
        for size in content:
            if size is None:
                raise BreaksTime("a size is only known when it runs")
            parts.append(self.builder.ints(size) if isinstance(size, int) else self.size(size))
        if all(isinstance(size, int) for size in content):
            return self.builder.ints(*(int(str(size)) for size in content))
        return self.builder.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]

    def size(self, dim: SymbolicDim) -> Value:
        """A size, for the frames of a step: what is not counted for each stride does not belong to a step."""
        if mentions_strides(dim):
            names = STRIDES.names
            kept = {monomial: factor for monomial, factor in dim.terms if not names.isdisjoint(monomial)}
            dim = SymbolicDim(kept)
        return polynomial(dim, self.builder, self._size_source)

    def _size_source(self, name: str) -> Value:
        """A named size, int64[1]."""
        if name in STRIDES.names:
            return self.strides()
        key = ("size", name)
        if key not in self._cache:
            value, axis = self._sizes.input_of(name)
            self._cache[key] = self.builder.op("Shape", self.new[value], start=axis, end=axis + 1)
        return self._cache[key]

    # Small things

    def scalar(self, number: int) -> Value:
        key = ("scalar", number)
        if key not in self._cache:
            self._cache[key] = self.builder.constant(np.array(number, np.int64), "number")
        return self._cache[key]

    def cut(self, value: Value, axis: int, start: int, end: int, step: int = 1) -> Value:
        b = self.builder
        steps = [b.ints(step)] if step != 1 else []
        return b.op("Slice", value, b.ints(start), b.ints(end), b.ints(axis), *steps)

    def transposed(self, value: Value, order: Order) -> Value:
        if order == tuple(range(len(order))):
            return value
        return self.builder.op("Transpose", value, perm=list(order))
