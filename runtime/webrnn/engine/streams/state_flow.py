"""What the graph itself says about states: where inputs that start loops, fill buffers or go through gates end up.

Elements are followed that are moved, or changed in a way that only states are. What is found is so; what is not found
may be so all the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from webrnn.ir import Graph, Node, Scan, Value, is_scan
from webrnn.ops.rows import with_trait
from webrnn.ops.sets import SIZES, VIEWS, WEIGHTED

_MOVING = VIEWS | {"Cast", "ExpectShape", "Dropout"}
"""Ops whose outputs have elements of their first input."""
_UPDATING = with_trait("scatter")
_LINEAR = WEIGHTED | {"Add", "Concat"}
_GATES = with_trait("gate")


class Kind(Enum):
    """How far a way through the graph is to be trusted."""

    STATE = 1
    """Only states are used so."""
    PARTNER = 2
    """The other state of an LSTM that is written out, or its signal."""
    BUFFER = 3
    """A buffer, or signals that are put together."""


class Way(NamedTuple):
    kind: Kind
    text: str


@dataclass(frozen=True)
class Flow:
    ways: dict[str, dict[str, Way]] = field(default_factory=dict)
    """input -> output -> how the input lives on in it."""
    starts: dict[str, str] = field(default_factory=dict)
    """input -> the loop that it starts."""


def flow_of(graph: Graph) -> Flow:
    """How inputs of a graph live on in its outputs."""
    walk = _Walk(graph)
    for node in graph.nodes:
        walk.visit(node)
    for output in graph.outputs:
        for origin, way in walk.lives.get(output, {}).items():
            walk.flow.ways.setdefault(origin.name, {})[output.name] = way
    return walk.flow


class _Walk:
    """What is known of the values that were seen."""

    def __init__(self, graph: Graph):
        self.flow = Flow()
        self.constants = graph.constants
        self.views: dict[Value, set[Value]] = {value: {value} for value in graph.inputs}
        """The inputs that a value has elements of."""
        self.lives: dict[Value, dict[Value, Way]] = {}
        """The inputs of which a value is what they become."""
        self.sums: dict[Value, set[Value]] = {value: {value} for value in graph.inputs}
        """The inputs that a value is a linear function of, besides other things."""
        self.gates: dict[Value, set[Value]] = {}
        """Values from 0 to 1, and the inputs that these are a function of."""
        self.candidates: set[Value] = set()
        """Values from a tanh."""
        self.squashed_cells: set[Value] = set()
        self.products: dict[Value, Node] = {}
        self.differences: dict[Value, set[Value]] = {}
        """Inputs from which a value of a tanh was taken."""

    def visit(self, node: Node) -> None:
        if is_scan(node):
            self._loop(node)
            return
        self._moved(node)
        first = node.inputs[0] if node.inputs else None
        for output in node.outputs[:1]:
            if output is None or first is None:
                continue
            if node.op in _GATES:
                self.gates[output] = self.sums.get(first, set())
            elif node.op == "Tanh":
                self.candidates.add(output)
                if any(way.kind is Kind.STATE for way in self.lives.get(first, {}).values()):
                    self.squashed_cells.add(output)
            elif node.op == "Sub":
                self._difference(node, output)
            elif node.op == "Mul":
                self._product(node, output)
            elif node.op == "Add":
                self._cell(node, output)
            elif node.op == "Where":
                self._kept_or_new(node, output)
            if node.op in _LINEAR:
                self.sums[output] = set().union(*(self.sums.get(value, set()) for value in node.inputs if value))

    def _loop(self, node: Node) -> None:
        for state in Scan.of(node).states:
            way = Way(Kind.STATE, f"starts the loop '{node.label}'")
            later = dict.fromkeys(self.views.get(state.init, ()), way) | self.lives.get(state.init, {})
            for origin in later:
                self.flow.starts.setdefault(origin.name, way.text)
            if later and state.final is not None:
                self.lives[state.final] = later

    def _moved(self, node: Node) -> None:
        if node.op == "Concat":
            moved = [value for value in node.inputs if value is not None]
        elif node.op in _MOVING or node.op in _UPDATING:
            moved = [value for value in node.inputs[:1] if value is not None]
        else:
            return
        origins = set().union(*(self.views.get(value, set()) for value in moved))
        later: dict[Value, Way] = {}
        for value in moved:
            for origin, way in self.lives.get(value, {}).items():
                if origin not in later or way.kind.value < later[origin].kind.value:
                    later[origin] = way
        for origin in origins - later.keys():
            if node.op in _UPDATING or (node.op == "Concat" and self._has_others(moved, origin)):
                later[origin] = Way(Kind.BUFFER, f"moves on in {node.op} '{node.label}'")
        for output in node.outputs:
            if output is None:
                continue
            if origins:
                self.views[output] = origins
            if later:
                self.lives[output] = later
            if node.op in _MOVING:
                self._same_as(output, moved[0])

    def _same_as(self, output: Value, source: Value) -> None:
        for known in (self.sums, self.gates):
            if source in known:
                known[output] = known[source]
        if source in self.candidates:
            self.candidates.add(output)
        if source in self.products:
            self.products[output] = self.products[source]

    def _has_others(self, moved: list[Value], origin: Value) -> bool:
        """Whether elements of an input and new ones are put together: a buffer that rolls or grows."""
        others = [value for value in moved if origin not in self.views.get(value, ())]
        return any(value not in self.constants for value in others)

    def _difference(self, node: Node, output: Value) -> None:
        for first, second in list(_both_ways(node))[:1]:
            if first in self.constants and second in self.gates:
                self.gates[output] = self.gates[second]  # 1 - z
            elif second in self.candidates:
                self.differences[output] = self.views.get(first, set())

    def _product(self, node: Node, output: Value) -> None:
        self.products[output] = node
        for gate, cell in _both_ways(node):
            if gate in self.gates and cell in self.squashed_cells:
                way = Way(Kind.PARTNER, f"goes with the cell of '{node.label}'")
                self.lives[output] = dict.fromkeys(self.gates[gate], way)

    def _cell(self, node: Node, output: Value) -> None:
        """gate * state + gate * tanh(...), as LSTMs and GRUs have it, or gate * (state - tanh(...)) + tanh(...)."""
        for kept, written in _both_ways(node):
            product = self.products.get(kept)
            if product is None or not self._is_candidate(written):
                continue
            for gate, state in _both_ways(product):
                if gate in self.gates:
                    origins = self.views.get(state) or self.differences.get(state, set())
                    self.lives.setdefault(output, {}).update(
                        dict.fromkeys(origins, Way(Kind.STATE, f"goes through the gates of '{node.label}'"))
                    )

    def _is_candidate(self, value: Value) -> bool:
        if value in self.candidates:
            return True
        product = self.products.get(value)
        return product is not None and any(factor in self.candidates for factor in product.inputs)

    def _kept_or_new(self, node: Node, output: Value) -> None:
        """A state that is kept where a step does not count."""
        operands = [value for value in node.inputs[1:] if value is not None]
        for new, old in itertools.permutations(operands, 2):
            kept = self.views.get(old, set())
            later = {origin: way for origin, way in self.lives.get(new, {}).items() if origin in kept}
            if later:
                self.lives[output] = later


def _both_ways(node: Node) -> Iterator[tuple[Value, Value]]:
    """The operands of an op that has two; none for a node that is malformed, which others refuse."""
    operands = [value for value in node.inputs if value is not None]
    if len(operands) == 2:
        yield operands[0], operands[1]
        yield operands[1], operands[0]


def dependents(graph: Graph) -> dict[str, set[str]]:
    """output -> the inputs that it depends on."""
    known: dict[Value, frozenset[str]] = {value: frozenset([value.name]) for value in graph.inputs}
    nothing: frozenset[str] = frozenset()
    for node in graph.nodes:
        if node.op in SIZES:
            continue
        found = nothing.union(*(known.get(value, nothing) for value in node.inputs if value is not None))
        known.update({output: found for output in node.outputs if output is not None})
    return {output.name: set(known.get(output, nothing)) for output in graph.outputs}
