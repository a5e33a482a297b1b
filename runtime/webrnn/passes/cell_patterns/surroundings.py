"""A graph as the patterns look at it, and the graph around it if it is the body of a loop."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from weakref import ref

import numpy as np

from webrnn.ir import Graph, Node, Scan, SequenceSpec, Shape, Value, is_plain
from webrnn.ir.fused import is_linear
from webrnn.shapes.facts import Facts


class NoMatch(Exception):
    """It is not such a cell."""


class Declined(Exception):
    """It is one, but it cannot be fused: the reason."""


@dataclass(frozen=True, slots=True)
class Loop:
    """The Scan that a graph is the body of, and the graph that it stands in."""

    graph: Graph
    node: Node


class Surroundings:
    """One graph. It is made anew after each change."""

    def __init__(self, graph: Graph, facts: Facts, loop: Loop | None = None, inside: Surroundings | None = None):
        self.graph, self.facts, self.loop = graph, facts, loop
        self._inside = ref(inside) if inside is not None else lambda: None
        """Weak, because that one has this one: graphs go when nobody has them, not when cycles are looked for."""
        self.producers, self.consumers = graph.producers(), graph.consumers()
        self.outputs = set(graph.outputs)

    @property
    def inside(self) -> Surroundings | None:
        return self._inside()

    @cached_property
    def outside(self) -> Surroundings | None:
        return None if self.loop is None else Surroundings(self.loop.graph, self.facts, inside=self)

    @cached_property
    def scan(self) -> Scan | None:
        return None if self.loop is None else Scan.of(self.loop.node)

    @cached_property
    def handed_in(self) -> dict[Value, tuple[Value, SequenceSpec | None]]:
        """For each sequence element and invariant what it is outside, and as which sequence it comes in."""
        if self.scan is None:
            return {}
        invariants = {item.inner: (item.outer, None) for item in self.scan.invariants}
        return {**invariants, **{item.element: (item.whole, item.spec) for item in self.scan.sequences}}

    @cached_property
    def states(self) -> set[Value]:
        return set() if self.scan is None else {value for state in self.scan.states for value in state.body_in}

    def node(self, value: Value | None, *ops: str) -> Node | None:
        """The node that makes a value, if it is one of these ops of ONNX."""
        found = self.producers.get(value) if value is not None else None
        return found if found is not None and is_plain(found, *ops) else None

    def linear(self, value: Value) -> Node | None:
        found = self.producers.get(value)
        return found if found is not None and is_linear(found) else None

    def constant(self, value: Value | None) -> np.ndarray | None:
        return None if value is None else self.graph.constants.get(value)

    def shape(self, value: Value | None) -> Shape | None:
        return self.facts.shape(value)

    def width(self, value: Value | None) -> int | None:
        """The size of the last axis, if it is a known number."""
        shape = self.shape(value)
        size = shape[-1] if shape else None
        return size if isinstance(size, int) else None

    def is_read_by(self, value: Value, nodes: Collection[Node]) -> bool:
        """Whether these nodes alone read a value, be it in parts or, handed in, in the body of a loop."""
        if value in self.outputs:
            return False
        return all(self._is_way_to(reader, value, nodes) for reader in self.consumers.get(value, ()))

    def _is_way_to(self, reader: Node, value: Value, nodes: Collection[Node]) -> bool:
        if any(reader is node for node in nodes):
            return True
        if is_plain(reader, "Split", "Slice"):
            return all(self.is_read_by(part, nodes) for part in reader.outputs if part is not None)
        inside = self.inside
        if inside is None or inside.loop is None or reader is not inside.loop.node:
            return False
        scan = Scan.of(reader)
        if value in (scan.n_steps, scan.cond, *(state.init for state in scan.states)):
            return False
        handed_in = inside.handed_in.items()
        return all(inside.is_read_by(inner, nodes) for inner, (outer, _) in handed_in if outer is value)


def orders(node: Node | None) -> Iterator[tuple[Value, Value]]:
    """Both orders of the two operands of an op that commutes; nothing where there is no node."""
    if node is not None and len(node.inputs) == 2:
        first, second = node.inputs
        if first is not None and second is not None:
            yield first, second
            yield second, first


def complement(view: Surroundings, value: Value, of: Value) -> list[Node] | None:
    """The nodes that make a value if it is 1 - `of`, or -`of` + 1, which TorchScript writes for it."""
    difference, total = view.node(value, "Sub"), view.node(value, "Add")
    if difference is not None and difference.inputs[1] is of and _are_ones(view, difference.inputs[0]):
        return [difference] if view.shape(value) == view.shape(of) else None
    for one, negative in orders(total):
        negated = view.node(negative, "Neg")
        if total is not None and negated is not None and negated.inputs[0] is of and _are_ones(view, one):
            return [total, negated] if view.shape(value) == view.shape(of) else None
    return None


def _are_ones(view: Surroundings, value: Value | None) -> bool:
    array = view.constant(value)
    return array is not None and array.dtype == np.float32 and array.ndim <= 2 and bool(np.all(array == 1))
