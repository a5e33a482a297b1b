"""What passes share: replacing values, naming new ones, putting a graph in the place of a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from webrnn.checks.graphs import is_allowed
from webrnn.ir import DType, Graph, Node, Scan, Value
from webrnn.ir.order import stable_order
from webrnn.ops.sets import FLOATS, TOTAL
from webrnn.shapes.facts import Facts, fact_of_array

from .base import Context


class Replacements:
    """Values of a graph that are to be read in the place of others, collected by a pass and then applied at once.

    Where a value that is replaced is an output of the outermost graph, its replacement takes over its name.
    """

    def __init__(self, graph: Graph, context: Context):
        self._graph = graph
        self._by_old: dict[Value, Value] = {}
        self._named: set[Value] = {*graph.inputs, *graph.outputs} if graph is context.root else set()
        self._outputs: set[Value] = set(graph.outputs) if graph is context.root else set()

    def allows(self, old: Value, new: Value) -> bool:
        """Whether readers of `old` can read `new`: not if a caller would lose one of two names."""
        return old not in self._outputs or self.end(new) not in self._named

    def add(self, old: Value, new: Value) -> None:
        new = self.end(new)
        self._by_old[old] = new
        if old in self._outputs:
            new.name = old.name
            self._named.add(new)

    def end(self, value: Value) -> Value:
        while value in self._by_old:
            value = self._by_old[value]
        return value

    def update(self, node: Node) -> None:
        """Let a node read the replacements that are known so far."""
        if self._by_old:
            node.inputs = [None if value is None else self.end(value) for value in node.inputs]

    def apply(self) -> None:
        if self._by_old:
            self._graph.replace_uses({old: self.end(old) for old in self._by_old})


def drop_nodes(graph: Graph, dropped: Iterable[Node]) -> None:
    gone = set(map(id, dropped))
    if gone:
        graph.nodes = [node for node in graph.nodes if id(node) not in gone]


class Names:
    """Names that no value of a graph has yet."""

    def __init__(self, graph: Graph):
        produced = (value for node in graph.nodes for value in node.outputs if value is not None)
        self._taken = {value.name for value in (*graph.inputs, *graph.constants, *produced)}

    def fresh(self, hint: str) -> str:
        name, suffix = hint, 1
        while name in self._taken:
            name, suffix = f"{hint}_{suffix}", suffix + 1
        self._taken.add(name)
        return name


def new_constant(graph: Graph, array: np.ndarray, name: str, context: Context) -> Value:
    """Add a constant to a graph."""
    value = Value(name, DType.of(array), array.shape)
    graph.constants[value] = array
    context.facts.set(value, fact_of_array(array))
    return value


class Additions:
    """Values and constants that a rewrite adds to a graph. Some of them are made for rewrites that are then declined:
    `drop_unused` takes back the constants that no new node reads.
    """

    def __init__(self, graph: Graph, context: Context):
        self._graph, self._context, self._names = graph, context, Names(graph)
        self._constants: list[Value] = []

    def value(self, hint: str) -> Value:
        return Value(self._names.fresh(hint))

    def constant(self, array: np.ndarray, hint: str) -> Value:
        constant = new_constant(self._graph, array, self._names.fresh(hint), self._context)
        self._constants.append(constant)
        return constant

    def ints(self, *numbers: int) -> Value:
        return self.constant(np.array(numbers, np.int64), "ints")

    def drop_unused(self, nodes: Iterable[Node]) -> None:
        read = {value for node in nodes for value in node.inputs}
        for value in self._constants:
            if value not in read:
                del self._graph.constants[value]
        self._constants.clear()


def steps_to_front(axis: int, rank: int) -> list[int]:
    """The order of axes that brings `axis` of `rank` to the front.

    >>> steps_to_front(-1, 3), steps_from_front(-1, 3)
    ([2, 0, 1], [1, 2, 0])
    """
    axis %= rank
    return [axis, *(other for other in range(rank) if other != axis)]


def steps_from_front(axis: int, rank: int) -> list[int]:
    """The order of axes that brings the first one to `axis` of `rank`."""
    axis %= rank
    return [*range(1, axis + 1), 0, *range(axis + 1, rank)]


def inline(inner: Graph, arguments: Sequence[Value], names: Names) -> tuple[list[Node], dict[Value, np.ndarray]]:
    """The nodes and constants of a graph with its inputs replaced; `inner` must not be used afterwards."""
    inner.replace_uses(dict(zip(inner.inputs, arguments, strict=True)))
    for value in (*inner.constants, *(v for node in inner.nodes for v in node.outputs if v is not None)):
        value.name = names.fresh(value.name)
    return inner.nodes, inner.constants


def constant_of(graph: Graph, value: Value | None) -> np.ndarray | None:
    return None if value is None else graph.constants.get(value)


def ints_of(graph: Graph, context: Context, value: Value | None) -> list[int] | None:
    """The elements of an integer operand that are known before the graph runs."""
    found = context.facts.of(value).ints
    if found is None and value is not None and value in graph.constants:
        array = graph.constants[value]
        return [int(element) for element in array.reshape(-1)] if array.dtype.kind in "iu" else None
    return None if found is None else list(found)


def replace_in_body(scan: Scan, replacements: Mapping[Value, Value]) -> None:
    """Let all readers in the body of a Scan read other values, the Scan's states and traces included."""
    scan.body.replace_uses(replacements)
    for state in scan.states:
        state.body_out = replacements.get(state.body_out, state.body_out)
    for trace in scan.traces:
        trace.element = replacements.get(trace.element, trace.element)
    if scan.body_cond is not None:
        scan.body_cond = replacements.get(scan.body_cond, scan.body_cond)


def in_order(nodes: Sequence[Node]) -> list[Node] | None:
    """The same nodes, each behind those it reads from and otherwise as they were; None where they read in a circle."""
    producer: dict[Value, int] = {}
    for index, node in enumerate(nodes):
        producer.update((value, index) for value in node.outputs if value is not None)
    needs = [{producer[value] for value in node.inputs if value in producer} for node in nodes]
    order = stable_order(needs)
    return [nodes[index] for index in order] if len(order) == len(nodes) else None


def is_total(node: Node, facts: Facts) -> bool:
    """Whether it cannot fail: its operands are known to fit, whatever sizes and elements they have."""
    if node.domain or node.op not in TOTAL:
        return False
    divides = node.op == "Div" and facts.dtype(node.inputs[0]) not in FLOATS
    return not divides and facts.dtype(node.inputs[0]) is not DType.STRING and is_allowed(node, facts)
