"""Activations as plain ops."""

from __future__ import annotations

from dataclasses import dataclass

from webrnn.ir import Node, Value
from webrnn.ir.activations import ACTIVATION_ROWS

from .cell import Function
from .surroundings import Surroundings

_OPS = {row.onnx: row for row in ACTIVATION_ROWS if row.is_op}


@dataclass(frozen=True, slots=True)
class Activated:
    """A value as a function of another."""

    function: Function
    operand: Value
    node: Node


def activated(view: Surroundings, value: Value | None) -> Activated | None:
    """A value as f(operand), if it is one."""
    node = view.node(value, *_OPS)
    if node is None or node.inputs[0] is None:
        return None
    row = _OPS[node.op]
    numbers = (node.attrs.get("alpha", row.alpha or 0.0), node.attrs.get("beta", row.beta or 0.0))
    return Activated((row.name, *numbers), node.inputs[0], node)
