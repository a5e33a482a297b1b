"""Loops in pieces, so that their pullbacks keep less.

`keep_every`: a loop of T steps becomes a loop over parts, with a loop over the `every` steps of a part inside, and a
loop over the steps that are left. The pullback of the outer loop keeps the states before each part and computes the
inner loop once more when it goes back: so T / every states are kept of all, and `every` of the part at hand.

`cut_last`: a loop becomes one over the first steps, through which no gradient goes, and one over the last ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from webrnn.ir import (
    DType,
    Graph,
    Invariant,
    Node,
    Scan,
    SequenceInput,
    SequenceSpec,
    State,
    StateSpec,
    Trace,
    Value,
    is_scan,
)
from webrnn.shapes.facts import Fact
from webrnn.shapes.infer import infer, trip_count

from .emitter import Emitter, Size


def keep_every(graph: Graph, every: int, ends: Collection[Value] = ()) -> None:
    """Cut the loops of a graph. Those that may end early, those of which only the last elements of a trace are there,
    and those that make one of `ends` stay as they are."""
    b = Emitter(graph, infer(graph))
    nodes = graph.nodes
    graph.nodes = []
    for node in nodes:
        if is_scan(node) and _can_be_cut(Scan.of(node), b, every) and not any(end in node.outputs for end in ends):
            _Parts(b, Scan.of(node), every).run()
        else:
            graph.nodes.append(node)


@dataclass
class LastSteps:
    """What came of loops that were cut before their last steps."""

    ends: set[Value] = field(default_factory=set)
    """Results of first steps: no gradient goes further back than these."""
    loops: list[Node] = field(default_factory=list)
    """The nodes that are the last steps."""


def cut_last(graph: Graph, count: int) -> LastSteps:
    """Cut the loops of a graph before their last `count` steps, but for those that `keep_every` would not cut."""
    b, found = Emitter(graph, infer(graph)), LastSteps()
    nodes = graph.nodes
    graph.nodes = []
    for node in nodes:
        if is_scan(node) and _can_be_cut(Scan.of(node), b, count):
            _Last(b, Scan.of(node), count).run(found)
        else:
            graph.nodes.append(node)
    return found


def _can_be_cut(scan: Scan, b: Emitter, every: int) -> bool:
    steps = trip_count(scan, b.facts)
    if scan.cond is not None or scan.body_cond is not None or not scan.states:
        return False
    if isinstance(steps, int) and steps <= every:
        return False
    values = [*(item.whole for item in scan.sequences), *(trace.element for trace in scan.traces)]
    is_known = all(b.facts.shape(value) is not None for value in values)
    return is_known and not any(trace.spec.keep is not None or trace.spec.length is not None for trace in scan.traces)


class _Pieces:
    """A loop whose steps are taken by several."""

    def __init__(self, b: Emitter, scan: Scan):
        self.b, self.scan = b, scan
        steps = trip_count(scan, b.facts)
        if isinstance(steps, int):
            self.steps: Size = steps
        elif scan.n_steps is not None:
            self.steps = b.arithmetic("Max", b.op("Reshape", scan.n_steps, b.ints(1)), 0)
        else:
            self.steps = b.size(scan.sequences[0].whole, scan.sequences[0].spec.axis)

    def _joined(self, first: Sequence[Value], second: Sequence[Value]) -> list[Value]:
        """The traces of two loops, one after the other."""
        found = []
        for trace, *pair in zip(self.scan.traces, first, second, strict=True):
            ordered = pair[::-1] if trace.spec.reverse else pair
            found.append(self.b.op("Concat", *ordered, axis=_trace_axis(self.b, trace)))
        return found

    def _give(self, states: Sequence[Value], wholes: Sequence[Value]) -> None:
        """Let these be what the loop gave."""
        for state, value in zip(self.scan.states, states, strict=True):
            if state.final is not None:
                self.b.op("Identity", value, output=state.final)
        for trace, value in zip(self.scan.traces, wholes, strict=True):
            if trace.whole is not None:
                self.b.op("Identity", value, output=trace.whole)

    def _piece(self, item: SequenceInput, start: Size, end: Size) -> Value:
        """The elements of a sequence that steps from `start` up to `end` take."""
        b, axis = self.b, item.spec.axis % self.b.rank(item.whole)
        if item.spec.reverse:
            start, end = b.arithmetic("Sub", self.steps, end), b.arithmetic("Sub", self.steps, start)
        if start == 0 and b.arithmetic("Sub", b.size(item.whole, axis), end) == 0:
            return item.whole
        return b.sliced(item.whole, axis, start, end)

    def _loop(self, name: str, start: Size, end: Size, states: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """The last states and the traces of a loop over some of the steps."""
        b, scan = self.b, self.scan
        rest = self._copy()
        rest.name = f"{scan.name or 'scan'}_{name}"
        for state, init in zip(rest.states, states, strict=True):
            state.init, state.final = init, b.value("state")
        for item, given in zip(rest.sequences, scan.sequences, strict=True):
            item.whole = self._piece(given, start, end)
        wholes = [b.value("rest") for _ in rest.traces]
        for trace, whole in zip(rest.traces, wholes, strict=True):
            trace.whole = whole
        if rest.iteration is not None and start != 0:
            self._count_from(rest, b, start)
        rest.n_steps = None if rest.sequences else self._scalar(b.arithmetic("Sub", end, start))
        b.add(rest.to_node())
        return [state.final for state in rest.states if state.final is not None], wholes

    def _copy(self) -> Scan:
        made = self.scan.to_node()
        made.attrs = {**made.attrs, "body": self.scan.body.copy()}
        for new, old in zip(made.attrs["body"].inputs, self.scan.body.inputs, strict=True):
            self.b.facts.set(new, self.b.facts.of(old))
        return Scan.of(made)

    def _count_from(self, scan: Scan, around: Emitter, start: Size) -> None:
        """Let a loop count its steps from a number on."""
        assert scan.iteration is not None
        inside = Emitter(scan.body, self.b.facts)
        number, scan.iteration = scan.iteration, _number(inside, "step")
        if isinstance(start, int):
            base = inside.constant(start)
        else:
            scalar = start if around.facts.shape(start) == () else around.op("Squeeze", start, around.ints(0))
            base = _number(inside, "first")
            scan.invariants.append(Invariant(scalar, base))
        scan.body.nodes.insert(0, Node("Add", [base, scan.iteration], [number]))

    def _scalar(self, size: Size) -> Value:
        return self.b.constant(np.int64(size)) if isinstance(size, int) else self.b.op("Squeeze", size, self.b.ints(0))


class _Last(_Pieces):
    """A loop that is cut before its last steps."""

    def __init__(self, b: Emitter, scan: Scan, count: int):
        super().__init__(b, scan)
        self.first = b.arithmetic("Max", b.arithmetic("Sub", self.steps, count), 0)

    def run(self, found: LastSteps) -> None:
        b, scan = self.b, self.scan
        inits = [state.init for state in scan.states]
        states, wholes = self._loop("first", 0, self.first, inits)
        found.ends.update([*states, *wholes])
        if not isinstance(self.first, int):  # a loop that is short enough goes back to where it started
            is_short = b.op("Squeeze", b.op("Equal", self.first, b.ints(0)), b.ints(0))
            states = [b.op("Where", is_short, *pair) for pair in zip(inits, states, strict=True)]
        states, rests = self._loop("last", self.first, self.steps, states)
        found.loops.append(b.graph.nodes[-1])
        self._give(states, self._joined(wholes, rests))


class _Parts(_Pieces):
    """A loop that is cut into parts."""

    def __init__(self, b: Emitter, scan: Scan, every: int):
        super().__init__(b, scan)
        self.every = every
        self.parts = b.arithmetic("Div", self.steps, every)
        self.done = b.arithmetic("Mul", self.parts, every)
        """How many steps the parts have together; the rest follows."""

    def run(self) -> None:
        states, wholes = self._parts()
        if self.b.arithmetic("Sub", self.steps, self.done) != 0:
            states, rests = self._loop("rest", self.done, self.steps, states)
            wholes = self._joined(wholes, rests)
        self._give(states, wholes)

    def _parts(self) -> tuple[list[Value], list[Value]]:
        """The loop over parts: the last states, and the traces of all steps in it."""
        b, scan = self.b, self.scan
        body = Emitter(Graph(f"{scan.body.name}_part"), b.facts)
        outer = Scan(body.graph, name=f"{scan.name or 'scan'}_parts", frugal=True)
        inner = self._copy()
        finals = []
        for state in inner.states:
            before = _inside(body, state.init)
            after, final = body.value("after"), b.value("state")
            outer.states.append(State(StateSpec(), state.init, [before], after, final))
            state.init, state.final = before, after
            finals.append(final)
        for item, given in zip(inner.sequences, scan.sequences, strict=True):
            axis = given.spec.axis % b.rank(given.whole)
            whole = self._piece(given, 0, self.done)
            sizes = [b.size(whole, other) for other in range(b.rank(whole))]
            cut = b.op(
                "Reshape", whole, b.sizes([*sizes[:axis], self.parts, self.every, *sizes[axis + 1 :]]), allowzero=1
            )
            shape = b.shape(cut)
            element = body.value("part", b.dtype(cut), (*shape[:axis], *shape[axis + 1 :]))
            b.facts.set(element, Fact(element.dtype, element.shape))
            outer.sequences.append(SequenceInput(SequenceSpec(axis, given.spec.reverse), cut, element))
            item.whole, item.spec = element, SequenceSpec(axis, given.spec.reverse)
        self._hand_in(body, outer, inner)
        wholes: list[Value] = []
        for trace, own in zip(inner.traces, scan.traces, strict=True):
            axis = _trace_axis(b, own)
            trace.spec, trace.whole = replace(trace.spec, axis=axis), body.value("trace")
            whole = b.value("parts")
            outer.traces.append(Trace(trace.spec, trace.whole, whole))
            wholes.append(whole)
        body.add(inner.to_node())
        outer.n_steps = None if outer.sequences else self._scalar(self.parts)
        b.add(outer.to_node())
        return finals, [self._without_parts(whole, trace) for whole, trace in zip(wholes, outer.traces, strict=True)]

    def _without_parts(self, whole: Value, trace: Trace) -> Value:
        b, axis = self.b, trace.spec.axis
        sizes = [b.size(whole, other) for other in range(b.rank(whole))]
        return b.op("Reshape", whole, b.sizes([*sizes[:axis], self.done, *sizes[axis + 2 :]]), allowzero=1)

    def _hand_in(self, body: Emitter, outer: Scan, inner: Scan) -> None:
        for invariant in inner.invariants:
            passed = _inside(body, invariant.outer)
            outer.invariants.append(Invariant(invariant.outer, passed))
            invariant.outer = passed
        if inner.iteration is not None:
            outer.iteration = _number(body, "part_number")
            self._count_from(inner, body, body.op("Mul", outer.iteration, body.constant(self.every)))
        inner.n_steps = None if inner.sequences else body.constant(self.every)


def _trace_axis(b: Emitter, trace: Trace) -> int:
    return trace.spec.axis % (b.rank(trace.element) + 1)


def _inside(body: Emitter, outer: Value) -> Value:
    """What stands in a body for a value that it is given."""
    value = outer.like(body.unique_name(outer.name))
    fact = body.facts.of(outer)
    body.facts.set(value, Fact(fact.dtype, fact.shape))
    value.dtype, value.shape = fact.dtype or value.dtype, fact.shape or value.shape
    return value


def _number(body: Emitter, name: str) -> Value:
    value = body.value(name, DType.INT64, ())
    body.facts.set(value, Fact(DType.INT64, ()))
    return value
