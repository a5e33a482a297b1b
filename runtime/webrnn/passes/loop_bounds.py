"""Conditions of loops that compare a counter with a size: how many steps the loop takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from webrnn.ir import Dim, DType, Graph, Node, Scan, Value, is_plain
from webrnn.ir.dims import floor_divide, is_nonnegative
from webrnn.ops.sets import RESHAPES
from webrnn.shapes.facts import Facts

from .base import Context
from .iterations import Affine, Iterations
from .rewriting import Additions

MOST_STEPS = 2**31 - 1
"""No loop takes so many: a number of steps that is at least this one says nothing."""

_NEGATED = {"Less": "GreaterOrEqual", "LessOrEqual": "Greater", "Greater": "LessOrEqual", "GreaterOrEqual": "Less"}

_Numbers: TypeAlias = Callable[[Value | None], Affine | None]


@dataclass(frozen=True)
class _Comparison:
    """count < limit"""

    count: Affine
    limit: Dim


class Bound:
    """The number of steps of a loop whose condition only compares counters with sizes."""

    def __init__(self, graph: Graph, node: Node, scan: Scan, context: Context):
        self._graph, self._node, self._scan, self._context = graph, node, scan, context
        self.steps = self._steps()
        self._place = None if self.steps is None else self._find(self.steps)

    @property
    def is_known(self) -> bool:
        """Whether the number of steps follows from the size of a tensor that is there."""
        return self._place is not None

    def _steps(self) -> Dim | None:
        facts, scan = self._context.facts, self._scan
        inside, outside = Iterations(self._graph, scan, facts), Iterations(self._graph, Scan(self._graph), facts)
        after = _comparisons(scan.body_cond, scan.body.producers(), inside.affine, facts)
        first = _comparisons(scan.cond, self._graph.producers(), outside.affine, facts)
        most = outside.affine(scan.n_steps)
        self._reads = self._lengths_of_reads()
        if not after or first is None or (scan.n_steps is not None and most is None):
            return None
        starts = [_Comparison(Affine(0, each.count.offset - each.count.factor), each.limit) for each in after]
        if not all(each in starts or _is_certain(each) for each in first):
            return None
        counts = {_count(each, first, self._reads) for each in after}
        if most is not None and not (isinstance(most.offset, int) and most.offset >= MOST_STEPS):
            counts.add(most.offset)
        return _least(counts)

    def _lengths_of_reads(self) -> set[Dim]:
        """Of the axes that each step takes elements of: without an element the first step fails."""
        facts, found = self._context.facts, set()
        for node in self._scan.body.nodes:
            shape = facts.shape(node.inputs[0]) if is_plain(node, "Gather") else None
            if shape and facts.shape(node.inputs[1]) in ((), (1,)):
                length = shape[node.attrs.get("axis", 0) % len(shape)]
                if length is not None:
                    found.add(length)
        return found

    def _find(self, steps: Dim) -> tuple[Value, int, int] | None:
        """A tensor, an axis of it, and what has to be added to its size."""
        for value in self._values_before():
            for axis, size in enumerate(self._context.facts.shape(value) or ()):
                if size is not None and not isinstance(size, int) and isinstance(steps - size, int):
                    difference = steps - size
                    assert isinstance(difference, int)
                    return value, axis, difference
        return None

    def _values_before(self) -> Iterator[Value]:
        yield from (value for value in self._node.inputs if value is not None)
        yield from self._graph.inputs
        for node in self._graph.nodes:
            if node is self._node:
                return
            yield from (value for value in node.outputs if value is not None)

    def number(self) -> tuple[list[Node], Value]:
        """The number of steps as a value of the graph around the loop, and the nodes that make it."""
        assert self._place is not None
        value, axis, difference = self._place
        new = Additions(self._graph, self._context)
        size, number, total = (new.value(hint) for hint in ("size", "n_steps", "n_steps"))
        nodes = [
            Node("Shape", [value], [size], {"start": axis, "end": axis + 1}),
            Node("Squeeze", [size, new.ints(0)], [number]),
        ]
        if difference:
            nodes.append(Node("Add", [number, new.ints(difference)], [total]))
        return nodes, total if difference else number


def _least(counts: set[Dim | None]) -> Dim | None:
    """The one that is not larger than any other, if that is known: a loop ends when one of its conditions does."""
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return None
    return next((count for count in known if all(is_nonnegative(other - count) for other in known)), None)


def _is_certain(each: _Comparison) -> bool:
    return each.count.factor == 0 and is_nonnegative(each.limit - each.count.offset - 1)


def _count(each: _Comparison, first: list[_Comparison], reads: set[Dim]) -> Dim | None:
    """Steps are taken while factor · i + offset < limit, from i = -1 on if that is what holds before the first, or if
    a first step without room fails."""
    factor = each.count.factor
    if factor < 1:
        return None
    start = each.count.offset - factor
    room = each.limit - start
    is_asked_first = _Comparison(Affine(0, start), each.limit) in first
    if not is_nonnegative(room) or not (is_asked_first or room in reads or is_nonnegative(room - 1)):
        return None
    return floor_divide(room + factor - 1, factor)


def _comparisons(
    value: Value | None, producers: dict[Value, Node], affine: _Numbers, facts: Facts
) -> list[_Comparison] | None:
    """What has to hold for a condition to be true; None if that is not all that there is to it."""
    if value is None or facts.of(value).ints == (1,):
        return []
    node = producers.get(value)
    if node is None:
        return None
    if is_plain(node, "And"):
        both = [_comparisons(operand, producers, affine, facts) for operand in node.inputs]
        return None if None in both else [each for part in both for each in part or ()]
    if (not node.domain and node.op in RESHAPES | {"Identity"}) or _is_cast_to_bool(node):
        return _comparisons(node.inputs[0], producers, affine, facts)
    op = node.op
    if is_plain(node, "Not") and node.inputs[0] in producers:
        node = producers[node.inputs[0]]
        op = _NEGATED.get(node.op, "")
    return None if node.domain or op not in _NEGATED else _comparison(op, node, affine)


def _is_cast_to_bool(node: Node) -> bool:
    return is_plain(node, "Cast") and node.attrs["to"] == DType.BOOL


def _comparison(op: str, node: Node, affine: _Numbers) -> list[_Comparison] | None:
    left, right = (affine(operand) for operand in node.inputs)
    if left is None or right is None:
        return None
    if op.startswith("Greater"):
        left, right = right, left
    shift = -1 if op.endswith("OrEqual") else 0
    return [_Comparison(Affine(left.factor - right.factor, left.offset + shift), right.offset)]
