"""Which values are sequences or optionals: models need not declare that of values inside a graph, ops tell."""

from __future__ import annotations

from collections.abc import Sequence

from .graph import Graph, Node, Value, is_plain
from .scan import Scan, is_scan

MAKES_SEQUENCES = frozenset(
    {"SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SplitToSequence", "SequenceJoin"}
)
SEQUENCE = ("seq",)


def mark_containers(graph: Graph) -> None:
    """Write to each value that some op makes a sequence or an optional that it is one."""
    for node in graph.nodes:
        made, given = _first(node.outputs), _first(node.inputs)
        if is_scan(node):
            _mark_scan(Scan.of(node))
        elif is_plain(node, "If"):
            _mark_if(node)
        elif node.op in MAKES_SEQUENCES:
            _mark(made, SEQUENCE)
        elif is_plain(node, "Identity"):
            _mark(made, _container(given))
        elif is_plain(node, "Optional"):
            _mark(made, ("optional", *_container(given)))
        elif is_plain(node, "OptionalGetElement"):
            held = _container(given)
            _mark(made, held[1:] if held[:1] == ("optional",) else held)


def _mark_scan(scan: Scan) -> None:
    for state in scan.states:
        _mark(state.body_in[0], _container(state.init))
    for item in scan.invariants:
        _mark(item.inner, _container(item.outer))
    mark_containers(scan.body)
    for state in scan.states:
        _mark(state.final, _container(state.init) or _container(state.body_out))


def _mark_if(node: Node) -> None:
    branches: list[Graph] = [node.attrs["then_branch"], node.attrs["else_branch"]]
    for branch in branches:
        for inner, outer in zip(branch.inputs, node.inputs[1:], strict=True):
            _mark(inner, _container(outer))
        mark_containers(branch)
    for made, *given in zip(node.outputs, *(branch.outputs for branch in branches), strict=True):
        _mark(made, next((value.container for value in given if value.container), ()))


def _first(values: Sequence[Value | None]) -> Value | None:
    """None for a node that has none, which is refused later."""
    return values[0] if values else None


def _container(value: Value | None) -> tuple[str, ...]:
    return () if value is None else value.container


def _mark(value: Value | None, container: tuple[str, ...]) -> None:
    if value is not None and not value.container:
        value.container = container
