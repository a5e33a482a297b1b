"""Work that only a trace needs is done after the loop, for all steps at once.

Requires: facts from infer_shapes (ranks and sizes of what is moved).
Ensures: nodes of a Scan's body whose results reach traces and nothing else, and whose op `over_all_steps` knows, stand
behind the Scan with the steps as a leading axis. What they read is traced instead; sequences are read from outside
where all of them is used in the same direction. A matrix product with something that is the same in each step always
leaves: one product of all rows replaces one of a row for each step. Other nodes leave if what is traced instead is not
larger and the number of steps is known before; where not, the nodes before them are tried together with them, as far
back as they are needed for traces only.
Declines: "it saves memory" (the loop is marked so), "what it reads is larger than what it gives", "the sizes of what it
reads and gives are not known", "a result on the way is much larger than what is traced", "how many steps there are is
known when they are done", "its traces differ in direction or in length", "its trace is longer than the loop" (what an
op makes of the zeros behind the last step need not be zero), "it is the same in each step" (hoist_invariants has it),
and whatever `over_all_steps` says. Results do not depend on the order of steps, but a product of many rows at once may
be rounded otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from webrnn.ir import Dim, Graph, Node, Scan, SequenceInput, Trace, TraceSpec, Value, is_plain
from webrnn.ir.dims import is_nonnegative
from webrnn.ir.fused import is_linear
from webrnn.ops.sets import WEIGHTED
from webrnn.shapes.facts import size_of

from .base import Context, PassResult, ScanPass
from .over_all_steps import Declined, Operand, over_all_steps
from .rewriting import Additions, steps_from_front, steps_to_front

MOST_GROWTH = 8
"""How much larger than all that is traced a result between two nodes that leave together may be: all steps of it are
in memory at once, where in the loop there was one."""


class SinkOutputs(ScanPass):
    reorders_arithmetic = True

    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if not any(trace.whole is not None for trace in scan.traces):
            return None
        if scan.frugal:
            result.declines_at(node, "it saves memory")
            return None
        sink = _Sink(graph, scan, context)
        for inner in reversed(list(scan.body.nodes)):
            if not sink.is_only_traced(inner):
                continue
            try:
                move = sink.plan(inner)
            except Declined as declined:
                result.declines_at(inner, str(declined))
                continue
            labels = ", ".join(f"{each.op} {each.label}" for each in move.group)
            if not result.fires(f"{labels} out of {node.label}"):
                break
            sink.move_out(move)
        sink.new.drop_unused(sink.after)
        return [scan.to_node(), *sink.after] if sink.after else None


@dataclass
class _Move:
    """Nodes that leave together, in the order in which they stand in the body, and what takes their place."""

    group: list[Node]
    spec: TraceSpec
    """How what they read is traced."""
    dropped: list[Trace]
    added: list[Trace] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)


class _Sink:
    """The way of nodes out of one Scan."""

    def __init__(self, graph: Graph, scan: Scan, context: Context):
        self.scan, self.facts = scan, context.facts
        self.new = Additions(graph, context)
        self.after: list[Node] = []
        self.fixed = {item.inner: item.outer for item in scan.invariants}
        self.may_end_early = scan.body_cond is not None
        ends_with_sequences = scan.n_steps is None and scan.cond is None and scan.body_cond is None
        self.sequences = {item.element: item for item in scan.sequences} if ends_with_sequences else {}

    def is_only_traced(self, node: Node) -> bool:
        return bool(self._traces_of([node])) and self._is_read_by([node], ())

    def plan(self, last: Node) -> _Move:
        """The move of a node, together with as many before it as it takes to be worth it; nothing is changed yet."""
        move = self._move_of([last])
        reason = self._objection(move)
        while reason is not None:
            more = self._before(move.group)
            if not more:
                raise Declined(reason)
            members = {*map(id, move.group), *map(id, more)}
            try:
                move = self._move_of([node for node in self.scan.body.nodes if id(node) in members])
            except Declined:
                raise Declined(reason) from None
            reason = self._objection(move)
        return move

    def move_out(self, move: _Move) -> None:
        self.after[:0] = move.after
        gone = set(map(id, move.group))
        self.scan.body.nodes = [node for node in self.scan.body.nodes if id(node) not in gone]
        self.scan.traces = [trace for trace in self.scan.traces if trace not in move.dropped] + move.added

    def _move_of(self, group: list[Node]) -> _Move:
        dropped = self._traces_of(group)
        move = _Move(group, _common_spec(dropped), dropped)
        self._replace(move)
        return move

    def _is_read_by(self, nodes: Sequence[Node], readers: Sequence[Node]) -> bool:
        """Whether nothing but these readers and traces needs what the nodes make."""
        made = {value for node in nodes for value in node.outputs if value is not None}
        if self.scan.body_cond in made or any(state.body_out in made for state in self.scan.states):
            return False
        allowed = set(map(id, readers))
        return not any(
            value in made for node in self.scan.body.nodes if id(node) not in allowed for value in node.inputs
        )

    def _traces_of(self, nodes: Iterable[Node]) -> list[Trace]:
        made = {value for node in nodes for value in node.outputs}
        return [trace for trace in self.scan.traces if trace.element in made and trace.whole is not None]

    def _before(self, group: Sequence[Node]) -> list[Node]:
        """The nodes that make what a group reads, if nobody else needs it."""
        read = {value for node in group for value in node.inputs}
        members = set(map(id, group))
        makers = [node for node in self.scan.body.nodes if id(node) not in members and read & {*node.outputs} - {None}]
        return [node for node in makers if self._is_read_by([node], group)]

    def _objection(self, move: _Move) -> str | None:
        gives = self._bytes(trace.element for trace in move.dropped)
        reads = self._bytes(trace.element for trace in move.added)
        made = {value for node in move.group for value in node.outputs}
        between = {value for node in move.group for value in node.inputs if value in made and value is not None}
        for value in between:
            size = self._bytes([value])
            if size is None or gives is None or reads is None:
                return "the sizes of what it reads and gives are not known"
            if not is_nonnegative((gives + reads) * MOST_GROWTH - size):
                return "a result on the way is much larger than what is traced"
        if any(self._is_product_with_the_same(node) for node in move.group):
            return None
        if self.may_end_early:
            return "how many steps there are is known when they are done"
        if gives is None or reads is None:
            return "the sizes of what it reads and gives are not known"
        return None if is_nonnegative(gives - reads) else "what it reads is larger than what it gives"

    def _is_product_with_the_same(self, node: Node) -> bool:
        """Whether it is a product with an operand that is the same in each step."""
        is_product = is_plain(node, *WEIGHTED) or is_linear(node)
        return is_product and any(self._is_fixed(value) for value in node.inputs[:2])

    def _is_fixed(self, value: Value | None) -> bool:
        return value in self.fixed or value in self.scan.body.constants

    def _bytes(self, values: Iterable[Value]) -> Dim | None:
        """How large they are in one step, all together."""
        total: Dim = 0
        for value in values:
            fact = self.facts.of(value)
            size = size_of(fact.shape)
            if size is None or fact.dtype is None:
                return None
            total = total + size * fact.dtype.array_type.itemsize
        return total

    def _replace(self, move: _Move) -> None:
        """Find the nodes that do for all steps what the group does for one, and the traces that they need."""
        outside: dict[Value, Operand] = {}
        for node in move.group:
            operands = [None if value is None else self._operand(value, move, outside) for value in node.inputs]
            if not any(operand is not None and operand.has_steps for operand in operands):
                raise Declined("it is the same in each step")
            wholes = [None if value is None else self._whole_of(value, move) for value in node.outputs]
            move.after += over_all_steps(node, operands, wholes, self.new, self.facts, all_are_taken=True)
            for value, whole in zip(node.outputs, wholes, strict=True):
                if value is not None and whole is not None:
                    outside[value] = Operand(whole, self.facts.of(value), True)
        made = {value for node in move.after for value in node.outputs}
        for trace in move.dropped:
            if trace.whole not in made:
                operand = outside[trace.element]
                order = steps_from_front(trace.spec.axis, operand.rank + 1)
                move.after.append(Node("Transpose", [operand.value], [trace.whole], {"perm": order}, self.scan.name))

    def _operand(self, value: Value, move: _Move, outside: dict[Value, Operand]) -> Operand:
        if value not in outside:
            outside[value] = self._new_operand(value, move)
        return outside[value]

    def _new_operand(self, value: Value, move: _Move) -> Operand:
        fact = self.facts.of(value)
        if value in self.scan.body.constants:
            return Operand(self.new.constant(self.scan.body.constants[value], value.name), fact, False)
        if value in self.fixed:
            return Operand(self.fixed[value], fact, False)
        if fact.rank is None:
            raise Declined("the rank of its operands is not known")
        source = self._source(value, move)
        order = steps_to_front(source.spec.axis, fact.rank + 1)
        assert source.whole is not None
        if not order[0]:
            return Operand(source.whole, fact, True)
        first = self.new.value(f"{value.name}_steps_first")
        move.after.append(Node("Transpose", [source.whole], [first], {"perm": order}))
        return Operand(first, fact, True)

    def _source(self, value: Value, move: _Move) -> Trace | SequenceInput:
        """A sequence or trace that holds all steps of a value in the order of the traces that go."""
        sequence = self.sequences.get(value)
        if sequence is not None and sequence.spec.reverse == move.spec.reverse and move.spec.keep is None:
            return sequence
        for trace in self.scan.traces:
            same_order = replace(trace.spec, axis=0) == move.spec
            if trace.element is value and trace.whole is not None and same_order:
                return trace
        trace = Trace(move.spec, value, self.new.value(f"{value.name}_trace"))
        move.added.append(trace)
        return trace

    def _whole_of(self, value: Value, move: _Move) -> Value:
        """What all steps of a result are called outside: if it is traced on the first axis, as the trace is."""
        rank = self.facts.of(value).rank
        for trace in move.dropped:
            on_first = trace.spec.axis == 0 or (rank is not None and trace.spec.axis == -rank - 1)
            if trace.element is value and trace.whole is not None and on_first:
                return trace.whole
        return self.new.value(f"{value.name}_all")


def _common_spec(traces: Sequence[Trace]) -> TraceSpec:
    """How the operands of what is traced like this have to be traced."""
    if any(trace.spec.length is not None for trace in traces):
        raise Declined("its trace is longer than the loop")
    specs = {TraceSpec(0, trace.spec.reverse, trace.spec.keep) for trace in traces}
    if len(specs) != 1:
        raise Declined("its traces differ in direction or in length")
    return specs.pop()
