"""Numbers in the body of a loop that follow from the number of its step: a · iteration + b."""

from __future__ import annotations

from dataclasses import dataclass

from webrnn.ir import Dim, DType, Graph, Node, Scan, Value, is_plain
from webrnn.ir.dims import TooComplex
from webrnn.ops.sets import RESHAPES
from webrnn.shapes.facts import Facts

_PASSES_ON = (RESHAPES | {"Identity"}) - {"Flatten"}
"""Ops that hand on one number."""
_EXACT = (DType.INT64, DType.INT32, DType.FLOAT, DType.DOUBLE)
"""Types that hold every number of steps that a loop can take."""


@dataclass(frozen=True)
class Affine:
    """factor · iteration + offset"""

    factor: int
    offset: Dim


class Iterations:
    """What is known of numbers in the body of a Scan."""

    def __init__(self, graph: Graph, scan: Scan, facts: Facts):
        self._iteration, self._facts = scan.iteration, facts
        self._inside, self._outside = scan.body.producers(), graph.producers()
        self._outer_of = {item.inner: item.outer for item in scan.invariants}

    def affine(self, value: Value | None) -> Affine | None:
        try:
            return self._affine(value, depth=16)
        except TooComplex:
            return None

    def _affine(self, value: Value | None, depth: int) -> Affine | None:
        if value is None or depth == 0:
            return None
        if value is self._iteration:
            return Affine(1, 0)
        known = self._known(value)
        if known is not None:
            return Affine(0, known)
        node = self._inside.get(value)
        if node is None:
            outer = _followed(self._outer_of.get(value), self._outside)
            known = self._known(outer)
            return None if known is None else Affine(0, known)
        if _hands_on(node):
            return self._affine(node.inputs[0], depth - 1)
        if not is_plain(node, "Add", "Sub", "Mul") or self._facts.of(value).shape not in ((), (1,)):
            return None
        left, right = (self._affine(operand, depth - 1) for operand in node.inputs)
        if left is None or right is None:
            return None
        if node.op == "Mul":
            number, other = (left, right) if left.factor == 0 else (right, left)
            if number.factor or not isinstance(number.offset, int):
                return None
            return Affine(other.factor * number.offset, other.offset * number.offset)
        sign = -1 if node.op == "Sub" else 1
        return Affine(left.factor + sign * right.factor, left.offset + right.offset * sign)

    def _known(self, value: Value | None) -> Dim | None:
        fact = self._facts.of(value)
        if fact.floats is not None and len(fact.floats) == 1 and fact.floats[0].is_integer():
            return int(fact.floats[0])
        return fact.content[0] if fact.content is not None and len(fact.content) == 1 else None


def _hands_on(node: Node) -> bool:
    if is_plain(node, "Cast"):
        return node.attrs["to"] in _EXACT
    return not node.domain and node.op in _PASSES_ON


def _followed(value: Value | None, producers: dict[Value, Node]) -> Value | None:
    while value in producers and _hands_on(producers[value]):
        value = producers[value].inputs[0]
    return value
