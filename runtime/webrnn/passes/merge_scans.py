"""Loops that take equally many steps and do not need each other's results become one loop.

Requires: facts from infer_shapes (the numbers of steps); inline_single_step before it.
Ensures: of the Scans before which equally many others have to run, so that none of them can need another, those that
take the same number of steps are one, unless they are declined. Each keeps its own states, sequences and traces.
Declines: "it may end early" (a condition); "it saves memory" (the loop is marked so); "the number of its steps is not
known"; "the number of its steps is given apart from its sequences"; "it takes one step" (inline_single_step decides on
it); "its matrix product outweighs the loop around it": a plan has one instruction for a whole loop that is a product
and a cell, and what is merged with it would hide it, while the steps of such a loop cost little beside the product; "a
step could fail where the loop takes none": what the traces of no steps look like is found by a step on zeros, which
must not fail because of another loop.
"""

from __future__ import annotations

from collections.abc import Hashable

from webrnn.ir import WEBRNN, Graph, Node, Scan, Value, is_scan
from webrnn.ir.dims import is_nonnegative
from webrnn.ops.rows import with_trait
from webrnn.shapes.infer import trip_count

from .base import Context, Pass, PassResult
from .rewriting import Names, drop_nodes, in_order, is_total, replace_in_body

_WEIGHS = with_trait("product") | with_trait("product", "cell", domain=WEBRNN)


class MergeScans(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        for siblings in _siblings(graph):
            first_of: dict[Hashable, int] = {}
            for index, node in enumerate(siblings):
                reason, steps = _examine(node, context)
                if reason is not None or steps is None:
                    result.declines_at(node, reason or "the number of its steps is not known")
                    continue
                place = first_of.setdefault(steps, index)
                if place != index and result.fires(f"{node.label} into {siblings[place].label}"):
                    siblings[place] = _merge(graph, siblings[place], node)


def _siblings(graph: Graph) -> list[list[Node]]:
    """The Scans that have equally many others on the longest way to them, where there are at least two."""
    before: dict[Value | None, int] = {}
    levels: dict[int, list[Node]] = {}
    for node in graph.nodes:
        level = max((before.get(value, 0) for value in node.inputs if value is not None), default=0)
        if is_scan(node):
            levels.setdefault(level, []).append(node)
            level += 1
        before.update((value, level) for value in node.outputs)
    return [nodes for nodes in levels.values() if len(nodes) > 1]


def _examine(node: Node, context: Context) -> tuple[str | None, Hashable]:
    """Why a Scan stays alone, or else what it has in common with those it can be merged with."""
    scan = Scan.of(node)
    if scan.cond is not None or scan.body_cond is not None:
        return "it may end early", None
    if scan.frugal:
        return "it saves memory", None
    if scan.n_steps is not None and scan.sequences:
        return "the number of its steps is given apart from its sequences", None
    if any(inner.op in _WEIGHS for graph in scan.body.walk() for inner in graph.nodes):
        return "its matrix product outweighs the loop around it", None
    steps = trip_count(scan, context.facts)
    if steps == 1:
        return "it takes one step", None
    takes_a_step = steps is not None and is_nonnegative(steps - 1)
    if not takes_a_step and not all(is_total(inner, context.facts) for inner in scan.body.nodes):
        return "a step could fail where the loop takes none", None
    return None, steps if steps is not None else scan.n_steps


def _merge(graph: Graph, first: Node, second: Node) -> Node:
    one, other = Scan.of(first), Scan.of(second)
    names = Names(one.body)
    made = (value for node in other.body.nodes for value in node.outputs if value is not None)
    for value in (*other.body.inputs, *other.body.constants, *made):
        value.name = names.fresh(value.name)
    if one.iteration is not None and other.iteration is not None:
        replace_in_body(other, {other.iteration: one.iteration})
    one.iteration = one.iteration or other.iteration
    one.n_steps = one.n_steps if not one.sequences and not other.sequences else None
    one.body.nodes += other.body.nodes
    one.body.constants.update(other.body.constants)
    one.states += other.states
    one.sequences += other.sequences
    one.invariants += other.invariants
    one.traces += other.traces
    merged = one.to_node()
    graph.nodes[graph.nodes.index(first)] = merged
    drop_nodes(graph, [second])
    ordered = in_order(graph.nodes)
    assert ordered is not None, "neither of two Scans on one level needs the other"
    graph.nodes = ordered
    return merged
