"""Work that is the same in every step is done once, before the loop.

Requires: facts from infer_shapes.
Ensures: no node of a Scan's body reads invariants and constants alone, unless it is declined; those that did stand
before the Scan and their results are invariants. That holds for loops and branches inside the body as for other nodes.
Declines: "it could fail where the loop takes no step" for ops that can raise on operands of the right shape (a Gather,
a division of integers) and for loops around them or of which it is not known how many steps they take, unless the Scan
is known to take a step. Ops on constants alone are left to fold_constants, those that make sequences stay with what
unpacks them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webrnn.ir import Graph, Invariant, Node, Scan, Value, is_plain, is_scan
from webrnn.ops.sets import RANDOM
from webrnn.shapes.facts import Facts
from webrnn.shapes.infer import trip_count

from .base import Context, PassResult, ScanPass
from .rewriting import Names, is_total, new_constant


class HoistInvariants(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        steps = trip_count(scan, context.facts)
        takes_a_step = isinstance(steps, int) and steps > 0
        outer_of: dict[Value, Value] = {item.inner: item.outer for item in scan.invariants}
        names: Names | None = None
        hoisted: list[Node] = []
        for inner in list(scan.body.nodes):
            operands = [value for value in inner.inputs if value is not None]
            known = all(value in outer_of or value in scan.body.constants for value in operands)
            makes_sequences = any(value.container for value in inner.outputs if value is not None)
            if not known or makes_sequences or not any(value in outer_of for value in operands):
                continue
            if any(each.op in RANDOM for each in _with_inner_nodes(inner)):
                continue
            if not takes_a_step and not _cannot_fail(inner, context.facts):
                result.declines_at(inner, "it could fail where the loop takes no step")
                continue
            if not result.fires(f"{inner.op} {inner.label} out of {node.label}"):
                break
            names = names or Names(graph)
            hoisted.append(_move_out(graph, scan, inner, outer_of, names, context))
        if not hoisted:
            return None
        _drop_unread_invariants(scan)
        return [*hoisted, scan.to_node()]


def _with_inner_nodes(node: Node) -> Iterator[Node]:
    yield node
    for _, body in node.subgraphs:
        for graph in body.walk():
            yield from graph.nodes


def _cannot_fail(node: Node, facts: Facts) -> bool:
    inner = [each for _, body in node.subgraphs for each in body.nodes]
    if is_scan(node):
        scan = Scan.of(node)
        says_it_twice = scan.n_steps is not None and bool(scan.sequences)
        if says_it_twice or trip_count(scan, facts) is None:
            return False
    elif not is_plain(node, "If"):
        return is_total(node, facts)
    return all(_cannot_fail(each, facts) for each in inner)


def _move_out(
    graph: Graph, scan: Scan, inner: Node, outer_of: dict[Value, Value], names: Names, context: Context
) -> Node:
    inputs: list[Value | None] = []
    for value in inner.inputs:
        if value is not None and value not in outer_of:
            array = scan.body.constants[value]
            outer_of[value] = new_constant(graph, array, names.fresh(value.name), context)
        inputs.append(None if value is None else outer_of[value])
    outputs: list[Value | None] = []
    for value in inner.outputs:
        outer = None if value is None else value.like(names.fresh(value.name))
        outputs.append(outer)
        if value is not None and outer is not None:
            outer_of[value] = outer
            context.facts.set(outer, context.facts.of(value))
            scan.invariants.append(Invariant(outer, value))
    scan.body.nodes.remove(inner)
    return Node(inner.op, inputs, outputs, inner.attrs, inner.name, inner.domain)


def _drop_unread_invariants(scan: Scan) -> None:
    """Results that were only needed on the way out are not handed in."""
    read = {value for node in scan.body.nodes for value in node.inputs}
    read.update(state.body_out for state in scan.states)
    read.update(trace.element for trace in scan.traces)
    read.add(scan.body_cond)
    scan.invariants = [item for item in scan.invariants if item.inner in read]
