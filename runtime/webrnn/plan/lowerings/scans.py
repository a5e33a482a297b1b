"""Loops.

A Scan whose body is one product and one recurrent cell becomes one instruction (`sequences.py`); any other becomes
a loop. In a loop the elements of sequences and traces are views that move; a state is either a buffer that the body
updates, or, where all of its history is kept, the place of the previous step's element in that history: nothing is
copied between steps.
"""

from __future__ import annotations

from webrnn.ir import WEBRNN, Dim, Node, Scan, Value
from webrnn.ir.dims import is_late
from webrnn.ir.scan import SequenceInput, State, Trace, TraceSpec
from webrnn.ops.sets import RESHAPES, VIEWS
from webrnn.shapes.facts import Fact
from webrnn.shapes.infer import trip_count

from ..draft import LoopInstruction
from ..instructions import EXACT, LIMITED, UNLIMITED
from ..lowering import Lowering, present, rule
from ..numbers import Numbers
from ..views import Sizes, View, dense_view
from .linear import prepare_matrices
from .memories import match_memory
from .pads import fill, zeros_of
from .sequences import lower_sequence, match_cell

UPDATES_IN_PLACE = {
    "GruCell": {2},
    "GruUpdate": {2, 3},
    "LstmCell": {2},
    "Expression": None,
    **dict.fromkeys(("Where", "Add", "Sub", "Mul", "Min", "Max", "And", "Or", "Tanh", "Sigmoid", "Relu")),
    "ScatterElements": {0},
    "ScatterND": {0},
    "TensorScatter": {0},
}
"""Ops that may write a result over an operand: which operands, None for any of its shape."""


@rule("Scan", domain=WEBRNN)
def _scan(l: Lowering, node: Node) -> None:
    scan = Scan.of(node)
    if "fused_sequences" not in l.options and all(state.spec.is_plain for state in scan.states):
        cell = match_cell(l, scan)
        if cell is not None:
            lower_sequence(l, scan, cell)
            return
        memory = match_memory(l, scan)
        if memory is not None:
            memory.lower(l)
            return
    _Loop(l, scan).lower()


