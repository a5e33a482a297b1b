"""Outputs, states and inputs of a Scan that nobody reads are removed, with the work for them.

Requires: nothing.
Ensures: every trace of a Scan is read, and every state's final is read or its value reaches something that is. States
are resolved together: a chain of states of which only the first reads the next goes as a whole, and so do states that
only feed each other; what a survivor reads stays, in whatever order they are listed. Then sequences, invariants and
the iteration number that no remaining node of the body reads go, and the body's nodes that nothing needs.
Declines: "its last sequence says how many steps there are" (that sequence stays, unread). A Scan of which nothing is
read is left to remove_dead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from webrnn.ir import Graph, Node, Scan, SequenceInput, State, Trace, Value

from .base import Context, PassResult, ScanPass


class RemoveUnused(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        read = {value for other in graph.nodes for value in other.inputs} | set(graph.outputs)
        traces = [trace for trace in scan.traces if trace.whole in read and trace.whole is not None]
        if not traces and not any(state.final in read for state in scan.states if state.final is not None):
            return None
        states, needed, nodes = _surviving(scan, traces, read)
        sequences = [item for item in scan.sequences if item.element in needed]
        if not sequences and scan.sequences and scan.n_steps is None:
            sequences = [min(scan.sequences, key=lambda item: _as_counter(graph, item))]
            result.declines_at(node, "its last sequence says how many steps there are")
        invariants = [item for item in scan.invariants if item.inner in needed]
        iteration = scan.iteration if scan.iteration in needed else None
        kinds: dict[str, tuple[Sequence[object], Sequence[object]]] = {
            "states": (scan.states, states),
            "traces": (scan.traces, traces),
            "sequences": (scan.sequences, sequences),
            "invariants": (scan.invariants, invariants),
            "nodes": (scan.body.nodes, nodes),
        }
        gone = {kind: len(before) - len(after) for kind, (before, after) in kinds.items() if len(before) != len(after)}
        if not gone and iteration is scan.iteration:
            return None
        what = ", ".join(f"{count} {kind}" for kind, count in gone.items()) or "the iteration number"
        if not result.fires(f"{what} of {node.label}"):
            return None
        scan.states, scan.traces, scan.sequences, scan.invariants = states, traces, sequences, invariants
        scan.iteration, scan.body.nodes = iteration, nodes
        return [scan.to_node()]


def _as_counter(graph: Graph, item: SequenceInput) -> tuple[bool, str, int, bool]:
    """How little a sequence is wanted as the one that only says how many steps there are: what is there anyway is
    best, and which one it is must not depend on their order.
    """
    computed = item.whole not in graph.inputs and item.whole not in graph.constants
    return computed, item.whole.name, item.spec.axis, item.spec.reverse


def _surviving(
    scan: Scan, traces: Iterable[Trace], read: set[Value | None]
) -> tuple[list[State], set[Value | None], list[Node]]:
    """The states that something depends on, all body values that are needed, and the nodes that make them."""
    producers = scan.body.producers()
    state_of = {value: state for state in scan.states for value in state.body_in}
    alive = {id(state) for state in scan.states if state.final in read and state.final is not None}
    pending: list[Value | None] = [
        scan.body_cond,
        *(trace.element for trace in traces),
        *(state.body_out for state in scan.states if id(state) in alive),
    ]
    needed: set[Value | None] = set()
    while pending:
        value = pending.pop()
        if value is None or value in needed:
            continue
        needed.add(value)
        if value in state_of:
            state = state_of[value]
            alive.add(id(state))
            pending.append(state.body_out)
        elif value in producers:
            pending.extend(producers[value].inputs)
    nodes = [node for node in scan.body.nodes if any(value in needed for value in node.outputs if value is not None)]
    return [state for state in scan.states if id(state) in alive], needed, nodes
