"""Work that depends on the sequences alone is done for all steps at once, before the loop.

Requires: facts from infer_shapes (the ranks of what is moved).
Ensures: nodes of a Scan's body that read sequence elements, invariants and constants only, and whose op
`over_all_steps` knows, stand before the Scan with the steps as a leading axis; their results are sequences. A trace of
such a result, or of a sequence itself, is read off outside: cut where it is trimmed, filled up with zeros where it is
longer than the loop. Of a Scan without states nothing is left.
Declines: "it saves memory" (the loop is marked so); "it may end before its sequences do" (a condition); "it repeats its
operands, for this step only" (growth.py); "it reads sequences that run in different directions"; for a node whatever
`over_all_steps` says; for a trace "the number of steps is given apart from the sequences". Results do not depend on the
order of steps, but a product of many rows at once may be rounded otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from webrnn.ir import Graph, Node, Scan, SequenceInput, SequenceSpec, Trace, Value
from webrnn.ops.sets import ELEMENTWISE

from .base import Context, PassResult, ScanPass
from .growth import grown_for_one_step
from .over_all_steps import Declined, Operand, over_all_steps
from .rewriting import Additions, steps_from_front, steps_to_front


class HoistSequences(ScanPass):
    reorders_arithmetic = True

    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if not scan.sequences:
            return None
        if scan.frugal:
            result.declines_at(node, "it saves memory")
            return None
        if scan.body_cond is not None or scan.cond is not None:
            result.declines_at(node, "it may end before its sequences do")
            return None
        move = _Move(graph, scan, context)
        has_arithmetic = any(inner.op in ELEMENTWISE and not inner.domain for inner in scan.body.nodes)
        stays = grown_for_one_step(scan, context.facts) if has_arithmetic else set()
        for inner in list(scan.body.nodes):
            if any(True for _ in inner.subgraphs) or not move.is_ready(inner):
                continue
            if id(inner) in stays:
                result.declines_at(inner, "it repeats its operands, for this step only")
                continue
            try:
                plan = move.plan(inner)
            except Declined as declined:
                result.declines_at(inner, str(declined))
                continue
            if not result.fires(f"{inner.op} {inner.label} out of {node.label}"):
                break
            move.move_out(inner, plan)
        for trace in list(scan.traces):
            if trace.element in move.known and trace.whole is not None:
                reason = _reason_against(scan, trace, move)
                if reason is not None:
                    result.declines_at(node, f"trace of {trace.element.name}: {reason}")
                elif result.fires(f"trace {trace.element.name} out of {node.label}"):
                    move.read_off(trace)
        move.new.drop_unused((*move.before, *move.after))
        if not move.before and not move.after:
            return None
        move.finish()
        remains = [scan.to_node()] if scan.states or scan.traces else []
        return [*move.before, *remains, *move.after]


def _reason_against(scan: Scan, trace: Trace, move: _Move) -> str | None:
    if scan.n_steps is not None:
        return "the number of steps is given apart from the sequences"
    rank = move.context.facts.of(trace.element).rank
    if rank is None or not -rank - 1 <= trace.spec.axis <= rank:
        return "its rank is not known"
    return None


@dataclass
class _Whole:
    """A sequence with its steps on the first axis, outside."""

    spec: SequenceSpec
    source: Value
    value: Value | None = None
    """None until it is asked for; where `spec.axis` is 0 it is the source."""
    transpose: Node | None = None
    """The node that makes the value, until it is put into the graph."""


@dataclass
class _Move:
    """The way of nodes out of one Scan."""

    graph: Graph
    scan: Scan
    context: Context
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.new = Additions(self.graph, self.context)
        self.known = {item.element: _Whole(item.spec, item.whole) for item in self.scan.sequences}
        self.fixed = {item.inner: item.outer for item in self.scan.invariants}

    def is_ready(self, node: Node) -> bool:
        operands = [value for value in node.inputs if value is not None]
        fixed = (value in self.fixed or value in self.scan.body.constants for value in operands)
        at_hand = all(ok or value in self.known for ok, value in zip(fixed, operands, strict=True))
        return at_hand and any(value in self.known for value in operands)

    def plan(self, node: Node) -> list[Node]:
        """The nodes that do for all steps what `node` does for one; nothing is changed yet."""
        directions = {self.known[value].spec.reverse for value in node.inputs if value in self.known}
        if len(directions) != 1:
            raise Declined("it reads sequences that run in different directions")
        operands = [None if value is None else self._operand(value) for value in node.inputs]
        outputs = [None if value is None else self.new.value(f"{value.name}_all") for value in node.outputs]
        return over_all_steps(node, operands, outputs, self.new, self.context.facts, self.scan.n_steps is None)

    def move_out(self, node: Node, plan: list[Node]) -> None:
        reverse = next(self.known[value].spec.reverse for value in node.inputs if value in self.known)
        self._need(*node.inputs)
        self.before.extend(plan)
        self.scan.body.nodes.remove(node)
        for value, whole in zip(node.outputs, plan[-1].outputs, strict=True):
            if value is not None and whole is not None:
                spec = SequenceSpec(0, reverse)
                self.known[value] = _Whole(spec, whole, whole)
                self.scan.sequences.append(SequenceInput(spec, whole, value))

    def read_off(self, trace: Trace) -> None:
        """Give a trace its value from outside the loop."""
        whole = self.known[trace.element]
        value = self._steps_first(trace.element)
        self._need(trace.element)
        keep = trace.spec.keep
        if keep is not None:
            value = self._cut(value, *((0, keep, 1) if whole.spec.reverse else (-keep, 2**31 - 1, 1)))
        if whole.spec.reverse != trace.spec.reverse:
            value = self._cut(value, -1, -(2**31), -1)
        if trace.spec.length is not None:
            value = self._cut(self._padded(value, trace.spec.length), 0, trace.spec.length, 1)
        rank = self.context.facts.of(trace.element).rank
        assert rank is not None
        order = steps_from_front(trace.spec.axis, rank + 1)
        self.after.append(Node("Transpose", [value], [trace.whole], {"perm": order}, self.scan.name))
        self.scan.traces.remove(trace)

    def _padded(self, value: Value, zeros: int) -> Value:
        padded = self.new.value(f"{value.name}_padded")
        self.after.append(Node("Pad", [value, self.new.ints(0, zeros), None, self.new.ints(0)], [padded]))
        return padded

    def _cut(self, value: Value, start: int, end: int, step: int) -> Value:
        bounds = [self.new.ints(number) for number in (start, end, 0, step)]
        cut = self.new.value(f"{value.name}_cut")
        self.after.append(Node("Slice", [value, *bounds], [cut]))
        return cut

    def finish(self) -> None:
        """Results that nothing in the body reads are not handed in; but one sequence stays, for the number of steps."""
        read: set[Value | None] = {value for node in self.scan.body.nodes for value in node.inputs}
        read.update(state.body_out for state in self.scan.states)
        read.update(trace.element for trace in self.scan.traces)
        kept = [item for item in self.scan.sequences if item.element in read]
        self.scan.sequences = kept or self.scan.sequences[:1]

    def _operand(self, value: Value) -> Operand:
        fact = self.context.facts.of(value)
        if value in self.known:
            if fact.rank is None:
                raise Declined("the rank of its operands is not known")
            return Operand(self._steps_first(value), fact, True)
        if value not in self.fixed:
            array = self.scan.body.constants[value]
            self.fixed[value] = self.new.constant(array, value.name)
        return Operand(self.fixed[value], fact, False)

    def _steps_first(self, element: Value) -> Value:
        whole = self.known[element]
        if whole.value is None:
            rank = self.context.facts.of(element).rank
            if rank is None:
                raise Declined("the rank of its operands is not known")
            whole.value = whole.source
            order = steps_to_front(whole.spec.axis, rank + 1)
            if order[0]:
                whole.value = self.new.value(f"{element.name}_steps_first")
                whole.transpose = Node("Transpose", [whole.source], [whole.value], {"perm": order})
        return whole.value

    def _need(self, *elements: Value | None) -> None:
        """Put the nodes that bring the steps of these elements to the front into the graph."""
        for element in elements:
            whole = self.known.get(element) if element is not None else None
            if whole is not None and whole.transpose is not None:
                self.before.append(whole.transpose)
                whole.transpose = None
