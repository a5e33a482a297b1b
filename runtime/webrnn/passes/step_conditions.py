"""Conditions in the body of a loop that hold from one of its steps on."""

from __future__ import annotations

from webrnn.ir import DType, Graph, Node, Scan, Value, is_plain
from webrnn.ops.sets import RESHAPES

from .base import Context
from .iterations import Iterations

_MIRRORED = {"Less": "Greater", "Greater": "Less", "LessOrEqual": "GreaterOrEqual", "GreaterOrEqual": "LessOrEqual"}


class Conditions:
    """What is known of conditions that compare the number of the step with numbers."""

    def __init__(self, graph: Graph, scan: Scan, context: Context):
        self._producers = scan.body.producers()
        self._numbers = Iterations(graph, scan, context.facts)

    def holds_from(self, value: Value | None, positive: bool = True) -> int | None:
        """The number of the step from which on a condition, or its opposite, holds, and before which it does not."""
        found = self._change(value)
        return None if found is None or found[1] != positive else found[0]

    def _change(self, value: Value | None) -> tuple[int, bool] | None:
        """The number of the first step with another answer than those before it, and its answer."""
        node = self._producers.get(value) if value is not None else None
        if node is None:
            return None
        if is_plain(node, "Not"):
            found = self._change(node.inputs[0])
            return None if found is None else (found[0], not found[1])
        if is_plain(node, "Identity") or (not node.domain and node.op in RESHAPES) or _is_cast_to_bool(node):
            return self._change(node.inputs[0])
        return None if node.domain or len(node.inputs) != 2 else self._comparison(node)

    def _comparison(self, node: Node) -> tuple[int, bool] | None:
        left, right = (self._numbers.affine(operand) for operand in node.inputs)
        op = node.op
        if left is None or right is None:
            return None
        if left.factor == 0:
            left, right, op = right, left, _MIRRORED.get(op, op)
        if left.factor != 1 or right.factor != 0:
            return None
        limit = right.offset - left.offset  # iteration `op` limit
        if not isinstance(limit, int):
            return None
        if op == "Equal":
            return (1, False) if limit == 0 else None
        changes = {
            "Less": (limit, False),
            "LessOrEqual": (limit + 1, False),
            "Greater": (limit + 1, True),
            "GreaterOrEqual": (limit, True),
        }
        return changes.get(op)


def _is_cast_to_bool(node: Node) -> bool:
    return is_plain(node, "Cast") and node.attrs["to"] == DType.BOOL
