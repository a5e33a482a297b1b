"""A sequence that a loop inserts into is a trace.

Requires: facts from infer_shapes.
Ensures: a state of a Scan that is a sequence, to which each step adds elements of one shape at the end or at the
beginning and which it does not read, is no state any more: the elements of all steps are a trace (of those that are
inserted at the beginning in reverse), and behind the loop a sequence is made of what it started from and the trace. A
state that is a sequence of a known number of tensors before and after each step is a state for each of them.
How many elements the sequence has so far follows from the number of the iteration; the element that the step before
has inserted last is a state. If a step reads more of it, or adds a number of elements that may change from step to
step, the state is the tensor of all elements so far, which grows.
Declines: "the shape of what it inserts may change from step to step", "it reads the sequence that it inserts into",
"it is not known what it inserts", "it is not known how many elements a step leaves".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import DType, Graph, Node, Scan, State, StateSpec, Trace, TraceSpec, Value, is_plain
from webrnn.ir.containers import SEQUENCE
from webrnn.ir.dims import is_static
from webrnn.shapes.facts import Fact
from webrnn.shapes.infer import length_of, trip_count

from .base import Context, PassResult, ScanPass
from .rewriting import Names
from .sequence_forms import Elements, Form, Forms, Item, Rearranging, Slices, is_known, parts_of
from .sequence_reads import LastRead

MOST_ITEMS = 32
"""Of longer sequences no element is a state of its own."""


class SequencesToTraces(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        before = Rearranging(graph, context)
        behind = Rearranging(graph, context)
        fired = result.rewrites
        for state in list(scan.states):
            if state.init.container != SEQUENCE or not state.spec.is_plain:
                continue
            change = _Change(graph, scan, state, context, before, behind)
            reason = change.reason_against()
            if reason is not None:
                result.declines_at(node, reason)
            elif result.fires(f"{state.body_in[0].name} of {node.label}"):
                change.make()
        return [*before.nodes, scan.to_node(), *behind.nodes] if result.rewrites > fired else None


class _Change:
    """One state of a Scan that is a sequence, and what becomes of it."""

    def __init__(
        self, graph: Graph, scan: Scan, state: State, context: Context, before: Rearranging, behind: Rearranging
    ):
        self.scan, self.state, self.context = scan, state, context
        self.before, self.behind = before, behind
        self.start = Forms(graph, context.facts).of(state.init)
        self.carried = state.body_in[0]
        self.grown = Forms(scan.body, context.facts).of(state.body_out)
        self.places = [index for index, each in enumerate(self.grown) if each == Elements(self.carried)]
        names = Names(scan.body)
        count = self._known_length()
        self.taps: Form = tuple(Item(Value(names.fresh(f"{self.carried.name}_item"))) for _ in range(count))
        """What the body gets if the sequence always has as many tensors as at first."""
        self.last_read = LastRead(self.carried, scan.iteration if not self.start and self._adds_one else None, context)

    def _known_length(self) -> int:
        """How many elements it has at first, 0 if that is not known."""
        total = 0
        for segment in self.start:
            if isinstance(segment, Elements):
                return 0
            count = 1 if isinstance(segment, Item) else length_of(segment.whole, segment.axis, self.context.facts)
            if not isinstance(count, int):
                return 0
            total += count
        return total if total <= MOST_ITEMS else 0

    def _items(self) -> list[Value]:
        """The elements that it has at first."""
        found = []
        for segment in self.start:
            if isinstance(segment, Item):
                found.append(segment.value)
                continue
            assert isinstance(segment, Slices)
            plain = self.before.without_kept_axis(segment)
            count = length_of(plain.whole, plain.axis, self.context.facts)
            assert isinstance(count, int)
            for index in range(count):
                found.append(self.before.op("Gather", plain.whole, self.before.scalar(index), axis=plain.axis))
        return found

    @property
    def _adds_one(self) -> bool:
        return len(self.places) == 1 and len(self._added) == 1 and isinstance(self._added[0], Item)

    # --- what it is --------------------------------------------------------------------------------------------------

    def reason_against(self) -> str | None:
        if self._keeps_length():
            return None
        if len(self.places) != 1:
            return "it is not known how many elements a step leaves"
        if not is_known(self._added):
            return "it is not known what it inserts"
        inside = Rearranging(self.scan.body, self.context)
        if self._added and not all(not part or inside.are_alike(part) for part in (self._front, self._back)):
            return "the shape of what it inserts may change from step to step"
        if not self._is_read() and self._adds_a_known_number():
            return None
        return None if self._can_grow() else "it reads the sequence that it inserts into"

    def _adds_a_known_number(self) -> bool:
        slices = [segment for segment in self._added if isinstance(segment, Slices)]
        return all(length_of(each.whole, each.axis, self.context.facts) is not None for each in slices)

    def _can_grow(self) -> bool:
        """Whether all elements, those at first too, are tensors that one tensor can hold."""
        inside = Rearranging(self.scan.body, self.context)
        if not self._added or not inside.are_alike((*self.start, *self._added)):
            return False
        return bool(self.start) or is_static(inside.element_shape(self._added[0]))

    @property
    def _front(self) -> Form:
        return self.grown[: self.places[0]]

    @property
    def _back(self) -> Form:
        return self.grown[self.places[0] + 1 :]

    @property
    def _added(self) -> Form:
        return (*self._front, *self._back)

    def _keeps_length(self) -> bool:
        """Whether each step makes a sequence of as many tensors as it gets."""
        if not self.taps:
            return False
        after = Forms(self.scan.body, self.context.facts, {self.carried: self.taps}).of(self.state.body_out)
        return _are_items(after) and len(after) == len(self.taps)

    def _is_read(self) -> bool:
        """Whether anything but the way to the state's next value reads the sequence so far."""
        consumers = self.scan.body.consumers()
        pending, seen = [self.carried], {self.carried}
        while pending:
            value = pending.pop()
            for node in consumers.get(value, []):
                if self._is_rewritten(node):
                    continue
                grows = is_plain(node, "Identity", "SequenceInsert", "SequenceErase") or node.op == "SequenceJoin"
                made = node.outputs[0] if node.outputs else None
                if not grows or made is None or node.inputs.count(value) != 1:
                    return True
                if made not in seen:
                    seen.add(made)
                    pending.append(made)
        others = [*(trace.element for trace in self.scan.traces), self.scan.body_cond]
        others += [state.body_out for state in self.scan.states if state is not self.state]
        return any(value in seen for value in others)

    def _is_rewritten(self, node: Node) -> bool:
        """Whether what it reads follows from the number of the iteration, or is the element that came last."""
        if is_plain(node, "SequenceLength"):
            return self._counts and all(
                each == Elements(self.carried) or isinstance(each, Item) for each in self._form(node)
            )
        return self.last_read.is_by(node) and self._last() is not None

    @property
    def _counts(self) -> bool:
        return _are_items(self.start) and _are_items(self._added)

    def _form(self, node: Node) -> Form:
        return Forms(self.scan.body, self.context.facts).of(node.inputs[0] if node.inputs else None)

    def _last(self) -> tuple[Value | None, Value | None] | None:
        """What the step before inserted last: a value that the body has anyway, or None and what it is at first."""
        newest = self._back[-1] if self._back else None
        if not isinstance(newest, Item):
            return None
        for state in self.scan.states:
            if not self.start and state.spec.is_plain and state.body_out is newest.value:
                return state.body_in[0], None
        if self.start:
            oldest = self.start[-1]
            return (None, oldest.value) if isinstance(oldest, Item) else None
        shape, dtype = self.context.facts.shape(newest.value), self.context.facts.dtype(newest.value)
        if not is_static(shape) or shape is None or dtype is None:
            return None
        # Nobody reads it before a step has inserted something.
        return None, self.before.new.constant(
            np.zeros([int(str(size)) for size in shape], dtype.array_type), "none_yet"
        )

    # --- what becomes of it ------------------------------------------------------------------------------------------

    def make(self) -> None:
        if self._keeps_length():
            self._split()
            return
        if self._is_read() or not self._adds_a_known_number():
            self._grow()
            return
        self._hand_on_last()
        self._count()
        self.scan.states.remove(self.state)
        front = self._trace(self._front, reverse=True)
        back = self._trace(self._back, reverse=False)
        if self.state.final is not None:
            self.behind.boxed((*front, *self.start, *back), self.state.final)
        self._end_sequence()

    def _grow(self) -> None:
        """A state that is the tensor of all elements."""
        body, facts = self.scan.body, self.context.facts
        inside = Rearranging(body, self.context)
        shape, dtype = inside.element_shape(self._added[0]), facts.dtype(parts_of(self._added)[0])
        assert shape is not None
        assert dtype is not None
        if self.start:
            init = self.before.stacked(self.start, 0)
        else:
            none = np.zeros((0, *(int(str(size)) for size in shape)), dtype.array_type)
            init = self.before.new.constant(none, "none_yet")
        tap = Value(Names(body).fresh(f"{self.carried.name}_elements"), dtype, (None, *shape))
        facts.set(tap, Fact(dtype, (None, *shape)))
        so_far: Form = (Slices(tap, 0),)
        inside.boxed(so_far, self.carried)
        body.nodes[:0] = inside.nodes
        at_end = Rearranging(body, self.context)
        grown = at_end.stacked((*self._front, *so_far, *self._back), 0)
        body.nodes += at_end.nodes
        final = None if self.state.final is None else self.behind.new.value(f"{self.state.final.name}_elements")
        self.scan.states[self.scan.states.index(self.state)] = State(StateSpec(), init, [tap], grown, final)
        if final is not None and self.state.final is not None:
            facts.set(final, Fact(dtype, (None, *shape)))
            self.behind.boxed((Slices(final, 0),), self.state.final)

    def _end_sequence(self) -> None:
        """What still inserts into the sequence in the body inserts into an empty one, until it is removed."""
        dtype = self.carried.dtype or DType.FLOAT
        self.scan.body.nodes.insert(0, Node("SequenceEmpty", [], [self.carried], {"dtype": int(dtype)}))

    def _trace(self, added: Form, reverse: bool) -> Form:
        if not added:
            return ()
        inside = Rearranging(self.scan.body, self.context)
        if len(added) == 1 and isinstance(added[0], Item):
            element, is_block = added[0].value, False
        else:
            element, is_block = inside.stacked(added, 0), True
        self.scan.body.nodes += inside.nodes
        whole = self.behind.new.value(f"{element.name}_trace")
        self.scan.traces.append(Trace(TraceSpec(0, reverse), element, whole))
        fact = self.context.facts.of(element)
        steps = trip_count(self.scan, self.context.facts)
        self.context.facts.set(whole, Fact(fact.dtype, (steps, *(fact.shape or ()))))
        if is_block:
            whole = self.behind.merged(whole, 0)
        return (Slices(whole, 0),)

    def _count(self) -> None:
        """Let lengths of the sequence so far follow from the number of the iteration."""
        body = self.scan.body
        forms = Forms(body, self.context.facts)
        nodes: list[Node] = []
        for node in body.nodes:
            if not is_plain(node, "SequenceLength") or Elements(self.carried) not in forms.of(node.inputs[0]):
                nodes.append(node)
                continue
            inside = Rearranging(body, self.context)
            if self.scan.iteration is None:
                self.scan.iteration = Value(Names(body).fresh("iteration"), DType.INT64, ())
            so_far = inside.op("Mul", self.scan.iteration, inside.scalar(len(self._added)))
            others = len(self.start) + len(forms.of(node.inputs[0])) - 1
            inside.op("Add", so_far, inside.scalar(others), output=node.outputs[0])
            nodes += inside.nodes
        body.nodes = nodes

    def _hand_on_last(self) -> None:
        """Let reads of the last element read a state, or what is one already."""
        reads = [node for node in self.scan.body.nodes if self.last_read.is_by(node)]
        found = self._last() if reads else None
        if found is None:
            return
        last, at_first = found
        if last is None:
            assert at_first is not None
            newest = self._back[-1]
            assert isinstance(newest, Item)
            last = newest.value.like(Names(self.scan.body).fresh(f"{newest.value.name}_before"))
            self.context.facts.set(last, self.context.facts.of(newest.value))
            self.scan.add_state(at_first, last, newest.value, None)
        for node in reads:
            self.last_read.replace(self.scan.body, node, last)

    def _split(self) -> None:
        """A state for each element."""
        body, taps = self.scan.body, self.taps
        after = Forms(body, self.context.facts, {self.carried: taps}).of(self.state.body_out)
        finals: list[Item] = []
        place = self.scan.states.index(self.state)
        states = []
        for first, tap, last in zip(self._items(), taps, after, strict=True):
            assert isinstance(tap, Item)
            assert isinstance(last, Item)
            final = None if self.state.final is None else self.behind.new.value(f"{self.state.final.name}_item")
            if final is not None:
                finals.append(Item(final))
            self.context.facts.set(tap.value, self.context.facts.of(first))
            states.append(State(StateSpec(), first, [tap.value], last.value, final))
        self.scan.states[place : place + 1] = states
        inside = Rearranging(body, self.context)
        inside.boxed(taps, self.carried)
        body.nodes[:0] = inside.nodes
        if self.state.final is not None:
            self.behind.boxed(tuple(finals), self.state.final)


def _are_items(form: Form) -> bool:
    return all(isinstance(segment, Item) for segment in form)
