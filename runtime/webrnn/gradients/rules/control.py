"""Ops with graphs inside."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import WEBRNN, Graph, Node, Value

from ..emitter import Emitter
from ..pullback import pull_nodes, spread
from ..registry import Pull, rule
from ..scans import pull_scan

Found = Sequence[Value | None]


@rule("If")
def branch(g: Pull) -> Found:
    """An If again: each branch computes what it needs once more, and goes back."""
    b, node = g.b, g.node
    wanted = [index for index, value in enumerate(node.inputs) if index and value in g.active]
    given = [(place, d) for place, d in enumerate(g.given) if d is not None]
    branches = {name: _back(g, node.attrs[name], wanted, given) for name in ("then_branch", "else_branch")}
    made = [b.value(f"d_{g.x(index).name}") for index in wanted]
    cotangents = [d for _, d in given]
    b.add(Node("If", [*node.inputs, *cotangents], [*made], {**branches}, node.name))
    found: list[Value | None] = [None] * len(node.inputs)
    for index, value in zip(wanted, made, strict=True):
        found[index] = value
    return found


def _back(g: Pull, graph: Graph, wanted: list[int], given: list[tuple[int, Value]]) -> Graph:
    """A branch that takes the operands of the If and the cotangents of its results."""
    inner = graph.copy()
    for new, old in zip(inner.inputs, graph.inputs, strict=True):
        g.b.facts.set(new, g.b.facts.of(old))
    e = Emitter(inner, g.b.facts)
    e.infer()
    seeds: dict[Value, Value] = {}
    for place, outer in given:
        cotangent = e.input(f"d_{outer.name}", outer.dtype, outer.shape)
        g.b.facts.set(cotangent, g.b.facts.of(outer))
        end = inner.outputs[place]
        total = e.plus(seeds.get(end), cotangent)
        assert total is not None
        seeds[end] = total
    nodes = list(inner.nodes)
    sources = [inner.inputs[index - 1] for index in wanted]
    active = spread(nodes, sources, g.b.facts)
    found = pull_nodes(e, nodes, seeds, active, g.options)
    ends = []
    for source in sources:
        made = found.get(source)
        ends.append(e.op("Identity", e.zeros_like(source) if made is None else made))
    inner.outputs = ends
    e.prune()
    return inner


@rule("Scan", domain=WEBRNN)
def scan(g: Pull) -> Found:
    return pull_scan(g)
