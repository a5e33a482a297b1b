"""What the states of a stream start from: a graph from the inputs of the model, of which it needs the sizes only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from webrnn.ir import Dim, DType, Graph, GraphBuilder, Node, SymbolicDim, Value
from webrnn.shapes.facts import Facts

from .kinds import BreaksTime
from .paces import mentions_strides


@dataclass(frozen=True, slots=True)
class NamedSizes:
    """The input and the axis that say how large a named size is."""

    places: Mapping[str, tuple[Value, int]]

    def input_of(self, name: str) -> tuple[Value, int]:
        if name not in self.places:
            raise BreaksTime(f"no input says how large {name!r} is")
        return self.places[name]


def named_sizes(model: Graph, facts: Facts, time: Mapping[Value, int]) -> NamedSizes:
    found: dict[str, tuple[Value, int]] = {}
    for value in model.inputs:
        for axis, size in enumerate(facts.shape(value) or ()):
            if isinstance(size, SymbolicDim) and time.get(value) != axis:
                found.setdefault(str(size), (value, axis))
    return NamedSizes(found)


def polynomial(dim: SymbolicDim, builder: GraphBuilder, size_of: Callable[[str], Value]) -> Value:
    """A size computed from named ones, int64[1]."""
    total: Value | None = None
    for monomial, factor in dim.terms:
        product: Value | None = None
        for name in monomial:
            product = size_of(name) if product is None else builder.op("Mul", product, size_of(name))
        if product is None:
            product = builder.ints(factor)
        elif factor != 1:
            product = builder.op("Mul", product, builder.ints(factor))
        total = product if total is None else builder.op("Add", total, product)
    assert total is not None
    return total


class Starts:
    """Writes that graph. Of the model it takes what the start of a loop is computed from; sizes that are known come
    from the inputs, so that no frame has to be computed to know them."""

    def __init__(self, model: Graph, facts: Facts, sizes: NamedSizes):
        self._facts, self._sizes = facts, sizes
        self._producers = model.producers()
        self._builder = GraphBuilder(model.name)
        self._constants = model.constants
        self._new: dict[Value, Value] = {
            value: self._builder.input(value.name, value.dtype, value.shape, value.container) for value in model.inputs
        }
        self._by_state: dict[Value, Value] = {}

    def of(self, state: Value, value: Value) -> None:
        """A state that starts from a value of the model."""
        self._by_state[state] = self._read(value)

    def filled(self, state: Value, start: np.ndarray, axis: int, shape: Sequence[Dim | None]) -> None:
        """A state that starts from one number for each place along an axis."""
        numbers = np.expand_dims(start, [place for place in range(len(shape)) if place != axis % len(shape)])
        self._by_state[state] = self._builder.op("Expand", self._builder.constant(numbers, "start"), self._shape(shape))

    def finish(self, states: Sequence[Value]) -> Graph:
        graph = self._builder.graph
        graph.outputs = [self._by_state[state] for state in states]
        return graph

    def _read(self, value: Value) -> Value:
        if value not in self._new:
            self._new[value] = self._computed(value)
        return self._new[value]

    def _computed(self, value: Value) -> Value:
        b, fact = self._builder, self._facts.of(value)
        if value in self._constants:
            return b.constant(self._constants[value], value.name, value.dtype)
        if fact.content and fact.dtype is DType.INT64 and not any(_is_open(size) for size in fact.content):
            sizes = self._shape(fact.content)
            return (
                sizes if fact.shape == (len(fact.content),) else b.op("Reshape", sizes, self._shape(fact.shape or ()))
            )
        node = self._producers[value]
        if node.op == "ExpectShape" and node.inputs[0] is not None:
            return self._read(node.inputs[0])
        inputs = [None if each is None else self._read(each) for each in node.inputs]
        made = [None if each is None else b.value(each.name, each.dtype) for each in node.outputs]
        attrs = {name: item.copy() if isinstance(item, Graph) else item for name, item in node.attrs.items()}
        b.add(Node(node.op, inputs, made, attrs, node.name, node.domain))
        self._new.update((old, new) for old, new in zip(node.outputs, made, strict=True) if old and new)
        return self._new[value]

    def _shape(self, shape: Sequence[Dim | None]) -> Value:
        b = self._builder
        if not shape:
            return b.constant(np.zeros(0, np.int64), "sizes")
        parts = []
        for size in shape:
            if size is None or _is_open(size):
                raise BreaksTime("a size of what is to be kept is not known before it runs")
            parts.append(b.ints(size) if isinstance(size, int) else polynomial(size, b, self._size_of))
        return b.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]

    def _size_of(self, name: str) -> Value:
        value, axis = self._sizes.input_of(name)
        return self._builder.op("Shape", self._new[value], start=axis, end=axis + 1)


def _is_open(size: Dim | None) -> bool:
    return size is None or mentions_strides(size)
