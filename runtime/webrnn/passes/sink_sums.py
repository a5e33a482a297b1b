"""A sum over all steps is taken behind the loop: a sum of products is one product of all steps.

Requires: facts from infer_shapes (the ranks of factors).
Ensures: a state that only adds something in each step, and of which only the last value is read, is no state any more
if what it adds is a product of two matrices that change from step to step (a gradient of weights is such a sum): the
factors are traced, and one product behind the Scan sums over the steps along with the rest. What is summed over axes
in each step, and traced or a sequence already, is summed over the steps too. Both may be moved, added, negated or
multiplied by what is the same in each step before they are added.
Declines: "it may end early"; "it saves memory" (the loop is marked so); "what it adds is no product"; "what it adds is
of another shape"; "what it sums is not traced"; "the axes of a product are not those of two matrices"; "a rank is not
known".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from webrnn.ir import Graph, Node, Scan, State, Trace, TraceSpec, Value, is_plain

from .base import Context, PassResult, ScanPass
from .rewriting import Additions, constant_of, steps_to_front

_SAME_ON_A_SUM = ("Identity", "Neg", "Transpose", "Squeeze", "Unsqueeze", "Reshape", "Slice")
"""Ops with one operand that changes from step to step: the sum of their results is the result of the sum."""


_SUMS = ("MatMul", "ReduceSum")
"""What a sum that can leave the loop is made of."""

_TURNED = [1, 0]
"""The order of the axes of a matrix that is transposed."""


class _Declined(Exception):
    """Why a sum stays in the loop."""


class SinkSums(ScanPass):
    reorders_arithmetic = True

    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        sums = [(state, added) for state in scan.states if (added := _added(scan, state)) is not None]
        if not sums or not any(is_plain(each, op) for each in scan.body.nodes for op in _SUMS):
            return None
        objection = _objection(scan)
        if objection is not None:
            result.declines_at(node, objection)
            return None
        sink = _Sink(graph, scan, context)
        # Products first: what they trace, sums over axes may read.
        for only_products in (True, False):
            for state, added in list(sums):
                try:
                    move = sink.plan(state, added, only_products)
                except _Declined as declined:
                    if not only_products:
                        result.declines_at(node, str(declined))
                    continue
                if not result.fires(f"the sum {state.body_out.name} out of {node.label}"):
                    break
                sink.move_out(state, move)
                sums.remove((state, added))
        sink.new.drop_unused(sink.after)
        return [scan.to_node(), *sink.after] if sink.after else None


def _objection(scan: Scan) -> str | None:
    if scan.cond is not None or scan.body_cond is not None:
        return "it may end early"
    return "it saves memory" if scan.frugal else None


def _added(scan: Scan, state: State) -> Value | None:
    """What a state adds in each step, if that is all it does and only its last value is read."""
    before, after = state.body_in[0], state.body_out
    if not state.spec.is_plain or state.final is None:
        return None
    if any(trace.element in (before, after) for trace in scan.traces):
        return None
    if any(other is not state and other.body_out in (before, after) for other in scan.states):
        return None
    readers = [node for node in scan.body.nodes if before in node.inputs]
    if len(readers) != 1 or not is_plain(readers[0], "Add") or readers[0].outputs[0] is not after:
        return None
    if any(after in node.inputs for node in scan.body.nodes):
        return None
    first, second = readers[0].inputs
    return second if first is before else first


@dataclass
class _Move:
    """What takes the place of a sum in the loop."""

    after: list[Node] = field(default_factory=list)
    added: list[Trace] = field(default_factory=list)
    total: Value | None = None


class _Sink:
    def __init__(self, graph: Graph, scan: Scan, context: Context):
        self.graph, self.scan, self.facts = graph, scan, context.facts
        self.new = Additions(graph, context)
        self.after: list[Node] = []
        self.fixed = {item.inner: item.outer for item in scan.invariants}
        self.sequences = {item.element: item for item in scan.sequences} if scan.n_steps is None else {}
        self.makers = scan.body.producers()

    def plan(self, state: State, added: Value, only_products: bool) -> _Move:
        if self.facts.shape(state.init) != self.facts.shape(added):
            raise _Declined("what it adds is of another shape")
        move = _Move()
        move.total = self._sum(added, move, only_products)
        return move

    def move_out(self, state: State, move: _Move) -> None:
        assert state.final is not None
        if self._is_zero(state.init):
            move.after.append(Node("Identity", [move.total], [state.final]))
        else:
            move.after.append(Node("Add", [state.init, move.total], [state.final]))
        self.after += move.after
        self.scan.traces += move.added
        self.scan.states.remove(state)
        self.scan.body.nodes = [node for node in self.scan.body.nodes if state.body_out not in node.outputs]
        self._drop_dead()

    def _drop_dead(self) -> None:
        read: set[Value | None] = {state.body_out for state in self.scan.states}
        read.update(trace.element for trace in self.scan.traces)
        kept = []
        for node in reversed(self.scan.body.nodes):
            if not read.isdisjoint(value for value in node.outputs if value is not None):
                kept.append(node)
                read.update(node.inputs)
        self.scan.body.nodes = kept[::-1]

    def _is_zero(self, value: Value) -> bool:
        maker = self.graph.producers().get(value)
        if maker is not None and is_plain(maker, "Expand"):
            value = maker.inputs[0] or value
        array = constant_of(self.graph, value)
        return array is not None and not np.any(array)

    # ------------------------------------------------------------------------------------------ sums over all steps

    def _sum(self, value: Value, move: _Move, only_products: bool) -> Value:
        """The sum over all steps of a value in the body, outside."""
        node = self.makers.get(value)
        if node is None or node.domain:
            raise _Declined("what it adds is no product")
        varying = [item for item in node.inputs if item is not None and not self._is_fixed(item)]
        if node.op == "MatMul" and len(varying) == 2:
            return self._product(node, move)
        if node.op == "ReduceSum" and len(varying) == 1 and varying[0] is node.inputs[0]:
            return self._reduction(node, move, only_products)
        is_linear = node.op in _SAME_ON_A_SUM or node.op in ("Mul", "MatMul")
        if len(varying) == 1 and (is_linear or (node.op == "Div" and varying[0] is node.inputs[0])):
            operands = [
                item if item is None else self._sum(item, move, only_products) if item in varying else self._outer(item)
                for item in node.inputs
            ]
            if node.op == "Reshape" and (self._is_by_axes(node) or varying[0] is not node.inputs[0]):
                raise _Declined("what it adds is no product")
            return self._emit(move, node.op, operands, **node.attrs)
        shapes = {self.facts.shape(item) for item in varying}
        if node.op in ("Add", "Sub") and len(varying) == 2 and len(shapes) == 1 and None not in shapes:
            return self._emit(move, node.op, [self._sum(item, move, only_products) for item in varying])
        raise _Declined("what it adds is no product")

    def _is_by_axes(self, node: Node) -> bool:
        return self.facts.of(node.inputs[1]).ints is None

    def _product(self, node: Node, move: _Move) -> Value:
        """The sum of p[t] q[t] is [p[0] p[1] ...] times [q[0] q[1] ...] below each other."""
        left, right = node.inputs
        assert left is not None
        assert right is not None
        if self.facts.of(left).rank != 2 or self.facts.of(right).rank != 2:
            raise _Declined("the axes of a product are not those of two matrices")
        maker = self.makers.get(left)
        if maker is not None and is_plain(maker, "Transpose") and list(maker.attrs.get("perm", _TURNED)) == _TURNED:
            rows = maker.inputs[0]
            assert rows is not None
            first, second = self._all_steps([rows, right], move)
            flat = self._emit(move, "Flatten", [first], axis=2)
            turned = self._emit(move, "Transpose", [flat], perm=[1, 0])
        else:
            first, second = self._all_steps([left, right], move)
            beside = self._emit(move, "Transpose", [first], perm=[1, 0, 2])
            turned = self._emit(move, "Flatten", [beside], axis=1)
        below = self._emit(move, "Flatten", [second], axis=2)
        return self._emit(move, "MatMul", [turned, below])

    def _reduction(self, node: Node, move: _Move, only_products: bool) -> Value:
        value, axes = node.inputs[0], self.facts.of(node.inputs[1]).ints if len(node.inputs) > 1 else None
        assert value is not None
        rank = self.facts.of(value).rank
        if only_products or not self._is_at_hand(value) or rank is None or not axes:
            raise _Declined("what it sums is not traced")
        (whole,) = self._all_steps([value], move)
        moved = [axis % rank + 1 for axis in axes]
        if not node.attrs.get("keepdims", 1):
            return self._emit(move, "ReduceSum", [whole, self.new.ints(0, *moved)], keepdims=0)
        inner = self._emit(move, "ReduceSum", [whole, self.new.ints(*moved)], keepdims=1)
        return self._emit(move, "ReduceSum", [inner, self.new.ints(0)], keepdims=0)

    def _is_at_hand(self, value: Value) -> bool:
        traced = any(trace.element is value and trace.whole is not None for trace in self.scan.traces)
        return traced or value in self.sequences

    def _is_fixed(self, value: Value) -> bool:
        return value in self.fixed or value in self.scan.body.constants

    def _outer(self, value: Value) -> Value:
        if value in self.fixed:
            return self.fixed[value]
        return self.new.constant(self.scan.body.constants[value], value.name)

    def _all_steps(self, values: Sequence[Value], move: _Move) -> list[Value]:
        """All steps of values, in one order, on the first axis."""
        reverse = next((self.sequences[value].spec.reverse for value in values if value in self.sequences), None)
        if reverse is None:
            held = [trace.spec.reverse for trace in self.scan.traces if trace.element in values]
            reverse = bool(held and held[0])
        return [self._steps_first(value, reverse, move) for value in values]

    def _steps_first(self, value: Value, reverse: bool, move: _Move) -> Value:
        rank = self.facts.of(value).rank
        if rank is None:
            raise _Declined("a rank is not known")
        sequence = self.sequences.get(value)
        if sequence is not None and sequence.spec.reverse == reverse:
            return self._to_front(sequence.whole, sequence.spec.axis, rank + 1, move)
        for trace in (*self.scan.traces, *move.added):
            is_full = trace.spec.keep is None and trace.spec.length is None and trace.spec.reverse == reverse
            if trace.element is value and trace.whole is not None and is_full:
                return self._to_front(trace.whole, trace.spec.axis, rank + 1, move)
        trace = Trace(TraceSpec(0, reverse), value, self.new.value(f"{value.name}_trace"))
        move.added.append(trace)
        assert trace.whole is not None
        return trace.whole

    def _to_front(self, whole: Value, axis: int, rank: int, move: _Move) -> Value:
        order = steps_to_front(axis, rank)
        return self._emit(move, "Transpose", [whole], perm=order) if order[0] else whole

    def _emit(self, move: _Move, op: str, inputs: Sequence[Value | None], **attrs: object) -> Value:
        made = self.new.value(f"{op.lower()}_all")
        move.after.append(Node(op, list(inputs), [made], dict(attrs), self.scan.name))
        return made
