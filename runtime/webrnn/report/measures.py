"""A graph in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webrnn.ir import Graph, is_plain, is_scan
from webrnn.shapes.facts import Facts
from webrnn.shapes.infer import infer

from .memory import Peak, peak_memory
from .work import Work, work_of


@dataclass(frozen=True, slots=True)
class Measures:
    """What a graph has, and what one run of it costs."""

    outside: Work
    """Of the nodes that run once."""
    inside: Work
    """Of the nodes in loops: FLOPs of all steps, ops as they stand in the graph."""
    loops: int
    ifs: int
    constant_bytes: int
    peak: Peak | None = None
    """The most memory that activations take at one time, if that was asked for."""

    @property
    def nodes(self) -> int:
        return self.outside.nodes + self.inside.nodes

    @property
    def ops(self) -> dict[str, int]:
        """How many nodes of each op there are, inside and outside loops together."""
        return dict(self.outside.ops + self.inside.ops)


def measure(
    graph: Graph, *, memory: bool = False, sizes: Mapping[str, int] | None = None, facts: Facts | None = None
) -> Measures:
    """Measure a graph. `sizes` gives numbers for named sizes, costs are polynomials of those that it lacks.

    >>> from webrnn.ir import DType, GraphBuilder, Symbol
    >>> b = GraphBuilder("g")
    >>> x = b.input("x", DType.FLOAT, (Symbol("n"), 3))
    >>> b.graph.outputs.append(b.op("Tanh", b.op("MatMul", x, b.constant([[1.0] * 4] * 3))))
    >>> found = measure(b.graph)
    >>> found.outside.flops, found.constant_bytes
    (28*n, 96)
    """
    facts = facts if facts is not None else infer(graph)
    places = work_of(graph, facts)
    nodes = [node for inner in graph.walk() for node in inner.nodes]
    arrays = {id(array): array.nbytes for inner in graph.walk() for array in inner.constants.values()}
    return Measures(
        outside=places.outside.substitute(sizes or {}),
        inside=places.inside.substitute(sizes or {}),
        loops=sum(map(is_scan, nodes)),
        ifs=sum(is_plain(node, "If") for node in nodes),
        constant_bytes=sum(arrays.values()),
        peak=peak_memory(graph, facts, sizes) if memory else None,
    )
