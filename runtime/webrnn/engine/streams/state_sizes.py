"""How large states are at the start, where the inputs of the first step do not say it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from webrnn.errors import PlanError, ShapeError
from webrnn.ir import Dim, Graph, Symbol, SymbolicDim
from webrnn.ir.dims import LateName, Shape, TooComplex
from webrnn.plan.file import LATE, NUMBER, PRODUCT, SYMBOL, PlanFile, evaluated
from webrnn.shapes.infer import infer

MOST_LETTERS = 10_000_000
"""Of all sums, products and quotients in a table of sizes, written out; those of models have some thousands."""

MOST_ELEMENTS = 2**28
"""Of a state: no buffer of a plan has 2 GB."""


class StateSizes:
    """The shapes of the inputs and outputs of a model, all open sizes with names."""

    def __init__(
        self, names: Sequence[str], inputs: Sequence[Shape | None], outputs: Sequence[Shape | None],
        pairs: Sequence[tuple[int, int]],
    ):  # fmt: skip
        self._names = list(names)
        self._inputs = [_named(name, shape) for name, shape in zip(names, inputs, strict=True)]
        self._outputs, self._pairs = list(outputs), list(pairs)

    @staticmethod
    def of_graph(graph: Graph, pairs: Sequence[tuple[int, int]]) -> StateSizes:
        copied = graph.copy()
        for value in copied.inputs:
            value.shape = _named(value.name, value.shape)
        facts = infer(copied)
        names = [value.name for value in graph.inputs]
        outputs = [facts.of(value).shape for value in copied.outputs]
        return StateSizes(names, [value.shape for value in copied.inputs], outputs, pairs)

    @staticmethod
    def of_plan(file: PlanFile, pairs: Sequence[tuple[int, int]]) -> StateSizes:
        try:
            dims = _dims(file)
        except TooComplex as error:
            raise PlanError("the sizes of the plan are too intricate") from error
        shapes = [tuple(dims[index] for index in port.sizes) for port in (*file.inputs, *file.outputs)]
        n = len(file.inputs)
        return StateSizes([port.name for port in file.inputs], shapes[:n], shapes[n:], pairs)

    def shapes(self, feeds: Sequence[tuple[int, ...] | None]) -> list[tuple[int, ...]]:
        """The shape of each state, given those of the inputs of the first step (None in the place of states).

        A size that they do not say is what it will be after the step; 0 if it grows in each step; else 1: one stream.
        """
        known: dict[str, int] = {}
        for shape, feed in zip(self._inputs, feeds, strict=True):
            if shape is not None and feed is not None:
                known.update(
                    (str(dim), size) for dim, size in zip(shape, feed, strict=False) if not isinstance(dim, int)
                )
        while (found := self._next(known)) is not None:
            known.update([found])
        shapes = [tuple(_number(dim, known) for dim in self._shape(before)) for before, _ in self._pairs]
        for (before, _), shape in zip(self._pairs, shapes, strict=True):
            if min(shape, default=0) < 0 or prod(max(size, 1) for size in shape) >= MOST_ELEMENTS:
                raise ShapeError(f"state {self._names[before]!r} would be of shape {list(shape)}")
        return shapes

    def _next(self, known: dict[str, int]) -> tuple[str, int] | None:
        """A size that is not known yet; those that follow come first."""
        others: list[tuple[str, int]] = []
        for before, after in self._pairs:
            shape, later = self._shape(before), self._outputs[after]
            for axis, dim in enumerate(shape):
                if not isinstance(dim, SymbolicDim) or str(dim) in known:
                    continue
                then = _substituted(later[axis], known) if later is not None and len(later) == len(shape) else None
                if isinstance(then, int):
                    return str(dim), then
                growth = 0 if then is None else then - dim
                others.append((str(dim), 0 if isinstance(growth, int) and growth > 0 else 1))
        return others[0] if others else None

    def _shape(self, index: int) -> Shape:
        shape = self._inputs[index]
        if shape is None:
            raise ShapeError(f"the shape of state {self._names[index]!r} is not declared: give it with load()")
        return shape


def _named(name: str, shape: Shape | None) -> Shape | None:
    if shape is None:
        return None
    return tuple(Symbol(f"{name}.{axis}") if dim is None else dim for axis, dim in enumerate(shape))


def _substituted(dim: Dim | None, known: dict[str, int]) -> Dim | None:
    return dim.substitute(known) if isinstance(dim, SymbolicDim) else dim


def _number(dim: Dim | None, known: dict[str, int]) -> int:
    return known[str(dim)] if isinstance(dim, SymbolicDim) else int(dim or 0)


def _dims(file: PlanFile) -> list[Dim]:
    """The table of sizes, as sizes of symbols; PlanError where they would grow without end."""
    found: list[Dim] = []
    total = 0
    sizes = evaluated(file.size_rows, [Symbol(name) for name in file.symbols], _late)
    for kind, a, b in file.size_rows:
        if kind not in (NUMBER, SYMBOL, LATE):
            total += _length(found[a]) * (_length(found[b]) if kind == PRODUCT else 1)
            if total > MOST_LETTERS:
                raise PlanError("the sizes of the plan are too intricate")
        found.append(next(sizes))
        if _largest(found[-1]) >= 2**63:
            raise PlanError("a size of the plan is too large")
    return found


def _late(number: int) -> Dim:
    return Symbol(LateName(f"late{number}"))


def _length(dim: Dim) -> int:
    """How long it is when it is written out."""
    return sum(1 + sum(map(len, names)) for names, _ in dim.terms) if isinstance(dim, SymbolicDim) else 1


def _largest(dim: Dim) -> int:
    """The largest factor in it."""
    return max((abs(factor) for _, factor in dim.terms), default=0) if isinstance(dim, SymbolicDim) else abs(dim)
