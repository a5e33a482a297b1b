"""A state that counts steps is read as the number of the iteration.

Requires: facts from infer_shapes.
Ensures: where each step adds a known number to an integer state, readers of the state in the body, and readers of its
next value, read its first value plus so many times the number of the iteration. The state itself only leads to its
last value then, and goes with remove_unused if nobody reads that.
Declines: "what a step adds is only known when the loop runs".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import DType, Graph, Invariant, Node, Scan, State, Value, is_plain

from .base import Context, PassResult, ScanPass
from .rewriting import Names, constant_of, new_constant, replace_in_body


class CountersToIterations(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        before = result.rewrites
        for state in scan.states:
            update = _update(scan, state, context)
            if update is None or not _is_read(scan, state, update):
                continue
            step = _known(scan.body, _other(update, state.body_in[0]), context)
            if step is None:
                result.declines_at(node, "what a step adds is only known when the loop runs")
            elif result.fires(f"{state.body_in[0].name} of {node.label}"):
                _Counter(graph, scan, state, update, step, context).read_from_iteration()
        return [scan.to_node()] if result.rewrites > before else None


def _update(scan: Scan, state: State, context: Context) -> Node | None:
    """The Add, or Sub, of an integer state and another number that gives its next value."""
    fact = context.facts.of(state.body_in[0])
    if not state.spec.is_plain or fact.dtype not in (DType.INT64, DType.INT32) or fact.shape not in ((), (1,)):
        return None
    node = scan.body.producers().get(state.body_out)
    if node is None or not is_plain(node, "Add", "Sub") or node.inputs.count(state.body_in[0]) != 1:
        return None
    if context.facts.shape(state.body_out) != fact.shape:
        return None
    return node if node.op == "Add" or node.inputs[0] is state.body_in[0] else None


def _other(update: Node, before: Value) -> Value | None:
    return update.inputs[1] if update.inputs[0] is before else update.inputs[0]


def _known(graph: Graph, value: Value | None, context: Context) -> int | None:
    array = constant_of(graph, value)
    found = context.facts.of(value).array if array is None else array
    return int(found.reshape(-1)[0]) if found is not None and found.size == 1 else None


def _is_read(scan: Scan, state: State, update: Node) -> bool:
    """Whether anything but its own update reads the state or its next value."""
    both = (state.body_in[0], state.body_out)
    inside = any(value in both for node in scan.body.nodes if node is not update for value in node.inputs)
    others = [other.body_out for other in scan.states if other is not state]
    results = [*others, *(trace.element for trace in scan.traces), scan.body_cond]
    return inside or any(value in both for value in results)


class _Counter:
    def __init__(self, graph: Graph, scan: Scan, state: State, update: Node, step: int, context: Context):
        self.graph, self.scan, self.state, self.update, self.context = graph, scan, state, update, context
        self.step = -step if update.op == "Sub" else step
        self.names = Names(scan.body)
        self.nodes: list[Node] = []
        self.fact = context.facts.of(state.body_in[0])

    def read_from_iteration(self) -> None:
        scan, state = self.scan, self.state
        own = [Value(self.names.fresh(value.name)) for value in (state.body_in[0], state.body_out)]
        for value in own:
            self.context.facts.set(value, self.fact)
        now = self._now()
        after = self._op("Add", now, self._constant(self.step))
        self.update.outputs = [own[1]]
        replace_in_body(scan, {state.body_in[0]: now, state.body_out: after})
        self.update.inputs = [own[0] if value is now else value for value in self.update.inputs]
        state.body_in, state.body_out = [own[0]], own[1]
        scan.body.nodes[:0] = self.nodes

    def _now(self) -> Value:
        """The value of the counter in a step."""
        scan = self.scan
        if scan.iteration is None:
            scan.iteration = Value(self.names.fresh("iteration"), DType.INT64, ())
        count = scan.iteration
        if self.fact.dtype is not DType.INT64:
            count = self._op("Cast", count, to=int(DType.INT32))
        if self.fact.shape != ():
            axes = new_constant(scan.body, np.array([1], np.int64), self.names.fresh("shape"), self.context)
            count = self._op("Reshape", count, axes)
        first = self._first()
        if self.step == -1:
            return self._op("Sub", first, count)
        if self.step != 1:
            count = self._op("Mul", count, self._constant(self.step))
        return self._op("Add", first, count) if self._starts_from() != 0 else self._op("Identity", count)

    def _starts_from(self) -> int | None:
        return _known(self.graph, self.state.init, self.context)

    def _first(self) -> Value:
        known = self._starts_from()
        if known is not None:
            return self._constant(known)
        inner = Value(self.names.fresh(f"{self.state.init.name}_first"))
        self.context.facts.set(inner, self.context.facts.of(self.state.init))
        self.scan.invariants.append(Invariant(self.state.init, inner))
        return inner

    def _constant(self, number: int) -> Value:
        assert self.fact.dtype is not None
        array = np.full([1] * len(self.fact.shape or ()), number, self.fact.dtype.array_type)
        return new_constant(self.scan.body, array, self.names.fresh("count"), self.context)

    def _op(self, op: str, *inputs: Value, **attrs: int) -> Value:
        made = Value(self.names.fresh(f"{self.state.body_in[0].name}_now"))
        self.nodes.append(Node(op, list(inputs), [made], dict(attrs)))
        self.context.facts.set(made, self.fact)
        return made
