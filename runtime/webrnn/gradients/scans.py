"""The pullback of a Scan: a Scan that runs backwards over the traces of the forward one.

Step by step, from the last to the first, its body computes once more what the forward body did, from the states before
the step, and takes cotangents back through it. What it needs of the forward loop:

    states      before each step, as traces; of several taps those that are read
    sequences   as they are, in the other direction
    invariants  as they are

Nothing else is kept. What depends on these alone, a product of states with weights say, the passes compute for all
steps at once, before the loop that goes back. What it gives:

    states      an accumulator for each value that later steps read: with taps -1 and -3 three of them, which move on
                by one place in each step and take what the taps add
    sequences   traces
    invariants  sums over the steps, which `passes/sink_sums.py` takes behind the loop: a sum of products is one product
"""

from __future__ import annotations

from collections.abc import Iterator

from webrnn.ir import DType, Graph, Invariant, Node, Scan, SequenceInput, State, StateSpec, Trace, TraceSpec, Value
from webrnn.shapes.facts import Fact
from webrnn.shapes.infer import trip_count

from .emitter import Emitter, Size
from .pullback import active_in_body, is_float, pull_nodes, reached
from .registry import Pull


def pull_scan(g: Pull) -> list[Value | None]:
    """The cotangents of the operands of a Scan; the node in the graph gets the traces that they need."""
    return _Backward(g).run()


