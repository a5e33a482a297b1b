"""The nodes that stand for one node, with what is known of their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from webrnn.ir import Dim, DType, Graph, Node, Shape, Value
from webrnn.shapes.infer import infer_node

from ..base import Context
from ..rewriting import Additions, constant_of


class Declined(Exception):
    """Why a node stays as it is; without a reason if it should."""


class Emitter:
    def __init__(self, graph: Graph, node: Node, context: Context, new: Additions):
        self._graph, self._node, self._facts, self._new = graph, node, context.facts, new
        self._hint = node.name or next((value.name for value in node.outputs if value is not None), node.op)
        self.nodes: list[Node] = []

    def op(self, op: str, *inputs: Value | None, output: Value | None = None, **attrs: Any) -> Value:
        """Add a node with one output and return that."""
        made = output if output is not None else self._new.value(f"{self._hint}_{op.lower()}")
        self.add(Node(op, list(inputs), [made], attrs, self._node.label))
        return made

    def add(self, node: Node) -> None:
        self.nodes.append(node)
        infer_node(node, self._facts)

    def constant(self, array: np.ndarray | np.generic, hint: str = "constant") -> Value:
        return self._new.constant(np.asarray(array), f"{self._hint}_{hint}")

    def ints(self, *numbers: int) -> Value:
        return self._new.ints(*numbers)

    def number(self, number: float, dtype: DType) -> Value:
        """A scalar of a floating-point type."""
        scalar = self.constant(np.float32(number))
        return scalar if dtype is DType.FLOAT else self.cast(scalar, dtype)

    def cast(self, value: Value, dtype: DType) -> Value:
        return value if self.dtype(value) is dtype else self.op("Cast", value, to=int(dtype))

    def array(self, value: Value | None) -> np.ndarray | None:
        return constant_of(self._graph, value)

    def dtype(self, value: Value) -> DType:
        dtype = self._facts.dtype(value)
        if dtype is None:
            raise Declined("a type is not known")
        return dtype

    def shape(self, value: Value) -> Shape:
        shape = self._facts.shape(value)
        if shape is None:
            raise Declined("a rank is not known")
        return shape

    def size(self, value: Value, axis: int) -> int:
        size = self.shape(value)[axis]
        if not isinstance(size, int):
            raise Declined("a size is not known")
        return size

    def sizes(self, *parts: int | tuple[Value, int]) -> Value:
        """A shape, of numbers and of the sizes that values have along an axis."""
        known = [part if isinstance(part, int) else self.shape(part[0])[part[1]] for part in parts]
        numbers = [size for size in known if isinstance(size, int)]
        if len(numbers) == len(known):
            return self.ints(*numbers)
        return self.op("Concat", *(self._size(part, size) for part, size in zip(parts, known, strict=True)), axis=0)

    def _size(self, part: int | tuple[Value, int], size: Dim | None) -> Value:
        if isinstance(size, int) or isinstance(part, int):
            return self.ints(size if isinstance(size, int) else part)  # type: ignore[arg-type]
        value, axis = part
        axis %= len(self.shape(value))
        return self.op("Shape", value, start=axis, end=axis + 1)

    def scalar_size(self, value: Value, axis: int) -> Value:
        """The size along an axis, as a scalar."""
        size = self.shape(value)[axis]
        if isinstance(size, int):
            return self.constant(np.int64(size))
        return self.op("Squeeze", self.sizes((value, axis)), self.ints(0))


Expansion: TypeAlias = Callable[[Emitter, Node], None]
"""Emits what stands for a node, whose outputs these nodes make, or raises Declined."""
