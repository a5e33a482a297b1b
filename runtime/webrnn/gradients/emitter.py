"""Adding ops to a graph and knowing at once what they give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from webrnn.errors import UnsupportedOp
from webrnn.ir import Dim, DType, Graph, GraphBuilder, Node, Shape, Value
from webrnn.shapes.facts import Facts, fact_of_array
from webrnn.shapes.infer import infer_node

Size: TypeAlias = int | Value
"""A number that is known now, or a vector of one int64 that is known while running."""

FLOATS = frozenset({DType.FLOAT, DType.DOUBLE, DType.FLOAT16, DType.BFLOAT16})
"""The types of which there are gradients."""


class Emitter(GraphBuilder):
    """A graph that grows. `facts` says what is known of all its values."""

    def __init__(self, graph: Graph, facts: Facts):
        super().__init__(graph.name)
        self.graph, self.facts = graph, facts
        produced = (value for node in graph.nodes for value in node.outputs if value is not None)
        self._names = {value.name for value in (*graph.inputs, *graph.constants, *produced)}
        self._numbers: dict[tuple[float, DType], Value] = {}

    # ------------------------------------------------------------------------------------------------------- building

    def add(self, node: Node) -> Node:
        self.graph.nodes.append(node)
        infer_node(node, self.facts)
        for value in node.outputs:
            if value is not None:
                fact = self.facts.of(value)
                value.dtype, value.shape = fact.dtype or value.dtype, fact.shape or value.shape
        return node

    def op(self, op: str, *inputs: Value | None, output: Value | None = None, name: str = "", **attrs: Any) -> Value:
        result = output if output is not None else self.value(name or op.lower())
        domain = attrs.pop("domain", "")
        self.add(Node(op, list(inputs), [result], attrs, name, domain))
        return result

    def constant(self, array: Any, name: str = "const", dtype: DType | None = None) -> Value:
        value = super().constant(array, name, dtype)
        self.facts.set(value, fact_of_array(self.graph.constants[value]))
        return value

    def add_node(self, op: str, inputs: Sequence[Value | None], outputs: Sequence[Value], **attrs: Any) -> None:
        """A node of ONNX's own with any number of outputs."""
        self.add(Node(op, list(inputs), list(outputs), attrs))

    def settle(self, node: Node) -> None:
        """Find anew what a node gives that has more outputs now."""
        infer_node(node, self.facts)

    def infer(self) -> None:
        """Find what the nodes give that are there already, from what is known of the inputs."""
        for value, array in self.graph.constants.items():
            self.facts.set(value, fact_of_array(array))
        for node in self.graph.nodes:
            infer_node(node, self.facts)

    def prune(self) -> None:
        """Take away the nodes and constants that no output needs."""
        read: set[Value | None] = set(self.graph.outputs)
        kept = []
        for node in reversed(self.graph.nodes):
            if not read.isdisjoint(value for value in node.outputs if value is not None):
                kept.append(node)
                read.update(node.inputs)
        self.graph.nodes = kept[::-1]
        self.graph.constants = {value: array for value, array in self.graph.constants.items() if value in read}
        self._int_vectors = {key: value for key, value in self._int_vectors.items() if value in self.graph.constants}
        self._numbers = {key: value for key, value in self._numbers.items() if value in self.graph.constants}

    def adopt(self, value: Value, array: np.ndarray) -> None:
        """Make a value that there is already a constant of the graph."""
        self.graph.constants[value] = array
        self.facts.set(value, fact_of_array(array))

    def number(self, number: float, like: Value) -> Value:
        """A scalar of the element type of a value, shared by all that ask for the same."""
        dtype = self.dtype(like)
        if (number, dtype) not in self._numbers:
            if dtype.is_narrow:
                made = self.op("Cast", self.constant(np.float32(number), "number"), to=int(dtype))
            else:
                made = self.constant(np.array(number, dtype.array_type), "number")
            self._numbers[number, dtype] = made
        return self._numbers[number, dtype]

    # -------------------------------------------------------------------------------------------------- what is known

    def dtype(self, value: Value) -> DType:
        dtype = self.facts.dtype(value) or value.dtype
        if dtype is None:
            raise UnsupportedOp(f"the element type of {value.name!r} is not known, a gradient needs it")
        return dtype

    def shape(self, value: Value) -> Shape:
        shape = self.facts.shape(value)
        if shape is None:
            raise UnsupportedOp(f"it is not known how many axes {value.name!r} has, a gradient needs it")
        return shape

    def rank(self, value: Value) -> int:
        return len(self.shape(value))

    def is_static(self, value: Value) -> bool:
        shape = self.facts.shape(value)
        return shape is not None and all(isinstance(size, int) for size in shape)

    def ints_of(self, value: Value | None) -> list[int] | None:
        """The elements of an integer operand that are known now."""
        found = self.facts.of(value).ints
        if found is None and value is not None and value in self.graph.constants:
            array = self.graph.constants[value]
            return [int(element) for element in array.reshape(-1)] if array.dtype.kind in "iu" else None
        return None if found is None else list(found)

    # ---------------------------------------------------------------------------------------------------------- sizes

    def size(self, value: Value, axis: int) -> Size:
        """How long a value is along an axis."""
        shape = self.shape(value)
        axis %= len(shape)
        known = shape[axis]
        return known if isinstance(known, int) else self.op("Shape", value, start=axis, end=axis + 1)

    def as_value(self, size: Size) -> Value:
        return self.ints(size) if isinstance(size, int) else size

    def arithmetic(self, op: str, left: Size, right: Size) -> Size:
        """Add, Sub, Mul, Div, Min or Max of sizes."""
        if isinstance(left, int) and isinstance(right, int):
            return _INTEGERS[op](left, right)
        made = self.op(op, self.as_value(left), self.as_value(right))
        known = self.facts.of(made).ints
        return known[0] if known is not None and len(known) == 1 else made

    def sizes(self, parts: Iterable[Size]) -> Value:
        """A vector of sizes."""
        listed = list(parts)
        if all(isinstance(part, int) for part in listed):
            return self.ints(*(part for part in listed if isinstance(part, int)))
        return self.op("Concat", *(self.as_value(part) for part in listed), axis=0)

    def shape_of(self, value: Value) -> Value:
        shape = self.facts.shape(value)
        if shape is not None and all(isinstance(size, int) for size in shape):
            return self.ints(*(size for size in shape if isinstance(size, int)))
        return self.op("Shape", value)

    # ------------------------------------------------------------------------------------------------------ arithmetic

    def zeros_like(self, value: Value) -> Value:
        zero = self.number(0.0, value)
        return zero if self.facts.shape(value) == () else self.op("Expand", zero, self.shape_of(value))

    def plus(self, left: Value | None, right: Value | None) -> Value | None:
        """A sum in which None is nothing."""
        if left is None or right is None:
            return right if left is None else left
        return self.op("Add", left, right)

    def times(self, left: Value, number: float) -> Value:
        return left if number == 1 else self.op("Mul", left, self.number(number, left))

    def where(self, condition: Value, yes: Value | None, no: Value | None) -> Value:
        """A choice in which None is zero."""
        like = yes if yes is not None else no
        assert like is not None
        zero = self.number(0.0, like)
        return self.op("Where", condition, zero if yes is None else yes, zero if no is None else no)

    def reshaped(self, value: Value, like: Value) -> Value:
        """The same elements in the shape of another value."""
        if self.facts.shape(value) is not None and self.facts.shape(value) == self.facts.shape(like):
            shape = self.shape(value)
            if None not in shape:
                return value
        return self.op("Reshape", value, self.shape_of(like), allowzero=1)

    def transposed(self, value: Value, perm: Sequence[int]) -> Value:
        return value if list(perm) == list(range(len(perm))) else self.op("Transpose", value, perm=list(perm))

    def swapped(self, value: Value) -> Value:
        """A matrix transposed, or each of many."""
        rank = self.rank(value)
        return self.op("Transpose", value, perm=[*range(rank - 2), rank - 1, rank - 2])

    def summed_to(self, value: Value, like: Value) -> Value:
        """The sum over the axes along which `like` was repeated to the shape of `value`."""
        have, want = self.shape(value), self.shape(like)
        if have == want and None not in have:
            return value
        if any(_may_be_repeated(a, b) is None for a, b in _pairs(have, want)):
            return self._summed_while_running(value, like)
        missing = len(have) - len(want)
        repeated = [missing + axis for axis, pair in enumerate(_pairs(have, want)) if _may_be_repeated(*pair)]
        if repeated:
            value = self.op("ReduceSum", value, self.ints(*repeated), keepdims=1)
        if missing:
            value = self.op("ReduceSum", value, self.ints(*range(missing)), keepdims=0)
        return value

    def _summed_while_running(self, value: Value, like: Value) -> Value:
        """Some sizes are known only while running: an axis of one element is summed."""
        missing = self.rank(value) - self.rank(like)
        if missing:
            value = self.op("ReduceSum", value, self.ints(*range(missing)), keepdims=0)
        for axis, pair in enumerate(_pairs(self.shape(value), self.shape(like))):
            if _may_be_repeated(*pair) is False:
                continue
            # One element along the axis: the sum of all. Otherwise the sums of one each.
            have, want = self.size(value, axis), self.size(like, axis)
            count = self.arithmetic("Div", have, self.arithmetic("Max", want, 1))
            sizes = [self.size(value, other) for other in range(self.rank(value))]
            cut = self.op("Reshape", value, self.sizes([*sizes[:axis], count, want, *sizes[axis + 1 :]]), allowzero=1)
            value = self.op("ReduceSum", cut, self.ints(axis), keepdims=0)
        return value

    def sliced(self, value: Value, axis: int, start: Size, end: Size, step: int = 1) -> Value:
        bounds = [self.as_value(start), self.as_value(end), self.ints(axis), self.ints(step)]
        return self.op("Slice", value, *bounds)

    def padded(self, value: Value, axis: int, before: Size, after: Size) -> Value:
        """Zeros around a value, along one axis."""
        if before == 0 and after == 0:
            return value
        return self.op("Pad", value, self.sizes([before, after]), self.number(0.0, value), self.ints(axis))


_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a // b,
    "Min": min,
    "Max": max,
}


def _pairs(have: Shape, want: Shape) -> list[tuple[Dim | None, Dim | None]]:
    return list(zip(have[len(have) - len(want) :], want, strict=True))


def _may_be_repeated(have: Dim | None, want: Dim | None) -> bool | None:
    """Whether an axis was repeated; None is not known."""
    if want is not None and have == want:
        return False
    if want == 1:
        return True
    return None if not isinstance(want, int) else False
