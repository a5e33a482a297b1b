"""A loop whose condition only counts takes a known number of steps.

Requires: facts from infer_shapes.
Ensures: a Scan whose condition follows from constants, the number of the iteration and states that themselves follow
from these (counters) has the number of its steps as a constant, and no condition. The number is found by counting. If
the condition is that a counter is less than a size of the model's inputs, the number of steps follows from that size:
where the condition is asked before the first step too, or a first step that reads an element of that axis would fail.
Declines: "its condition depends on data"; "it takes more than MOST_STEPS steps".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn import reference
from webrnn.checks.arrays import call
from webrnn.errors import Error
from webrnn.ir import Graph, Node, Scan, State, Value

from .base import Context, PassResult, ScanPass
from .loop_bounds import Bound
from .rewriting import Names, constant_of, new_constant

MOST_STEPS = 4096
"""Counting further takes too long."""


class CountSteps(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if scan.body_cond is None or scan.sequences:
            return None
        counter = _Counter.of(graph, scan, context)
        if counter is None:
            bound = Bound(graph, node, scan, context)
            if bound.is_known and result.fires(f"{bound.steps} steps of {node.label}"):
                before, scan.n_steps = bound.number()
                scan.cond = scan.body_cond = None
                return [*before, scan.to_node()]
            result.declines_at(node, "its condition depends on data")
            return None
        steps = counter.count()
        if steps is None:
            result.declines_at(node, f"it takes more than {MOST_STEPS} steps")
            return None
        if not result.fires(f"{steps} steps of {node.label}"):
            return None
        scan.n_steps = new_constant(graph, np.array(steps, np.int64), Names(graph).fresh("n_steps"), context)
        scan.cond = scan.body_cond = None
        return [scan.to_node()]


class _Counter:
    """The part of a body that decides whether there is a next step, on its own."""

    def __init__(
        self, scan: Scan, states: dict[Value, np.ndarray], known: dict[Value, np.ndarray], nodes: list[Node], most: int
    ):
        self.scan, self.states, self.known, self.nodes, self.most = scan, states, known, nodes, most

    @staticmethod
    def of(graph: Graph, scan: Scan, context: Context) -> _Counter | None:
        """None if it depends on anything that is not known."""
        known: dict[Value, np.ndarray] = dict(scan.body.constants)
        for invariant in scan.invariants:
            array = _known(graph, invariant.outer, context)
            if array is not None:
                known[invariant.inner] = array
        starts: dict[Value, np.ndarray] = {}
        by_input: dict[Value, State] = {state.body_in[0]: state for state in scan.states if state.spec.is_plain}
        producers = scan.body.producers()
        pending: list[Value] = [] if scan.body_cond is None else [scan.body_cond]
        needed: set[int] = set()
        seen: set[Value] = set()
        while pending:
            value = pending.pop()
            if value in seen or value in known or value is scan.iteration:
                continue
            seen.add(value)
            if value in by_input:
                start = _known(graph, by_input[value].init, context)
                if start is None:
                    return None
                starts[value] = start
                pending.append(by_input[value].body_out)
                continue
            node = producers.get(value)
            if node is None or any(True for _ in node.subgraphs) or reference.lookup(node.domain, node.op) is None:
                return None
            needed.add(id(node))
            pending.extend(operand for operand in node.inputs if operand is not None)
        limit = None if scan.n_steps is None else _known(graph, scan.n_steps, context)
        first = None if scan.cond is None else _known(graph, scan.cond, context)
        if (scan.n_steps is not None and limit is None) or (scan.cond is not None and first is None):
            return None
        most = 2**62 if limit is None else max(int(limit.reshape(-1)[0]), 0)
        if first is not None and not first.reshape(-1)[0]:
            most = 0
        return _Counter(scan, starts, known, [node for node in scan.body.nodes if id(node) in needed], most)

    def count(self) -> int | None:
        """How many steps it takes; None if that is too many to count."""
        states = dict(self.states)
        for step in range(self.most):
            if step > MOST_STEPS:
                return None
            try:
                values = self._step(states, step)
            except Error:
                return None
            states = {
                state.body_in[0]: values[state.body_out] for state in self.scan.states if state.body_in[0] in states
            }
            if self.scan.body_cond is not None and not values[self.scan.body_cond].reshape(-1)[0]:
                return step + 1
        return self.most

    def _step(self, states: dict[Value, np.ndarray], step: int) -> dict[Value, np.ndarray]:
        values = {**self.known, **states}
        if self.scan.iteration is not None:
            values[self.scan.iteration] = np.array(step, np.int64)
        for node in self.nodes:
            arguments = [None if value is None else values[value] for value in node.inputs]
            results = call(node.op, node.domain, arguments, node.attrs, len(node.outputs))
            values.update((made, array) for made, array in zip(node.outputs, results, strict=True) if made is not None)
        return values


def _known(graph: Graph, value: Value, context: Context) -> np.ndarray | None:
    array = constant_of(graph, value)
    return context.facts.of(value).array if array is None else array
