"""The graph that everything between the reader and the plan works on.

A `Graph` is a pure function of its inputs. That holds for sub-graphs too: what the body of a loop or the branch of an
`If` uses from outside is one of its inputs, so a graph can be run, checked, rewritten or moved on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .dims import Shape
from .dtypes import DType

WEBRNN = "webrnn"
"""The domain of the ops that ONNX does not have."""

REFUSED = "webrnn.refused"
"""The domain of nodes that are not allowed (`webrnn.checks`) and may never run, in the branch of an If. Their attribute
`error` is what is raised when they do."""


class Value:
    """One result: produced by one node, or an input or a constant of one graph. Values are compared by identity.

    `dtype` and `shape` are what is known of it before it runs. `container` is empty for a tensor and otherwise names
    the types around it, outermost first: ("optional", "seq").
    """

    __slots__ = ("container", "dtype", "name", "shape")

    def __init__(
        self,
        name: str,
        dtype: DType | None = None,
        shape: Shape | None = None,
        container: tuple[str, ...] = (),
    ):
        self.name, self.dtype, self.shape, self.container = name, dtype, shape, container

    def like(self, name: str) -> Value:
        """A new value of the same type."""
        return Value(name, self.dtype, self.shape, self.container)

    def __repr__(self) -> str:
        return f"<Value {self.name}>"


@dataclass(eq=False, slots=True)
class Node:
    """One application of an op. None is an input that is left out or an output that nobody asked for.

    Sub-graphs are attributes: `body` of a Scan, `then_branch` and `else_branch` of an If.
    """

    op: str
    inputs: list[Value | None]
    outputs: list[Value | None]
    attrs: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    domain: str = ""

    @property
    def label(self) -> str:
        """What an error message calls it: its name, or else its first output."""
        return self.name or next((f"-> {value.name}" for value in self.outputs if value is not None), self.op)

    @property
    def subgraphs(self) -> Iterator[tuple[str, Graph]]:
        return ((name, value) for name, value in self.attrs.items() if isinstance(value, Graph))

    def __repr__(self) -> str:
        return f"<Node {self.op} {self.label}>"


@dataclass(eq=False, slots=True)
class Graph:
    """A function: `inputs` to `outputs` by `nodes`, which are in an order in which they can run."""

    name: str
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    constants: dict[Value, np.ndarray] = field(default_factory=dict)

    def producers(self) -> dict[Value, Node]:
        """The node that makes each value."""
        return {value: node for node in self.nodes for value in node.outputs if value is not None}

    def consumers(self) -> dict[Value, list[Node]]:
        """The nodes that read each value that some node reads, one entry per use."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in node.inputs:
                if value is not None:
                    found.setdefault(value, []).append(node)
        return found

    def replace_uses(self, replacements: Mapping[Value, Value]) -> None:
        """Let every reader of a key read its value instead, graph outputs included."""
        for node in self.nodes:
            node.inputs = [value if value is None else replacements.get(value, value) for value in node.inputs]
        self.outputs = [replacements.get(value, value) for value in self.outputs]

    def drop_unused_constants(self) -> None:
        """Forget the constants that no node reads and that are no output, here and in all graphs inside."""
        for graph in self.walk():
            if not graph.constants:
                continue
            read: set[Value | None] = set(graph.outputs)
            for node in graph.nodes:
                read.update(node.inputs)
            graph.constants = {value: array for value, array in graph.constants.items() if value in read}

    def walk(self) -> Iterator[Graph]:
        """This graph and all graphs inside it, outer ones first."""
        pending = [self]
        while pending:
            graph = pending.pop()
            yield graph
            pending.extend(
                item for node in reversed(graph.nodes) for item in node.attrs.values() if isinstance(item, Graph)
            )

    def copy(self) -> Graph:
        """A deep copy with values of its own; constant arrays are shared."""
        values: dict[Value, Value] = {}

        def renew(value: Value) -> Value:
            if value not in values:
                values[value] = value.like(value.name)
            return values[value]

        inputs = [renew(value) for value in self.inputs]
        constants = {renew(value): array for value, array in self.constants.items()}
        nodes = [
            Node(
                node.op,
                [value if value is None else renew(value) for value in node.inputs],
                [value if value is None else renew(value) for value in node.outputs],
                {name: item.copy() if isinstance(item, Graph) else item for name, item in node.attrs.items()},
                node.name,
                node.domain,
            )
            for node in self.nodes
        ]
        return Graph(self.name, inputs, [renew(value) for value in self.outputs], nodes, constants)


def is_plain(node: Node, *ops: str) -> bool:
    """Whether it is one of these ops of ONNX's own domain."""
    return not node.domain and node.op in ops
