"""A loop of few steps that carries what a loop of the VM cannot is written out step by step.

Requires: facts from infer_shapes; all other passes have come to rest.
Ensures: a Scan that takes a known small number of steps, and has a sequence in its body or a state whose shape changes
from step to step, is replaced by the nodes of its steps, one after the other; its traces are joined
behind them. What follows from the number of the step is a constant in each.
Declines: "it takes too many steps to be written out", "how many steps it takes is only known when it runs".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import Graph, Node, Scan, State, Trace, Value
from webrnn.shapes.infer import trip_count

from .base import Context, PassResult, ScanPass
from .rewriting import Names, inline, new_constant

MOST_STEPS = 32
MOST_NODES = 2000
"""Of all steps together."""


class UnrollLoops(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if not _has_to(scan, context):
            return None
        steps = trip_count(scan, context.facts)
        if not isinstance(steps, int):
            result.declines_at(node, "how many steps it takes is only known when it runs")
        elif not 0 < steps <= MOST_STEPS or steps * sum(len(g.nodes) for g in scan.body.walk()) > MOST_NODES:
            result.declines_at(node, "it takes too many steps to be written out")
        elif result.fires(f"{steps} steps of {node.label}"):
            return _Steps(graph, scan, steps, context).nodes()
        return None


def _has_to(scan: Scan, context: Context) -> bool:
    """Whether it has what loops of the VM have not, and can be written out."""
    can = all(state.spec.is_plain for state in scan.states) and all(
        trace.spec.keep is None and trace.spec.length is None for trace in scan.traces
    )
    inside = (value for node in scan.body.nodes for value in (*node.inputs, *node.outputs) if value is not None)
    carries = any(state.init.container for state in scan.states) or any(value.container for value in inside)
    return can and (carries or any(_changes(state, context) for state in scan.states))


def _changes(state: State, context: Context) -> bool:
    """Whether the shape of a state is known before the first step, and not later."""
    first, later = (context.facts.shape(value) for value in (state.init, state.body_in[0]))
    return first is not None and None not in first and (later is None or None in later)


class _Steps:
    def __init__(self, graph: Graph, scan: Scan, steps: int, context: Context):
        self.graph, self.scan, self.steps, self.context = graph, scan, steps, context
        self.names = Names(graph)
        self.made: list[Node] = []

    def nodes(self) -> list[Node]:
        scan = self.scan
        states = [state.init for state in scan.states]
        elements: list[list[Value]] = [[] for _ in scan.traces]
        scan.to_node()
        for step in range(self.steps):
            body = scan.body.copy()
            arguments = [
                *([self._constant(step)] if scan.iteration is not None else []),
                *states,
                *(self._element(item.whole, item.spec.axis, item.spec.reverse, step) for item in scan.sequences),
                *(item.outer for item in scan.invariants),
            ]
            nodes, constants = inline(body, arguments, self.names)
            self.graph.constants.update(constants)
            self.made += nodes
            states = body.outputs[: len(states)]
            for found, element in zip(elements, body.outputs[len(states) :], strict=True):
                found.append(element)
        for state, last in zip(scan.states, states, strict=True):
            if state.final is not None:
                state.final.container = state.final.container or last.container
                self.made.append(Node("Identity", [last], [state.final]))
        for trace, found in zip(scan.traces, elements, strict=True):
            self._join(trace, found)
        return self.made

    def _element(self, whole: Value, axis: int, reverse: bool, step: int) -> Value:
        place = self._constant(self.steps - 1 - step if reverse else step)
        return self._op("Gather", whole, place, axis=axis)

    def _join(self, trace: Trace, elements: list[Value]) -> None:
        if trace.whole is None:
            return
        axes = new_constant(self.graph, np.array([trace.spec.axis], np.int64), self.names.fresh("axes"), self.context)
        rows = [self._op("Unsqueeze", element, axes) for element in elements]
        ordered = rows[::-1] if trace.spec.reverse else rows
        self.made.append(Node("Concat", [*ordered], [trace.whole], {"axis": trace.spec.axis}))

    def _op(self, op: str, *inputs: Value, **attrs: int) -> Value:
        made = Value(self.names.fresh(f"{inputs[0].name}_step"))
        self.made.append(Node(op, list(inputs), [made], dict(attrs)))
        return made

    def _constant(self, number: int) -> Value:
        return new_constant(self.graph, np.array(number, np.int64), self.names.fresh("step"), self.context)
