"""What is known of values before a graph runs.

A fact follows from the types of the graph's inputs, from constants and from what ops do. What a model merely declares
about its inner values and outputs is not one: declarations are sometimes wrong, and a rewrite must never be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from webrnn.ir import Dim, DType, Graph, Shape, Symbol, SymbolicDim, Value

CONTENT_LIMIT = 64
"""Tensors with more elements than this are not followed element by element."""

FLOATS_LIMIT = 8
"""Constants of floating-point numbers with more elements than this are not looked at."""

FOLLOWED = frozenset(
    {DType.BOOL, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.UINT16, DType.UINT32}
)
"""The types of tensors whose elements are followed: those that shapes, axes and conditions are computed in."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Type and shape of a tensor, and of a small integer or bool tensor also its elements, in row-major order.

    None is unknown, also as an axis of the shape or as one of the elements. Elements can be symbolic sizes. Where they
    are known the shape is static.
    """

    dtype: DType | None = None
    shape: Shape | None = None
    content: tuple[Dim | None, ...] | None = None
    floats: tuple[float, ...] | None = None
    """The elements of a small constant of floating-point numbers, which may be factors of sizes."""
    elements: Fact | None = field(default=None, repr=False)
    """Of a sequence, which has no type and no shape: what holds for each of its elements."""
    is_nothing: bool = field(default=False, repr=False)
    """There is no such value, such as an element of an empty sequence: whatever reads it never runs."""

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def ints(self) -> tuple[int, ...] | None:
        """The elements if all of them are numbers."""
        if self.content is None:
            return None
        numbers = tuple(element for element in self.content if isinstance(element, int))
        return numbers if len(numbers) == len(self.content) else None

    @property
    def array(self) -> np.ndarray | None:
        """The tensor, if all of its elements are numbers."""
        numbers = self.ints
        if numbers is None or self.dtype is None or self.shape is None:
            return None
        return np.array(numbers, self.dtype.array_type).reshape([size for size in self.shape if isinstance(size, int)])


UNKNOWN = Fact()
NOTHING = Fact(is_nothing=True)


def fact_of_array(array: np.ndarray) -> Fact:
    """
    >>> fact_of_array(np.array([2, 3]))
    Fact(dtype=<DType.INT64: 7>, shape=(2,), content=(2, 3), floats=None)
    """
    dtype = DType.of(array)
    if array.size <= FLOATS_LIMIT and array.dtype.kind == "f":
        return Fact(dtype, array.shape, floats=tuple(float(element) for element in array.reshape(-1)))
    followed = dtype in FOLLOWED and array.size <= CONTENT_LIMIT
    content = tuple(int(element) for element in array.reshape(-1)) if followed else None
    return Fact(dtype, array.shape, content)


def facts_of_inputs(values: Sequence[Value]) -> list[Fact]:
    """What the outermost graph may rely on for the inputs that its caller feeds: what they declare. A size that an
    input leaves open is one number in a run, so it has a name of its own.

    >>> [fact.shape for fact in facts_of_inputs([Value("x", DType.FLOAT, (None, 3))])]
    [(x.0, 3)]
    """
    declared = {name for value in values for size in value.shape or () for name in _names(size)}
    return [_fact_of_input(value, declared) for value in values]


def _fact_of_input(value: Value, declared: set[str]) -> Fact:
    if value.container:
        return Fact(elements=Fact(value.dtype)) if value.container == ("seq",) else UNKNOWN
    shape = _named_shape(value, declared)
    is_empty = value.dtype in FOLLOWED and shape is not None and 0 in shape
    return Fact(value.dtype, shape, () if is_empty and all(isinstance(size, int) for size in shape or ()) else None)


def _names(size: Dim | None) -> frozenset[str]:
    return size.names if isinstance(size, SymbolicDim) else frozenset()


def _named_shape(value: Value, declared: set[str]) -> Shape | None:
    if value.shape is None:
        return None
    sizes = []
    for axis, size in enumerate(value.shape):
        name = f"{value.name}.{axis}"
        while size is None and name in declared:
            name += "_"
        sizes.append(Symbol(name) if size is None else size)
    return tuple(sizes)


def join(first: Fact, second: Fact) -> Fact:
    """What holds for a value that is described by one of two facts.

    >>> join(Fact(DType.FLOAT, (2, 3)), Fact(DType.FLOAT, (2, 4))).shape
    (2, None)
    """
    if first == second or second.is_nothing:
        return first
    if first.is_nothing:
        return second
    if first.elements is not None and second.elements is not None:
        return Fact(elements=join(first.elements, second.elements))
    shape: Shape | None = None
    if first.shape is not None and second.shape is not None and len(first.shape) == len(second.shape):
        shape = tuple(a if a == b else None for a, b in zip(first.shape, second.shape, strict=True))
    content = None
    if first.content is not None and second.content is not None and first.shape == second.shape:
        content = tuple(a if a == b else None for a, b in zip(first.content, second.content, strict=True))
    return Fact(first.dtype if first.dtype == second.dtype else None, shape, content)


def size_of(shape: Shape | None) -> Dim | None:
    """The number of elements, if it is known.

    >>> size_of((2, 3)), size_of((2, None)), size_of((0, None))
    (6, None, 0)
    """
    if shape is None:
        return None
    if 0 in shape:
        return 0
    known = [size for size in shape if size is not None]
    return prod(known) if len(known) == len(shape) else None


class Facts:
    """The facts of all values of a graph and of the graphs inside it. They stay true through every pass, because a
    pass may drop a value or replace its readers, but never changes what a value is.
    """

    def __init__(self) -> None:
        self._facts: dict[Value, Fact] = {}

    def of(self, value: Value | None) -> Fact:
        """What is known of a value; a missing operand and a value that was never looked at are unknown."""
        return UNKNOWN if value is None else self._facts.get(value, UNKNOWN)

    def set(self, value: Value, fact: Fact) -> bool:
        """Record a fact; whether it is news."""
        if self._facts.get(value) == fact:
            return False
        self._facts[value] = fact
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facts) and self._facts == other._facts

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> Facts:
        """The same facts, to try out an assumption on."""
        other = Facts()
        other._facts = dict(self._facts)
        return other

    def shape(self, value: Value | None) -> Shape | None:
        return self.of(value).shape

    def dtype(self, value: Value | None) -> DType | None:
        return self.of(value).dtype

    def annotate(self, graph: Graph) -> None:
        """Write what is known to the values of a graph, which keep what they declare where nothing is known."""
        for inner in graph.walk():
            produced = (value for node in inner.nodes for value in node.outputs if value is not None)
            for value in (*inner.inputs, *produced):
                fact = self.of(value)
                if not value.container and fact.dtype is not None:
                    value.dtype = fact.dtype
                if not value.container and fact.shape is not None:
                    value.shape = _refined(value.shape, fact.shape)


def _refined(declared: Shape | None, known: Shape) -> Shape:
    if declared is None or len(declared) != len(known):
        return known
    return tuple(a if b is None else b for a, b in zip(declared, known, strict=True))
