"""Cutting a graph into parts that the VM runs and parts that it cannot."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from webrnn.ir import Graph, Node, Value
from webrnn.shapes.facts import Facts
from webrnn.shapes.infer import infer


@dataclass(slots=True)
class Part:
    graph: Graph
    """Its inputs and outputs are values of the whole graph."""
    on_vm: bool


def split(graph: Graph, refused: Collection[Node]) -> list[Part]:
    """The parts in the order in which they run. Each node stands in the earliest part of its kind in which it can."""
    facts = infer(graph)
    foreign = set(refused)
    level_of: dict[Value, int] = {}
    levels: dict[int, list[Node]] = {}
    for node in graph.nodes:
        kind = 1 if node in foreign else 0
        level = max((level_of.get(value, 0) for value in node.inputs if value is not None), default=0)
        level += (level + kind) % 2
        for output in node.outputs:
            if output is not None:
                level_of[output] = level
        levels.setdefault(level, []).append(node)
    return [_part(graph, nodes, level % 2 == 0, facts) for level, nodes in sorted(levels.items())]


def _part(graph: Graph, nodes: list[Node], on_vm: bool, facts: Facts) -> Part:
    inside = set(map(id, nodes))
    made = dict.fromkeys(output for node in nodes for output in node.outputs if output is not None)
    read = dict.fromkeys(value for node in nodes for value in node.inputs if value is not None)
    wanted = {value for node in graph.nodes if id(node) not in inside for value in node.inputs} | set(graph.outputs)
    inputs = [value for value in read if value not in made and value not in graph.constants]
    outputs = [value for value in made if value in wanted]
    for value in inputs:
        fact = facts.of(value)
        if not value.container:
            value.dtype, value.shape = fact.dtype or value.dtype, fact.shape
    constants = {value: graph.constants[value] for value in read if value in graph.constants}
    return Part(Graph(graph.name, inputs, outputs, nodes, constants), on_vm)
