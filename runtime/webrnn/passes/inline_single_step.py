"""A loop of exactly one step becomes the step.

Requires: facts from infer_shapes (the number of steps).
Ensures: a Scan without a condition that takes one step, because a sequence has one element or the number of steps is
the constant 1, is replaced by the nodes of its body. Under `stream` semantics, without states and inside the body of
another loop that is always so. Elsewhere, under `run`, a Scan with states stays a loop, in which its states can be
seen, unless the last value of each of them is in an output of the model, as it is or rearranged: as an operand of the
next call it is then explicit anyway.
Declines: "the last value of state ... is in no output of the model", "it has states and is inside a branch".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import Graph, Node, Scan, State, Value, is_scan
from webrnn.ops.sets import RESHAPES
from webrnn.shapes.infer import trip_count

from .base import Context, PassResult, ScanPass, open_graphs
from .rewriting import Names, inline, new_constant

_REARRANGE = RESHAPES | {"Transpose", "Concat", "ExpectShape"}
"""Ops whose results hold all elements of their operands."""


class InlineSingleStep(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if trip_count(scan, context.facts) != 1 or any(
            trace.spec.keep == 0 or trace.spec.length is not None for trace in scan.traces
        ):
            return None
        reason = _reason_to_stay(graph, scan, context)
        if reason is not None:
            result.declines_at(node, reason)
            return None
        return _Step(graph, scan, context).nodes() if result.fires(node.label) else None


def _reason_to_stay(graph: Graph, scan: Scan, context: Context) -> str | None:
    if context.semantics == "stream" or not scan.states or _is_in_a_loop(graph, context.root):
        return None
    if graph is not context.root:
        return "it has states and is inside a branch"
    visible = _values_in_outputs(graph)
    for state in scan.states:
        last = [state.final, *(trace.whole for trace in scan.trace_of(state))]
        if not any(value in visible for value in last if value is not None):
            return f"the last value of state {state.body_in[0].name} is in no output of the model"
    return None


def _is_in_a_loop(graph: Graph, root: Graph) -> bool:
    """Whether a graph is the body of a loop, or is in one: no state in there lives from call to call."""
    bodies = (Scan.of(node).body for outer in open_graphs(root) for node in outer.nodes if is_scan(node))
    return any(inner is graph for body in bodies for inner in open_graphs(body))


def _values_in_outputs(graph: Graph) -> set[Value]:
    """The outputs of a graph and what they are rearranged from."""
    producers = graph.producers()
    found: set[Value] = set()
    pending: list[Value | None] = [*graph.outputs]
    while pending:
        value = pending.pop()
        if value is None or value in found:
            continue
        found.add(value)
        node = producers.get(value)
        if node is not None and node.op in _REARRANGE:
            pending.extend(node.inputs if node.op == "Concat" else node.inputs[:1])
    return found


class _Step:
    """The one step of a Scan, as nodes of the graph around it."""

    def __init__(self, graph: Graph, scan: Scan, context: Context):
        self.graph, self.scan, self.context = graph, scan, context
        self.names = Names(graph)
        self.before: list[Node] = []
        self.after: list[Node] = []

    def nodes(self) -> list[Node]:
        scan = self.scan
        arguments = [
            *([self._constant(np.array(0, np.int64), "iteration")] if scan.iteration is not None else []),
            *(value for state in scan.states for value in self._taps(state)),
            *(self._first(item.whole, item.spec.axis) for item in scan.sequences),
            *(item.outer for item in scan.invariants),
        ]
        results = iter(self._inline(arguments))
        for state in scan.states:
            self._give_final(state, next(results))
        for trace in scan.traces:
            element = next(results)
            if trace.whole is not None:
                axes = self._ints(trace.spec.axis)
                self.after.append(Node("Unsqueeze", [element, axes], [trace.whole], {}, scan.name))
        return [*self.before, *self.after]

    def _inline(self, arguments: list[Value]) -> list[Value]:
        nodes, constants = inline(self.scan.body, arguments, self.names)
        self.graph.constants.update(constants)
        self.before.extend(nodes)
        return self.scan.body.outputs

    def _first(self, whole: Value, axis: int) -> Value:
        """Element 0 of a sequence, whatever its direction: `n_steps` cuts a longer one before it is turned around."""
        shape = self.context.facts.shape(whole)
        if shape is not None and shape[axis] == 1:
            return self._node("Squeeze", whole, self._ints(axis))
        return self._node("Gather", whole, self._constant(np.array(0, np.int64), "first"), axis=axis)

    def _taps(self, state: State) -> list[Value]:
        if state.spec.is_plain:
            return [state.init]
        places = [self._constant(np.array(state.spec.depth + tap, np.int64), "tap") for tap in state.spec.taps]
        return [self._node("Gather", state.init, place, axis=0) for place in places]

    def _give_final(self, state: State, last: Value) -> None:
        if state.final is None:
            return
        if state.spec.is_plain:
            self.after.append(Node("Identity", [last], [state.final]))
            return
        newest = Value(self.names.fresh("newest"))
        self.after.append(Node("Unsqueeze", [last, self._ints(0)], [newest]))
        older = Value(self.names.fresh("older"))
        self.after.append(
            Node("Slice", [state.init, self._ints(1), self._ints(state.spec.depth), self._ints(0)], [older])
        )
        self.after.append(Node("Concat", [older, newest], [state.final], {"axis": 0}))

    def _node(self, op: str, *inputs: Value, **attrs: int) -> Value:
        made = Value(self.names.fresh(f"{inputs[0].name}_step"))
        self.before.append(Node(op, list(inputs), [made], dict(attrs)))
        return made

    def _ints(self, *numbers: int) -> Value:
        return self._constant(np.array(numbers, np.int64), "ints")

    def _constant(self, array: np.ndarray, hint: str) -> Value:
        return new_constant(self.graph, array, self.names.fresh(hint), self.context)
