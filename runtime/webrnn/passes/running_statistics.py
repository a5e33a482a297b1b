"""A statistic over all frames becomes one over the frames so far. It changes results: only for callers that ask for it.

Requires: facts from infer_shapes, and the sizes of the axes of time.
Ensures: ReduceMean, ReduceSum, ReduceMax, ReduceMin, ReduceSumSquare, ReduceL1 and ReduceL2 of the outermost graph over
an axis of time are loops. Where a statistic meets frames again, frame t meets the statistic of the frames up to t;
elsewhere it is what it is after the last frame so far. The variance that belongs to a mean, the mean of squared
differences from it, is that of the frames up to t around their own mean.
Declines: "its axes are not known before it runs", "what meets frames again has lost the axis of time".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from webrnn.ir import DType, Graph, Node, Scan, SymbolicDim, Value, is_plain
from webrnn.shapes.facts import Fact
from webrnn.shapes.infer import infer_node

from .base import Context, PassResult
from .frames import OverTime
from .sequence_forms import Rearranging
from .sums_to_loops import blank_frame

_REDUCED = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL1", "ReduceL2")


class RunningStatistics(OverTime):
    def rewrite_node(self, graph: Graph, node: Node, context: Context, result: PassResult) -> None:
        found = self._find(node, context, result)
        if found is None:
            return
        (made,) = node.outputs
        assert made is not None
        meets = self._meets_frames(graph, made, context)
        readers = [node] if found.keeps_axes or not meets else _put_back(graph, found, context)
        if not readers:
            result.declines_at(node, "what meets frames again has lost the axis of time")
            return
        deviation = _variance_of(graph, found, lambda other: self._find(other, context, result))
        if result.fires(f"{node.op} {node.label}"):
            _replace(graph, found, readers, deviation, meets, context)

    def _find(self, node: Node, context: Context, result: PassResult) -> _Statistic | None:
        if not is_plain(node, *_REDUCED):
            return None
        x, shape = node.inputs[0], context.facts.shape(node.inputs[0])
        if context.facts.dtype(x) not in (DType.FLOAT, DType.DOUBLE):
            return None
        if x is None or shape is None or not any(size in self._sizes for size in shape):
            return None
        operand = node.inputs[1] if len(node.inputs) > 1 else None
        axes = context.facts.of(operand).ints if operand is not None else tuple(range(len(shape)))
        if axes is None or (operand is None and node.attrs.get("noop_with_empty_axes", 0)):
            result.declines_at(node, "its axes are not known before it runs")
            return None
        numbers = sorted({axis % len(shape) for axis in axes or range(len(shape))})
        time = [axis for axis in numbers if shape[axis] in self._sizes]
        if len(time) != 1:
            return None
        others = tuple(axis for axis in numbers if axis != time[0])
        return _Statistic(node, x, time[0], others, bool(node.attrs.get("keepdims", 1)))

    def _meets_frames(self, graph: Graph, value: Value, context: Context) -> bool:
        """Whether what is computed from a value is combined with frames."""
        reached = {value}
        for node in graph.nodes:
            if reached.isdisjoint(node.inputs):
                continue
            others = [operand for operand in node.inputs if operand is not None and operand not in reached]
            if any(self._has_frames(operand, context) for operand in others):
                return True
            reached.update(output for output in node.outputs if output is not None)
        return False

    def _has_frames(self, value: Value, context: Context) -> bool:
        return any(isinstance(size, SymbolicDim) and size in self._sizes for size in context.facts.shape(value) or ())


def _replace(
    graph: Graph, found: _Statistic, readers: list[Node], deviation: Node | None, meets: bool, context: Context
) -> None:
    """`readers` give what the statistic is: its own node, or those that put its axes back."""
    writer = _Loop(graph, found, context)
    is_mean = found.node.op == "ReduceMean"
    results = writer.moments(deviation is not None, meets) if is_mean else [writer.sum(meets)]
    nodes = [*writer.around.nodes]
    nodes += [Node("Identity", [results[0]], list(reader.outputs), {}, reader.name) for reader in readers]
    if deviation is not None:
        nodes.append(Node("Identity", [results[1]], list(deviation.outputs), {}, deviation.name))
    gone = {id(found.node), id(deviation), *map(id, readers)}
    position = graph.nodes.index(found.node)
    graph.nodes[position:position] = nodes
    graph.nodes = [node for node in graph.nodes if id(node) not in gone]
    for node in nodes:
        infer_node(node, context.facts)


def _put_back(graph: Graph, found: _Statistic, context: Context) -> list[Node]:
    """The nodes that put back the axes of a statistic, if all that read it do."""
    (made,) = found.node.outputs
    axes = sorted((found.time, *found.others))
    rank = len(context.facts.shape(found.x) or ())
    readers = [node for node in graph.nodes if made in node.inputs]
    for node in readers:
        given = context.facts.of(node.inputs[1]).ints if is_plain(node, "Unsqueeze") else None
        if given is None or sorted(axis % rank for axis in given) != axes:
            return []
    return [] if made in graph.outputs else readers


@dataclass(frozen=True)
class _Statistic:
    node: Node
    x: Value
    time: int
    others: tuple[int, ...]
    """The other axes that it runs over."""
    keeps_axes: bool


def _variance_of(graph: Graph, mean: _Statistic, find: Callable[[Node], _Statistic | None]) -> Node | None:
    """The node that computes the variance around a mean."""
    if mean.node.op != "ReduceMean" or not mean.keeps_axes:
        return None
    producers = graph.producers()
    for node in graph.nodes:
        if not is_plain(node, "ReduceMean") or node is mean.node:
            continue
        square = producers.get(node.inputs[0]) if node.inputs[0] is not None else None
        if square is None:
            continue
        is_square = is_plain(square, "Mul") and square.inputs[0] is square.inputs[1]
        if is_plain(square, "Pow"):
            power = graph.constants.get(square.inputs[1]) if square.inputs[1] is not None else None
            is_square = power is not None and power.size == 1 and power.reshape(-1)[0] == 2
        centred = producers.get(square.inputs[0]) if is_square and square.inputs[0] is not None else None
        if centred is None or not is_plain(centred, "Sub") or centred.inputs != [mean.x, mean.node.outputs[0]]:
            continue
        found = find(node)
        if found is not None and (found.time, found.others, found.keeps_axes) == (mean.time, mean.others, True):
            return node
    return None


class _Loop:
    """Writes the loop that goes on with a statistic from frame to frame."""

    def __init__(self, graph: Graph, found: _Statistic, context: Context):
        self.found, self.context = found, context
        self.around = Rearranging(graph, context)
        dtype, shape = context.facts.dtype(found.x), context.facts.shape(found.x)
        assert dtype is not None
        assert shape is not None
        self.dtype, self.rank = dtype, len(shape)
        self.body = Graph("statistic")
        self.inside = Rearranging(self.body, context)
        self.scan = Scan(self.body, name=found.node.name or found.node.label)

    def sum(self, meets: bool) -> Value:
        """Sums, and what goes on like them."""
        around, op = self.around, self.found.node.op
        x = self.found.x
        if op == "ReduceL1":
            x = around.op("Abs", x)
        elif op in ("ReduceL2", "ReduceSumSquare"):
            x = around.op("Mul", x, x)
        is_extreme = op in ("ReduceMax", "ReduceMin")
        frames = self._in_frame(op if is_extreme else "ReduceSum", x)
        start = {"ReduceMax": -np.inf, "ReduceMin": np.inf}.get(op, 0)
        before, frame = self._state(frames, start), self._element(frames)
        after = self.inside.op({"ReduceMax": "Max", "ReduceMin": "Min"}.get(op, "Add"), before, frame)
        self._goes_on(before, after)
        made = self.inside.op("Sqrt", after) if op == "ReduceL2" else after
        return self._finish([made], meets)[0]

    def moments(self, has_variance: bool, meets: bool) -> list[Value]:
        """The mean, and the variance around it."""
        around, inside = self.around, self.inside
        means = self._in_frame("ReduceMean", self.found.x)
        count, mean, frame = self._state(means, 0), self._state(means, 0), self._element(means)
        counted = inside.op("Add", count, self._number(inside, 1))
        self._goes_on(count, counted)
        step = inside.op("Sub", frame, mean)
        now = inside.op("Add", mean, inside.op("Div", step, counted))
        self._goes_on(mean, now)
        if not has_variance:
            return self._finish([now], meets)
        spread = self._state(means, 0)
        apart = inside.op("Mul", inside.op("Mul", step, step), inside.op("Div", count, counted))
        if self.found.others:
            centred = around.op("Sub", self.found.x, means)
            apart = inside.op(
                "Add", apart, self._element(self._in_frame("ReduceMean", around.op("Mul", centred, centred)))
            )
        total = inside.op("Add", spread, apart)
        self._goes_on(spread, total)
        return self._finish([now, inside.op("Div", total, counted)], meets)

    def _in_frame(self, op: str, x: Value) -> Value:
        """The statistic of each frame for itself."""
        if not self.found.others:
            return x
        return self.around.op(op, x, self.around.new.ints(*self.found.others), keepdims=1)

    def _state(self, frames: Value, start: float) -> Value:
        """A state as large as a frame, whose next value is said later."""
        fill = np.full(1, start, self.dtype.array_type)
        init = blank_frame(self.around, frames, self.found.time, self.rank, fill)
        before = self._new("before", frames)
        self.scan.add_state(init, before, before, None)
        return before

    def _goes_on(self, before: Value, after: Value) -> None:
        for state in self.scan.states:
            if state.body_in[0] is before:
                state.body_out = after

    def _element(self, frames: Value) -> Value:
        element = self._new("frame", frames)
        self.scan.add_sequence(frames, element, self.found.time)
        return element

    def _new(self, hint: str, frames: Value) -> Value:
        """A value of the body as large as a frame."""
        fact, time = self.around.facts.of(frames), self.found.time
        assert fact.shape is not None
        made = self.inside.new.value(hint)
        made.dtype, made.shape = fact.dtype, (*fact.shape[:time], *fact.shape[time + 1 :])
        self.inside.facts.set(made, Fact(made.dtype, made.shape))
        return made

    def _number(self, where: Rearranging, number: float) -> Value:
        return where.new.constant(np.array(number, self.dtype.array_type), "number")

    def _finish(self, results: Sequence[Value], meets: bool) -> list[Value]:
        """The results with the axes that the node has: at each frame, or after the last."""
        self.body.nodes = self.inside.nodes
        found, around, made = self.found, self.around, []
        shape = self.context.facts.shape(found.x)
        assert shape is not None
        for index, result in enumerate(results):
            whole = around.new.value(f"{found.node.op.lower()}_so_far")
            if meets:
                self.scan.add_trace(result, whole, found.time)
            else:  # a state of its own, whose last value it is
                blank = self.scan.states[0].init
                before = self._new(f"result_{index}", self.scan.sequences[0].whole)
                self.scan.add_state(blank, before, result, whole)
            made.append(whole)
        around.nodes.append(self.scan.to_node())
        rest = [axis for axis in found.others if meets or axis < found.time]
        rest += [axis - 1 for axis in found.others if not meets and axis > found.time]
        if not meets and found.keeps_axes:
            return [around.op("Unsqueeze", value, around.new.ints(found.time)) for value in made]
        if not meets and rest:
            return [around.op("Squeeze", value, around.new.ints(*rest)) for value in made]
        return made
