"""Building graphs node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .dims import Shape
from .dtypes import DType
from .graph import Graph, Node, Value


class GraphBuilder:
    """A graph under construction, with names that are unique in it.

    >>> b = GraphBuilder("double")
    >>> x = b.input("x", DType.FLOAT, (3,))
    >>> b.graph.outputs.append(b.op("Add", x, x))
    >>> [node.op for node in b.graph.nodes]
    ['Add']

    With a parent it builds a sub-graph: `capture` makes a value of the parent usable inside.
    """

    def __init__(self, name: str, parent: GraphBuilder | None = None):
        self.graph = Graph(name)
        self.parent = parent
        self.captures: dict[Value, Value] = {}
        """Values of the parent that the graph takes, and the value that stands for each inside."""
        self._names: set[str] = set()
        self._next_suffix: dict[str, int] = {}
        self._int_vectors: dict[tuple[int, ...], Value] = {}

    def unique_name(self, hint: str) -> str:
        if hint and hint not in self._names:
            self._names.add(hint)
            return hint
        suffix = self._next_suffix.get(hint, 1)
        while f"{hint}_{suffix}" in self._names:
            suffix += 1
        self._next_suffix[hint] = suffix + 1
        name = f"{hint}_{suffix}"
        self._names.add(name)
        return name

    def value(
        self,
        name: str,
        dtype: DType | None = None,
        shape: Shape | None = None,
        container: tuple[str, ...] = (),
    ) -> Value:
        """A value with a unique name that is not connected to anything yet."""
        return Value(self.unique_name(name), dtype, shape, container)

    def input(
        self,
        name: str,
        dtype: DType | None = None,
        shape: Shape | None = None,
        container: tuple[str, ...] = (),
    ) -> Value:
        value = self.value(name, dtype, shape, container)
        self.graph.inputs.append(value)
        return value

    def constant(self, array: Any, name: str = "const", dtype: DType | None = None) -> Value:
        """A constant. Python's integers are int64, also where numpy's are not."""
        if isinstance(array, int) and not isinstance(array, bool):
            array = np.int64(array)
        array = np.asarray(array)
        value = Value(self.unique_name(name), dtype or DType.of(array), array.shape)
        self.graph.constants[value] = array
        return value

    def ints(self, *numbers: int) -> Value:
        """A constant vector of int64, shared by all that ask for the same."""
        if numbers not in self._int_vectors:
            self._int_vectors[numbers] = self.constant(np.array(numbers, np.int64), "ints")
        return self._int_vectors[numbers]

    def array_of(self, value: Value | None) -> np.ndarray | None:
        """The array of a constant, None for anything else."""
        return None if value is None else self.graph.constants.get(value)

    def capture(self, outer: Value) -> Value:
        """What stands inside for a value of the parent: a constant again if it is one there, or else a new input."""
        if outer not in self.captures:
            array = self.parent.array_of(outer) if self.parent is not None else None
            if array is not None:
                self.captures[outer] = self.constant(array, outer.name, outer.dtype)
            else:
                self.captures[outer] = outer.like(self.unique_name(outer.name))
        return self.captures[outer]

    def captured_inputs(self) -> list[tuple[Value, Value]]:
        """The captures that have to be handed in, in order of first use."""
        return [(outer, inner) for outer, inner in self.captures.items() if inner not in self.graph.constants]

    def add(self, node: Node) -> Node:
        self.graph.nodes.append(node)
        return node

    def op(self, op: str, *inputs: Value | None, output: Value | None = None, name: str = "", **attrs: Any) -> Value:
        """Add a node with one output and return that."""
        result = output if output is not None else self.value(name or op.lower())
        self.graph.nodes.append(Node(op, list(inputs), [result], attrs, name))
        return result

    def inline(self, graph: Graph, *arguments: Value) -> list[Value]:
        """What another graph gives for these arguments; its nodes and constants become part of this one.

        >>> inner = GraphBuilder("double")
        >>> x = inner.input("x", DType.FLOAT, (3,))
        >>> inner.graph.outputs.append(inner.op("Add", x, x))
        >>> b = GraphBuilder("quadruple")
        >>> (twice,) = b.inline(inner.graph, b.input("x", DType.FLOAT, (3,)))
        >>> b.graph.outputs = b.inline(inner.graph, twice)
        >>> [str(node.label) for node in b.graph.nodes]
        ['-> add', '-> add_1']
        """
        inner = graph.copy()
        for value in (*inner.constants, *(v for node in inner.nodes for v in node.outputs if v is not None)):
            value.name = self.unique_name(value.name)
        inner.replace_uses(dict(zip(inner.inputs, arguments, strict=True)))
        self.graph.nodes.extend(inner.nodes)
        self.graph.constants.update(inner.constants)
        return inner.outputs

    def split(self, value: Value, names: Sequence[str], axis: int = -1) -> list[Value]:
        """Cut a value into equal parts."""
        parts: list[Value | None] = [self.value(name) for name in names]
        self.add(Node("Split", [value], parts, {"axis": axis, "num_outputs": len(parts)}))
        return [part for part in parts if part is not None]
