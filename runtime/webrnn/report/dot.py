"""A graph in graphviz's language, with the graphs inside nodes as clusters: `dot -Tsvg`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from webrnn.ir import Graph, Node, Scan, Value, is_scan
from webrnn.ir.text import typed


def to_dot(graph: Graph) -> str:
    """
    >>> from webrnn.ir import DType, GraphBuilder
    >>> b = GraphBuilder("double")
    >>> x = b.input("x", DType.FLOAT, (3,))
    >>> b.graph.outputs.append(b.op("Add", x, x))
    >>> print(to_dot(b.graph))
    digraph "double" {
      node [shape=box, fontname="sans-serif"];
      n0 [label="x: float[3]", shape=ellipse];
      n1 [label="Add"];
      n2 [label="add", shape=ellipse];
      n0 -> n1 [label="x: float[3]"];
      n0 -> n1 [label="x: float[3]"];
      n1 -> n2 [label="add"];
    }
    """
    lines = ["  " + line for line in _Writer().graph_lines(graph)]
    head = [f"digraph {_quoted(graph.name)} {{", '  node [shape=box, fontname="sans-serif"];']
    return "\n".join([*head, *lines, "}"])


class _Writer:
    def __init__(self) -> None:
        self._ids = (f"n{number}" for number in count())
        self._source: dict[Value, str] = {}
        """The dot node that each value comes from; constants have none, so that weights do not crowd the picture."""

    def graph_lines(self, graph: Graph) -> Iterator[str]:
        edges: list[str] = []
        for value in graph.inputs:
            yield f"{self._define(value)} [label={_quoted(typed(value))}, shape=ellipse];"
        for node in graph.nodes:
            yield from self._node_lines(node, edges)
        for value in graph.outputs:
            name = next(self._ids)
            yield f"{name} [label={_quoted(value.name)}, shape=ellipse];"
            self._connect(value, name, edges)
        yield from edges

    def _define(self, value: Value) -> str:
        name = self._source[value] = next(self._ids)
        return name

    def _connect(self, value: Value, target: str, edges: list[str], style: str = "") -> None:
        if value in self._source:
            edges.append(f"{self._source[value]} -> {target} [label={_quoted(typed(value))}{style}];")

    def _node_lines(self, node: Node, edges: list[str]) -> Iterator[str]:
        name = next(self._ids)
        yield f"{name} [label={_quoted(_title(node))}];"
        for value in node.inputs:
            if value is not None:
                self._connect(value, name, edges)
        for label, inner in node.subgraphs:
            yield f"subgraph cluster_{next(self._ids)} {{"
            yield f"  label={_quoted(f'{label} of {node.label}')}; style=rounded;"
            for line in self.graph_lines(inner):
                yield f"  {line}"
            yield "}"
            if inner.nodes or inner.inputs:
                first = self._source.get(next(iter(inner.inputs), Value("")))
                if first is not None:
                    edges.append(f"{name} -> {first} [style=dotted];")
        if is_scan(node):
            for state in Scan.of(node).states:
                for before in state.body_in:
                    self._connect(state.body_out, self._source[before], edges, ", style=dashed, constraint=false")
        for value in node.outputs:
            if value is not None:
                self._source[value] = name


def _title(node: Node) -> str:
    op = f"{node.domain}.{node.op}" if node.domain else node.op
    return f"{op}\n{node.name}" if node.name else op


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
