"""Nodes that may run although nobody asks for their results yet."""

from __future__ import annotations

from webrnn.checks.graphs import is_allowed
from webrnn.ir import DType, Node
from webrnn.ops.sets import FLOATS, TOTAL
from webrnn.shapes.facts import Facts


def is_total(node: Node, facts: Facts) -> bool:
    """Whether it cannot fail: its operands are known to fit, whatever sizes and elements they have."""
    if node.domain or node.op not in TOTAL:
        return False
    divides = node.op == "Div" and facts.dtype(node.inputs[0]) not in FLOATS
    return not divides and facts.dtype(node.inputs[0]) is not DType.STRING and is_allowed(node, facts)