class _Backward:
    """The way back through one Scan."""

    def __init__(self, g: Pull):
        self.g, self.b, self.facts = g, g.b, g.b.facts
        self.scan = Scan.of(g.node)
        """The forward loop, which gets more traces."""
        given = dict(zip(g.node.outputs, g.given, strict=True))
        self.of_finals = [None if state.final is None else given[state.final] for state in self.scan.states]
        self.of_traces = [None if trace.whole is None else given[trace.whole] for trace in self.scan.traces]
        self.inside = active_in_body(self.scan, g.active, self.facts)
        self.flowing = self._flowing()
        body = g.node.attrs["body"]
        copied: Graph = body.copy()
        self.own = dict(zip(_values(body), _values(copied), strict=True))
        """What stands for a value of the forward body in the one that goes back, and begins with the same nodes."""
        for new, old in zip(copied.inputs, body.inputs, strict=True):
            self.facts.set(new, self.facts.of(old))
        self.e = Emitter(copied, self.facts)
        self.e.infer()
        self.back = Scan(copied, name=f"{self.scan.name or 'scan'}_back", frugal=self.scan.frugal)
        self.found: dict[Value, Value] = {}
        """The cotangents of operands."""

    def run(self) -> list[Value | None]:
        self._settle_steps()
        forward = list(self.e.graph.nodes)
        accumulators, seeds = self._seeds()
        active = {self.own[value] for value in self.inside if value in self.own}
        inner = pull_nodes(self.e, forward, seeds, active, self.g.options)
        starts = self._take_states(accumulators, inner)
        wholes = self._take_sequences(inner)
        sums = self._take_invariants(inner)
        self._hand_in()
        self._write_forward()
        self.b.add(self.back.to_node())
        for state, finals in starts:
            self._give(state.init, self._of_init(state, finals))
        for item, whole in wholes:
            self._give(item.whole, self._of_sequence(item, whole))
        for outer, final in sums:
            self._give(outer, final)
        return [None if value is None else self.found.pop(value, None) for value in self.g.node.inputs]

    def _give(self, operand: Value, cotangent: Value) -> None:
        total = self.b.plus(self.found.get(operand), cotangent)
        assert total is not None
        self.found[operand] = total

    def _flowing(self) -> list[int]:
        """The places of states of which some value has a cotangent, because a later step or a result reads it."""
        scan = self.scan
        flowing = {
            place
            for place, state in enumerate(scan.states)
            if self.of_finals[place] is not None and is_float(state.body_in[0], self.facts)
        }
        while True:
            ends = [scan.states[place].body_out for place in flowing]
            ends += [trace.element for trace, d in zip(scan.traces, self.of_traces, strict=True) if d is not None]
            wanted = reached(scan.body.nodes, ends, self.inside)
            more = {
                place
                for place, state in enumerate(scan.states)
                if place not in flowing and any(value in wanted for value in state.body_in)
            }
            if not more:
                return sorted(flowing)
            flowing |= more

    # ---------------------------------------------------------------------------------------------------------- steps

    def _settle_steps(self) -> None:
        b, scan = self.b, self.scan
        is_conditional = scan.cond is not None or scan.body_cond is not None
        known = trip_count(scan, self.facts)
        self.most: Size | None = None
        """How many steps the loop may take; None is any number."""
        if isinstance(known, int):
            self.most = known
        elif scan.n_steps is not None:
            self.most = b.arithmetic("Max", b.op("Reshape", scan.n_steps, b.ints(1)), 0)
        elif scan.sequences:
            self.most = b.size(scan.sequences[0].whole, scan.sequences[0].spec.axis)
        if is_conditional or self.most is None:
            self.taken: Size = self._count_steps()
        else:
            self.taken = self.most
        """How many it takes."""
        self.limit = None if any(node is self.g.node for node in self.g.options.whole) else self.g.options.truncate
        self.count = self.taken if self.limit is None else b.arithmetic("Min", self.taken, self.limit)
        """How many are taken back, the last ones."""
        self.first = b.arithmetic("Sub", self.taken, self.count)

    def _count_steps(self) -> Size:
        """A state that counts: how many steps a loop with a condition takes is known when it ends."""
        inner = Emitter(self.scan.body, self.facts)
        before, init = inner.value("count"), self.b.constant(0, "count")
        self.facts.set(before, Fact(DType.INT64, ()))
        after = inner.op("Add", before, inner.constant(1, "one"))
        final = self.b.value("count", DType.INT64, ())
        self.scan.add_state(init, before, after, final)
        self._write_forward()
        return self.b.op("Reshape", final, self.b.ints(1))

    def _write_forward(self) -> None:
        made, node = self.scan.to_node(), self.g.node
        node.inputs, node.outputs, node.attrs = made.inputs, made.outputs, made.attrs
        self.b.settle(node)

    # ------------------------------------------------------------------------------------------ cotangents of results

    def _seeds(self) -> tuple[dict[int, list[Value]], dict[Value, Value]]:
        """The accumulators of each state, the first for its newest value, and the cotangents of what the body gives."""
        seeds: dict[Value, Value] = {}
        accumulators: dict[int, list[Value]] = {}
        for place in self.flowing:
            state = self.scan.states[place]
            fact = self.facts.of(state.body_in[0])
            accumulators[place] = [self._inner(f"d_{state.body_out.name}", fact) for _ in range(state.spec.depth)]
            self._seed(seeds, state.body_out, accumulators[place][0])
        for trace, given in zip(self.scan.traces, self.of_traces, strict=True):
            if given is not None and trace.element in self.inside:
                element = self._inner(f"d_{trace.element.name}", self.facts.of(trace.element))
                whole = self._steps_of_trace(trace.spec, given)
                self.back.add_sequence(whole, element, trace.spec.axis, not trace.spec.reverse)
                self._seed(seeds, trace.element, element)
        return accumulators, seeds

    def _seed(self, seeds: dict[Value, Value], end: Value, cotangent: Value) -> None:
        total = self.e.plus(seeds.get(self.own[end]), cotangent)
        assert total is not None
        seeds[self.own[end]] = total

    def _inner(self, name: str, fact: Fact) -> Value:
        value = self.e.value(name, fact.dtype, fact.shape)
        self.facts.set(value, fact)
        return value

    def _steps_of_trace(self, spec: TraceSpec, given: Value) -> Value:
        """The part of a trace's cotangent that belongs to the steps that are taken back; where the trace has no
        element for one of them, zeros."""
        b, axis = self.b, spec.axis % self.b.rank(given)
        if spec.keep is not None:
            kept = b.arithmetic("Min", self.taken, spec.keep)
            missing = b.arithmetic("Max", b.arithmetic("Sub", self.count, kept), 0)
            more = b.arithmetic("Max", b.arithmetic("Sub", kept, self.count), 0)
            if spec.reverse:
                return b.padded(b.sliced(given, axis, 0, b.arithmetic("Sub", kept, more)), axis, 0, missing)
            return b.padded(b.sliced(given, axis, more, kept), axis, missing, 0)
        if self.first == 0 and spec.length is None:
            return given
        if spec.reverse:
            return b.sliced(given, axis, 0, self.count)
        return b.sliced(given, axis, self.first, self.taken)

    # -------------------------------------------------------------------------------------------------- what it gives

    def _take_states(
        self, accumulators: dict[int, list[Value]], inner: dict[Value, Value]
    ) -> list[tuple[State, list[Value]]]:
        """In each step what a tap adds goes to the value that it read, and all of them move on by one place."""
        starts = []
        for place, befores in accumulators.items():
            state, finals = self.scan.states[place], []
            added = {tap: inner.get(self.own[value]) for tap, value in zip(state.spec.taps, state.body_in, strict=True)}
            for age, (before, older) in enumerate(zip(befores, [*befores[1:], None], strict=True)):
                total = self.e.plus(older, added.get(-age - 1))
                if total is None:
                    total = self.e.zeros_like(self.own[state.body_in[0]])
                finals.append(self.b.value(f"d_{state.init.name}"))
                self.back.states.append(State(StateSpec(), self._start(place, age), [before], total, finals[-1]))
            if state.init in self.g.active:
                starts.append((state, finals))
        return starts

    def _start(self, place: int, age: int) -> Value:
        """What results add to the last value of a state, or to one that is older by so many steps."""
        b, state, given = self.b, self.scan.states[place], self.of_finals[place]
        if state.spec.is_plain:
            return b.zeros_like(state.init) if given is None else given
        if given is None:
            return b.zeros_like(b.op("Gather", state.init, b.constant(0), axis=0))
        return b.op("Gather", given, b.constant(state.spec.depth - 1 - age), axis=0)

    def _of_init(self, state: State, finals: list[Value]) -> Value:
        b = self.b
        made = finals[0]
        if not state.spec.is_plain:
            made = b.op("Concat", *(b.op("Unsqueeze", final, b.ints(0)) for final in reversed(finals)), axis=0)
        if isinstance(self.first, int):
            return made if self.first == 0 else b.zeros_like(state.init)
        if self.limit is None:
            return made
        reaches = b.op("Squeeze", b.op("Equal", self.first, b.ints(0)), b.ints(0))
        return b.where(reaches, made, None)

    def _take_sequences(self, inner: dict[Value, Value]) -> list[tuple[SequenceInput, Value]]:
        wholes = []
        for item in self.scan.sequences:
            made = inner.get(self.own[item.element])
            if made is not None and item.whole in self.g.active:
                whole = self.b.value(f"d_{item.whole.name}")
                self.back.add_trace(made, whole, item.spec.axis, not item.spec.reverse)
                wholes.append((item, whole))
        return wholes

    def _part(self, item: SequenceInput) -> tuple[Size, Size]:
        """The elements of a sequence that are taken back: the first, and the one behind the last."""
        if not item.spec.reverse:
            return self.first, self.taken
        assert self.most is not None
        subtract = self.b.arithmetic
        return subtract("Sub", self.most, self.taken), subtract("Sub", self.most, self.first)

    def _of_sequence(self, item: SequenceInput, whole: Value) -> Value:
        """Elements that no step takes have zeros."""
        b, axis = self.b, item.spec.axis % self.b.rank(item.whole)
        start, end = self._part(item)
        return b.padded(whole, axis, start, b.arithmetic("Sub", b.size(item.whole, axis), end))

    def _take_invariants(self, inner: dict[Value, Value]) -> list[tuple[Value, Value]]:
        sums = []
        for item in self.scan.invariants:
            made = inner.get(self.own[item.inner])
            if made is not None and item.outer in self.g.active:
                before = self._inner(f"sum_{item.outer.name}", self.facts.of(item.outer))
                final = self.b.value(f"d_{item.outer.name}")
                start = self.b.zeros_like(item.outer)
                self.back.add_state(start, before, self.e.op("Add", before, made), final)
                sums.append((item.outer, final))
        return sums

    # ------------------------------------------------------------------------------------------------- what it needs

    def _hand_in(self) -> None:
        """Give the body that goes back what it reads of the forward loop, and nothing else."""
        ends = [*(state.body_out for state in self.back.states), *(trace.element for trace in self.back.traces)]
        self.e.graph.outputs = ends
        self.e.prune()
        read = {value for node in self.e.graph.nodes for value in node.inputs} | set(ends)
        for state in self.scan.states:
            for before in state.body_in:
                if before in self.own and self.own[before] in read:
                    self.back.add_sequence(self._saved(before), self.own[before], 0, reverse=True)
        for item in self.scan.sequences:
            if self.own[item.element] in read:
                self.back.add_sequence(
                    self._taken_of(item), self.own[item.element], item.spec.axis, not item.spec.reverse
                )
        for invariant in self.scan.invariants:
            if self.own[invariant.inner] in read:
                self.back.invariants.append(Invariant(invariant.outer, self.own[invariant.inner]))
        if self.scan.iteration is not None and self.own[self.scan.iteration] in read:
            self._count_down(self.own[self.scan.iteration])
        if not self.back.sequences:
            self.back.n_steps = self._scalar(self.count)

    def _saved(self, value: Value) -> Value:
        """A trace of the forward loop."""
        for trace in self.scan.traces:
            if trace.element is value and trace.whole is not None and trace.spec == TraceSpec(keep=self._keep):
                return trace.whole
        whole = self.b.value(f"{value.name}_steps")
        self.scan.traces.append(Trace(TraceSpec(keep=self._keep), value, whole))
        self._write_forward()
        return whole

    @property
    def _keep(self) -> int | None:
        return None if self.first == 0 else self.limit

    def _taken_of(self, item: SequenceInput) -> Value:
        b, axis = self.b, item.spec.axis % self.b.rank(item.whole)
        start, end = self._part(item)
        if start == 0 and b.arithmetic("Sub", b.size(item.whole, axis), end) == 0:
            return item.whole
        return b.sliced(item.whole, axis, start, end)

    def _count_down(self, number: Value) -> None:
        """The number of a step, from the number of the step that goes back."""
        self.back.iteration = self._inner("iteration", Fact(DType.INT64, ()))
        last = self.b.arithmetic("Sub", self.taken, 1)
        if isinstance(last, int):
            inner = self.e.constant(last, "last")
        else:
            inner = self._inner("last", Fact(DType.INT64, ()))
            self.back.invariants.append(Invariant(self._scalar(last), inner))
        self.e.graph.nodes.insert(0, Node("Sub", [inner, self.back.iteration], [number]))

    def _scalar(self, size: Size) -> Value:
        return self.b.constant(size) if isinstance(size, int) else self.b.op("Squeeze", size, self.b.ints(0))


def _values(graph: Graph) -> Iterator[Value]:
    yield from graph.inputs
    yield from graph.constants
    for node in graph.nodes:
        yield from (value for value in node.outputs if value is not None)
