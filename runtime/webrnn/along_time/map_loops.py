"""Loops that run a model for each sequence of a batch: a stream has one sequence, for which the loop takes one step."""

from __future__ import annotations

from collections.abc import Mapping

from webrnn.ir import Dim, Graph, Node, Scan, SymbolicDim, Value, is_scan
from webrnn.shapes.facts import facts_of_inputs
from webrnn.shapes.infer import infer


def take_one_sequence(graph: Graph, time: Mapping[Value, int], label: str | None = None) -> bool:
    """Let the axes of the inputs that loops without states walk along, of any size and not time, have one place;
    whether there are any. With a label only this loop is looked at."""
    facts = infer(graph)
    walked: set[Dim] = set()
    for node in graph.nodes:
        if not _is_map(node) or (label is not None and node.label != label):
            continue
        for item in Scan.of(node).sequences:
            shape = facts.shape(item.whole)
            if shape is not None:
                size = shape[item.spec.axis]
                walked |= {size} if isinstance(size, SymbolicDim) else set()
    named = [(value, fact.shape) for value, fact in zip(graph.inputs, facts_of_inputs(graph.inputs), strict=True)]
    walked -= {shape[time[value]] for value, shape in named if shape is not None and value in time}
    is_found = False
    for value, shape in named:
        if value.shape is not None and any(size in walked for size in shape or ()):
            pairs = zip(value.shape, shape or (), strict=True)
            value.shape = tuple(1 if size in walked else declared for declared, size in pairs)
            is_found = True
    return is_found


def _is_map(node: Node) -> bool:
    if not is_scan(node):
        return False
    scan = Scan.of(node)
    return bool(scan.sequences) and not scan.states and scan.cond is None and scan.body_cond is None
