"""A trace keeps only the steps that somebody reads.

Requires: facts from infer_shapes (the rank of the trace; its length, for indices that count from the first step).
Ensures: where every reader of a trace, behind ops that only move axes, is a Gather or Slice of the last steps with
constant bounds, the trace holds as many steps as the one that reaches back farthest needs, and is marked so. Where that
is one step and the trace is the history of a state, the state's final is read and the trace is gone. A Gather of the
last element of an empty trace fails; where a loop takes no step, that error is then gone and the state's init is read.
Declines: "its rank is not known", "it is longer than the loop" (its last elements are not steps), "it may take no step"
(a Slice of an empty trace is empty, the final is not: such a trace is trimmed to one step).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from webrnn.ir import Dim, Graph, Node, Scan, State, Trace, Value
from webrnn.ir.dims import is_nonnegative
from webrnn.shapes.facts import Fact
from webrnn.shapes.infer import trip_count

from .base import Context, PassResult, ScanPass
from .rewriting import Additions, ints_of

_BEYOND = 2**31 - 1
"""From here on the end of a Slice means the end of the axis."""


class TrimTrace(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        before, new = result.rewrites, Additions(graph, context)
        finals: list[Node] = []
        for trace in list(scan.traces):
            if trace.spec.length is not None:
                result.declines_at(node, "it is longer than the loop")
                continue
            reading = _Reading(graph, context, trace, new)
            keep = reading.keep()
            if keep is None:
                if reading.lacks_rank:
                    result.declines_at(node, "its rank is not known")
                continue
            state = next((state for state in scan.states if state.body_out is trace.element), None)
            if keep == 1 and state is not None and state.spec.is_plain:
                if reading.only_gathers or _takes_a_step(scan, context):
                    if result.fires(f"trace {trace.element.name} of {node.label} is its final"):
                        finals.append(_read_final(scan, trace, state, reading))
                    continue
                result.declines_at(node, "it may take no step")
            if (trace.spec.keep is not None and trace.spec.keep <= keep) or _has_no_more(reading.length, keep):
                continue
            if result.fires(f"trace {trace.element.name} of {node.label} to {keep}"):
                scan.trim(trace, keep)
                trimmed = new.value(f"{reading.whole.name}_last")
                reading.move_to(trimmed)
                trace.whole = trimmed
        return [scan.to_node(), *finals] if result.rewrites > before else None


def _takes_a_step(scan: Scan, context: Context) -> bool:
    steps = trip_count(scan, context.facts)
    return steps is not None and is_nonnegative(steps - 1)


def _is_at_least(index: Dim | None, length: Dim | None) -> bool:
    return isinstance(index, int) and isinstance(length, int) and index >= length


def _has_no_more(length: Dim | None, keep: int) -> bool:
    return isinstance(length, int) and length <= keep


def _read_final(scan: Scan, trace: Trace, state: State, reading: _Reading) -> Node:
    if state.final is None:
        state.final = reading.new.value(f"{state.body_out.name}_final")
    scan.traces.remove(trace)
    last = reading.new.value(f"{reading.whole.name}_last")
    reading.move_to(last)
    reading.take_the_only_step()
    return Node("Unsqueeze", [state.final, reading.new.ints(trace.spec.axis)], [last])


@dataclass
class _Cut:
    """A Gather or Slice of the steps."""

    node: Node
    axis: int
    """Of the steps, in what it reads."""
    bounds: dict[int, list[int]]
    """By position of the operand, its elements counted from the last step."""
    reach: int
    """How many of the last steps it needs."""


@dataclass
class _Reading:
    """All that reads one trace."""

    graph: Graph
    context: Context
    trace: Trace
    new: Additions
    cuts: list[_Cut] = field(default_factory=list)
    between: list[Node] = field(default_factory=list)
    """The nodes that only move axes on the way to the cuts, in order."""
    lacks_rank: bool = False
    length: Dim | None = None

    @property
    def whole(self) -> Value:
        assert self.trace.whole is not None
        return self.trace.whole

    @property
    def only_gathers(self) -> bool:
        return all(cut.node.op == "Gather" for cut in self.cuts)

    def keep(self) -> int | None:
        """How many of the last steps are read; None where all may be."""
        if self.trace.whole is None:
            return None
        shape = self.context.facts.shape(self.whole)
        if shape is None:
            self.lacks_rank = True
            return None
        axis = self.trace.spec.axis % len(shape)
        self.length = shape[axis]
        if not self._follow(self.whole, axis, self.graph.consumers()) or not self.cuts:
            return None
        return max(cut.reach for cut in self.cuts)

    def move_to(self, trimmed: Value) -> None:
        """Let the readers read the trimmed trace; the values on their way are new, because they are shorter."""
        renewed: dict[Value | None, Value] = {self.trace.whole: trimmed}
        for node in self.between:
            made = node.outputs[0]
            assert made is not None
            renewed[made] = self.new.value(f"{made.name}_last")
            node.inputs[0], node.outputs = renewed[node.inputs[0]], [renewed[made]]
        for cut in self.cuts:
            cut.node.inputs[0] = renewed[cut.node.inputs[0]]
            for position, numbers in cut.bounds.items():
                old = self.context.facts.of(cut.node.inputs[position])
                if old.ints != tuple(numbers):
                    cut.node.inputs[position] = self._constant_like(old, numbers)

    def _constant_like(self, fact: Fact, numbers: list[int]) -> Value:
        assert fact.shape is not None
        assert fact.dtype is not None
        sizes = [size for size in fact.shape if isinstance(size, int)]
        return self.new.constant(np.array(numbers, fact.dtype.array_type).reshape(sizes), "last_steps")

    def take_the_only_step(self) -> None:
        """Where the trace is known to have one step, a Gather has nothing to choose."""
        for cut in self.cuts:
            if cut.node.op == "Gather" and len(cut.bounds[1]) == 1:
                rank = self.context.facts.of(cut.node.inputs[1]).rank
                axes = [self.new.ints(cut.axis)] if rank == 0 else []
                if rank in (0, 1):
                    cut.node.op, cut.node.attrs = "Squeeze" if axes else "Identity", {}
                    cut.node.inputs = [cut.node.inputs[0], *axes]

    def _follow(self, value: Value, axis: int, readers: dict[Value, list[Node]]) -> bool:
        """Find what reads a value; whether all of it is known to read the last steps only."""
        if value in self.graph.outputs:
            return False
        for node in readers.get(value, []):
            if node.domain or node.inputs[0] is not value or node.inputs.count(value) > 1:
                return False
            cut = self._cut(node, axis)
            if cut is not None:
                self.cuts.append(cut)
                continue
            moved = self._moved(node, axis)
            if moved is None or node.outputs[0] is None:
                return False
            self.between.append(node)
            if not self._follow(node.outputs[0], moved, readers):
                return False
        return True

    def _moved(self, node: Node, axis: int) -> int | None:
        """Where the axis is behind an op that only moves axes, or cuts others."""
        shape = self.context.facts.shape(node.inputs[0])
        if shape is None:
            return None
        if node.op in ("Identity", "Cast"):
            return axis
        if node.op == "Transpose":
            order = node.attrs.get("perm") or list(range(len(shape)))[::-1]
            return list(order).index(axis)
        if node.op == "Slice":
            axes = self._sliced_axes(node, len(shape))
            return axis if axes is not None and axis not in axes else None
        if node.op not in ("Squeeze", "Unsqueeze") or len(node.inputs) < 2:
            return None
        numbers = ints_of(self.graph, self.context, node.inputs[1])
        if numbers is None:
            return None
        if node.op == "Squeeze":
            if not numbers:
                return None
            gone = {number % len(shape) for number in numbers}
            return None if axis in gone else axis - sum(other < axis for other in gone)
        added = {number % (len(shape) + len(numbers)) for number in numbers}
        return [other for other in range(len(shape) + len(numbers)) if other not in added][axis]

    def _sliced_axes(self, node: Node, rank: int) -> list[int] | None:
        if len(node.inputs) > 3 and node.inputs[3] is not None:
            axes = ints_of(self.graph, self.context, node.inputs[3])
            return None if axes is None else [axis % rank for axis in axes]
        starts = self.context.facts.of(node.inputs[1]).content
        return None if starts is None else list(range(len(starts)))

    def _cut(self, node: Node, axis: int) -> _Cut | None:
        rank = self.context.facts.of(node.inputs[0]).rank
        if rank is None:
            return None
        if node.op == "Gather" and node.attrs.get("axis", 0) % rank == axis:
            return self._gather(node, axis)
        if node.op == "Slice" and self._sliced_axes(node, rank) == [axis]:
            return self._slice(node, axis)
        return None

    def _gather(self, node: Node, axis: int) -> _Cut | None:
        content = self.context.facts.of(node.inputs[1]).content
        if not content:
            return None
        indices = [self._from_last(index) for index in content]
        if any(index is None for index in indices):
            return None
        numbers = [index for index in indices if index is not None]
        reach = max(numbers) + 1 if self.trace.spec.reverse else -min(numbers)
        return _Cut(node, axis, {1: numbers}, reach)

    def _slice(self, node: Node, axis: int) -> _Cut | None:
        starts, ends = (self.context.facts.of(value).content for value in node.inputs[1:3])
        steps = self.context.facts.of(node.inputs[4]).ints if len(node.inputs) > 4 else (1,)
        if not starts or not ends or not steps or steps[0] < 1:
            return None
        start, end = self._from_last(starts[0]), self._from_last(ends[0])
        if self.trace.spec.reverse:
            return None if start is None or end is None else _Cut(node, axis, {1: [start], 2: [end]}, max(end, 1))
        if ends[0] == self.length or _is_at_least(ends[0], _BEYOND) or _is_at_least(ends[0], self.length):
            end = _BEYOND
        return None if start is None or end is None else _Cut(node, axis, {1: [start], 2: [end]}, -start)

    def _from_last(self, index: Dim | None) -> int | None:
        """An index as a negative number, of a reversed trace as one that is not: what it is in the trimmed trace."""
        if index is None:
            return None
        if self.trace.spec.reverse:
            if isinstance(index, int) and isinstance(self.length, int) and -self.length <= index < 0:
                index += self.length
            return index if isinstance(index, int) and 0 <= index < _BEYOND else None
        if isinstance(index, int) and index < 0:
            return index if index > -_BEYOND else None
        missing = None if self.length is None else self.length - index
        return -missing if isinstance(missing, int) and missing > 0 else None