class _Loop:
    def __init__(self, lowering: Lowering, scan: Scan):
        self.l, self.scan = lowering, scan
        self.id = lowering.new_loop()
        self.n_steps = trip_count(scan, lowering.facts)
        if isinstance(self.n_steps, int) and self.n_steps > lowering.most_steps:
            self.n_steps = None  # more than a size of a plan can be
        self.most = self._most_steps()
        self.after_body: list[tuple[View, View]] = []
        """Copies at the end of each step, (from, to)."""
        self.epilogue: list[tuple[View, View]] = []
        self.length: Dim | None = None
        """Of traces of a loop of which it is known only when it has run how many steps it takes."""
        self.open_elements: dict[Trace, Sizes] = {}
        """Traces whose elements have a size that is known only while running."""
        self.turned: list[tuple[Trace, View]] = []
        """Traces in another order whose length is known only when the loop has run, and all steps of them in theirs."""

    def lower(self) -> None:
        l, scan = self.l, self.scan
        loop = LoopInstruction("loop", [], id=self.id)
        self._count_steps(loop)
        for invariant in scan.invariants:
            self._hand_in(invariant.outer, invariant.inner)
        prepare_matrices(l, scan, self.n_steps)
        for sequence in scan.sequences:
            l.views[sequence.element] = self._element(sequence)
        self._open_lengths(loop)
        traces = [(trace, self._trace_element(trace)) for trace in scan.traces if trace.whole is not None]
        self._place_traces(traces)
        histories = [self._place_history(state) for state in scan.states if not state.spec.is_plain]
        carried = [self._place_state(state) for state in scan.states if state.spec.is_plain]
        body = l.in_block(lambda: self._body(traces, carried, histories))
        loop.blocks = [body, l.in_block(lambda: self._copies(self.epilogue))]
        if scan.body_cond is not None:
            loop.body_condition = l.view(scan.body_cond)
        l.add(loop)
        if self.length is not None:
            l.emit("let", self.length, loop.taken, 0)
        for trace, in_time in self.turned:
            self._turn(trace, in_time)

    def _most_steps(self) -> Dim:
        if self.n_steps is not None:
            return self.n_steps
        lengths = [self.l.view(item.whole).shape[item.spec.axis] for item in self.scan.sequences]
        known = self.l.facts.of(self.scan.n_steps).content if self.scan.n_steps is not None else None
        if known and isinstance(known[0], int):
            return min(max(known[0], 0), self.l.most_steps)
        return lengths[0] if lengths else self.l.most_steps

    def _count_steps(self, loop: LoopInstruction) -> None:
        l, scan = self.l, self.scan
        loop.most_steps, loop.strictness = self.most, EXACT
        known = l.facts.of(scan.n_steps).ints if scan.n_steps is not None else None
        if self.n_steps is not None or (known and known[0] <= l.most_steps):
            loop.n_steps = self.most
        elif scan.n_steps is not None:
            loop.n_steps_view = l.dense(l.view(scan.n_steps)).reshaped(())
            loop.strictness = LIMITED if scan.sequences else UNLIMITED
        elif scan.sequences:
            loop.n_steps = self.most
        else:
            loop.strictness = UNLIMITED
        if scan.cond is not None:
            loop.condition = l.dense(l.view(scan.cond)).reshaped(())
        if scan.iteration is not None:
            loop.iteration = l.views[scan.iteration] = l.temporary((), "i64")

    def _open_lengths(self, loop: LoopInstruction) -> None:
        """Traces that are as long as steps were taken, and those whose elements are of a late size."""
        l, scan = self.l, self.scan
        traces = [trace for trace in scan.traces if trace.whole is not None]
        if traces and (scan.cond is not None or scan.body_cond is not None or self.n_steps is None):
            self.length, loop.taken = l.new_late(), l.temporary((), "i64")
        for trace in traces:
            whole = present(trace.whole)
            if not l.is_open(trace.element) and self.length is None:
                self._require_what_is_kept(trace)
                continue
            if trace.spec.keep is not None or trace.spec.length is not None:
                raise l.refuse("an output is as long as it takes steps, and cut or filled up")
            shape = l.facts.shape(trace.element)
            if shape is None:
                raise l.refuse(f"the rank of {whole.name} is not known")
            sizes = tuple(l.new_late() if size is None else size for size in shape)
            if None in shape:
                self.open_elements[trace] = sizes
                l.set_sizes([size for size in sizes if is_late(size)], [0 for size in sizes if is_late(size)])
                if loop.iteration is None:
                    loop.iteration = l.temporary((), "i64")
            if trace.spec == TraceSpec():
                l.facts.set(whole, Fact(l.facts.dtype(trace.element), (self._trace_length(), *sizes)))
            else:
                in_time = l.temporary((self._trace_length(), *sizes), l.dtype(trace.element))
                self.turned.append((trace, in_time))
        self.iteration = loop.iteration

    def _trace_length(self) -> Dim:
        return self.most if self.length is None else self.length

    def _open_element(self, trace: Trace) -> View:
        """The element of a trace whose size is known only now: all of them are of the same."""
        l, sizes = self.l, self.open_elements[trace]
        element = l.view(trace.element)
        assert self.iteration is not None
        numbers = Numbers(l)
        is_first = numbers.of(self.iteration).is_equal(0)
        same = [is_first | numbers.of(size).is_equal(have) for size, have in zip(sizes, element.shape, strict=True)]
        numbers.demand(*same)
        late = [axis for axis, size in enumerate(sizes) if is_late(size)]
        l.set_sizes([sizes[axis] for axis in late], [element.shape[axis] for axis in late])
        return element.relaid(sizes, element.strides)

    def _hand_in(self, outer: Value, inner: Value) -> None:
        array = self.l.array(outer)
        if array is not None:
            self.l.arrays[inner] = array
        else:
            self.l.views[inner] = self.l.view(outer)
        self.l.packings.pop(inner, None)
        if outer in self.l.packings:
            self.l.packings[inner] = self.l.packings[outer]

    def _element(self, sequence: SequenceInput) -> View:
        return _moving_element(
            self.l.view(sequence.whole), sequence.spec.axis, sequence.spec.reverse, self.most, self.id
        )

    def _require_what_is_kept(self, trace: Trace) -> None:
        """A trimmed trace of an open number of steps: let the plan hold only where there are as many as are kept."""
        l, keep, element = self.l, trace.spec.keep, self.l.facts.of(trace.element)
        if keep is None or self.n_steps is None or isinstance(self.n_steps, int) or element.shape is None:
            return
        l.require_not_negative(self.n_steps - keep)
        axis = trace.spec.axis % (len(element.shape) + 1)
        l.facts.set(present(trace.whole), Fact(element.dtype, (*element.shape[:axis], keep, *element.shape[axis:])))

    def _trace_element(self, trace: Trace) -> View:
        l = self.l
        for turned, in_time in self.turned:
            if turned is trace:
                return _moving_element(in_time, 0, False, self.most, self.id)
        whole = l.output(present(trace.whole))
        axis = trace.spec.axis % whole.rank
        if trace.spec.length is not None:
            l.require_not_negative(whole.shape[axis] - self.most)
            fill(l, whole, zeros_of(whole.dtype))
            whole = whole.sliced(axis, 0, self.most)
        if trace.spec.keep is None:
            if whole.shape[axis] != self._trace_length():
                raise l.refuse("an output is not as long as the loop takes steps")
            return _moving_element(whole, axis, trace.spec.reverse, self.most, self.id)
        kept = whole.shape[axis]
        first = kept - 1 if trace.spec.reverse else 0
        stride = whole.strides[axis] * (-1 if trace.spec.reverse else 1)
        return whole.without_axis(axis, first).moving(self.id, stride, self.most - kept)

    def _turn(self, trace: Trace, in_time: View) -> None:
        """See a trace in its order, now that it is known how long it is."""
        whole, axis = present(trace.whole), trace.spec.axis % in_time.rank
        seen = in_time.sliced(0, in_time.shape[0] - 1, in_time.shape[0], -1) if trace.spec.reverse else in_time
        seen = seen.transposed([*range(1, axis + 1), 0, *range(axis + 1, seen.rank)])
        self.l.set_shape(whole, seen.shape)
        self.l.views[whole] = seen

    def _place_traces(self, traces: list[tuple[Trace, View]]) -> None:
        """A result that is traced is made in its place, if it is made by the body and that place has no gaps."""
        made = {output for node in self.scan.body.nodes for output in node.outputs if output is not None}
        for trace, view in traces:
            value = trace.element
            if value in made and value not in self.l.destinations and trace not in self.open_elements:
                if not view.is_contiguous or trace.spec.keep is not None:
                    continue
                self.l.destinations[value] = view

    def _place_history(self, state: State) -> tuple[State, View]:
        """The last values of a state that is read at several steps, the newest last."""
        l = self.l
        init = l.view(state.init)
        for before in state.body_in:
            if l.shape(before) != l.shape(state.body_out) or l.shape(before) != init.shape[1:]:
                raise l.refuse("a state changes its shape")
        l.require_equal(init.shape[0], state.spec.depth)
        buffer = self._buffer(state, init)
        l.copy(init, buffer)
        for before, tap in zip(state.body_in, state.spec.taps, strict=True):
            l.views[before] = buffer.without_axis(0, state.spec.depth + tap)
        return state, buffer

    def _place_state(self, state: State) -> tuple[State, View, bool]:
        """Where a state is before each step, and whether its next value has to be copied there."""
        l = self.l
        (before,) = state.body_in
        init = l.view(state.init)
        history = l.destinations.get(state.body_out)
        if l.is_open(before):
            return self._place_open_state(state, init)
        if l.shape(before) != l.shape(state.body_out) or init.shape != l.shape(before):
            raise l.refuse("a state changes its shape")
        if history is not None and any(trace.element is state.body_out for trace in self.scan.traces):
            start = l.dense(init) if init.follows is None else _fresh_copy(l, init)
            l.views[before] = start.following(history, self.id)
            if state.final is not None:
                self.epilogue.append((l.views[before], l.output(state.final)))
            return state, l.views[before], False
        buffer = self._buffer(state, init)
        l.copy(init, buffer)
        l.views[before] = buffer
        if self._can_update_in_place(state):
            l.destinations[state.body_out] = buffer
            l.overwriting.add(state.body_out)
            return state, buffer, False
        return state, buffer, True

    def _place_open_state(self, state: State, init: View) -> tuple[State, View, bool]:
        """A state whose size changes from step to step, in a place that grows."""
        l = self.l
        (before,) = state.body_in
        shape = l.facts.shape(before)
        if shape is None:
            raise l.refuse("a state changes its rank")
        sizes = [l.new_late() if size is None else size for size in shape]
        l.set_shape(before, sizes)
        buffer = l.views[before] = l.temporary(sizes, init.dtype)
        self._enter(init, buffer)
        if state.final is not None:
            l.set_shape(state.final, sizes)
            l.views[state.final] = buffer
        return state, buffer, True

    def _enter(self, source: View, buffer: View) -> None:
        """Copy the next value of a state to its place. Its sizes are set behind that: they may say what it is now."""
        l = self.l
        for have, need in zip(source.shape, buffer.shape, strict=True):
            if not is_late(need) and have != need:
                l.require_equal(have, need)
        l.copy(source, dense_view(buffer.storage, source.shape))
        late = [axis for axis, size in enumerate(buffer.shape) if is_late(size)]
        l.set_sizes([buffer.shape[axis] for axis in late], [source.shape[axis] for axis in late])

    def _buffer(self, state: State, init: View) -> View:
        if state.final is not None:
            return self.l.dense_output(state.final)
        return self.l.temporary(init.shape, init.dtype)

    def _can_update_in_place(self, state: State) -> bool:
        """Whether the next value can be written over the one before: nothing reads that later."""
        (before,) = state.body_in
        nodes = self.scan.body.nodes
        made_at = self._made_at(state.body_out)
        others = [*(s.body_out for s in self.scan.states if s is not state), *(t.element for t in self.scan.traces)]
        if made_at is None or state.body_out in others or state.body_out in self.l.destinations or before in others:
            return False
        aliases, in_order = {before}, {before}
        for i, node in enumerate(nodes):
            reads = [index for index, value in enumerate(node.inputs) if value in aliases]
            if not reads:
                continue
            if i > made_at:
                return False
            reads_in_order = all(node.inputs[index] in in_order for index in reads)
            if i == made_at and not (reads_in_order and _may_overwrite(node, reads)):
                return False
            if i < made_at and not node.domain and node.op in VIEWS:
                aliases.update(output for output in node.outputs if output is not None)
                if node.op in RESHAPES and node.inputs[0] in in_order:
                    in_order.update(output for output in node.outputs if output is not None)
        return not aliases.intersection(others)

    def _made_at(self, value: Value) -> int | None:
        """The place of the node that writes a value: what a node only gives another shape is made in its place."""
        nodes = self.scan.body.nodes
        makers = {output: i for i, node in enumerate(nodes) for output in node.outputs}
        at = makers.get(value)
        while at is not None and not nodes[at].domain and nodes[at].op in RESHAPES and nodes[at].inputs[0] in makers:
            at = makers[nodes[at].inputs[0]]
        return at

    def _body(
        self,
        traces: list[tuple[Trace, View]],
        carried: list[tuple[State, View, bool]],
        histories: list[tuple[State, View]],
    ) -> None:
        l = self.l
        l.lower_graph(self.scan.body)
        for trace, view in traces:
            element = self._open_element(trace) if trace in self.open_elements else l.view(trace.element)
            if element != view:
                l.copy(element, view)
        updates = [(l.view(state.body_out), buffer) for state, buffer, is_copied in carried if is_copied]
        newest = [(l.view(state.body_out), buffer.without_axis(0, state.spec.depth - 1)) for state, buffer in histories]
        updates += newest
        buffers = {buffer.storage for _, buffer in updates}
        if any(source.storage in buffers for source, _ in updates):
            updates = [(_fresh_copy(l, source), buffer) for source, buffer in updates]
        for state, history in histories:
            older = state.spec.depth - 1
            l.copy(history.sliced(0, 1, older), history.sliced(0, 0, older))
        for source, buffer in updates:
            if any(map(is_late, buffer.shape)):
                self._enter(source, buffer)
            else:
                l.copy(source, buffer)

    def _copies(self, copies: list[tuple[View, View]]) -> None:
        for source, target in copies:
            self.l.copy(source, target)


def _fresh_copy(l: Lowering, source: View) -> View:
    copied = l.temporary(source.shape, source.dtype)
    l.copy(source, copied)
    return copied


def _may_overwrite(node: Node, reads: list[int]) -> bool:
    allowed = UPDATES_IN_PLACE.get(node.op, set())
    return allowed is None or set(reads) <= allowed


def _moving_element(whole: View, axis: int, reverse: bool, n_steps: Dim, loop: int) -> View:
    axis %= whole.rank
    stride = whole.strides[axis]
    first = n_steps - 1 if reverse else 0
    return whole.without_axis(axis, first).moving(loop, stride * (-1 if reverse else 1))
