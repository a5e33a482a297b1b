"""Activations as plain ops, and the clip before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from webrnn.ir import Node, Value
from webrnn.ir.activations import ACTIVATION_ROWS

from .cell import Function
from .surroundings import Surroundings

_OPS = {row.onnx: row for row in ACTIVATION_ROWS if row.is_op}


@dataclass(frozen=True, slots=True)
class Activated:
    """A value as a function of another."""

    function: Function
    clip: float
    operand: Value
    nodes: tuple[Node, ...]


def gates(view: Surroundings, value: Value | None) -> Iterator[Activated]:
    """The ways to read a value as f(clip(operand)); infinity is no clip."""
    for found in functions(view, value):
        node = view.node(found.operand, "Clip")
        if node is None:
            yield found
            continue
        low, high = (view.scalar(bound) for bound in [*node.inputs[1:], None, None][:2])
        if low is not None and high is not None and low == -high and node.inputs[0] is not None:
            yield Activated(found.function, high, node.inputs[0], (*found.nodes, node))


def functions(view: Surroundings, value: Value | None) -> Iterator[Activated]:
    """The ways to read a value as f(operand)."""
    node = view.node(value, *_OPS, "Add", "Mul")
    if node is None:
        return
    if node.op in _OPS:
        row = _OPS[node.op]
        numbers = (node.attrs.get("alpha", row.alpha or 0.0), node.attrs.get("beta", row.beta or 0.0))
        yield from _activated((row.name, *numbers), node.inputs[0], node)
        if node.op == "Tanh":
            for inner, beta, scaled in _scaled(view, node.inputs[0]):
                yield from _activated(("scaled_tanh", 1.0, beta), scaled, node, inner)
    elif node.op == "Add":
        for operand, number in _with_scalar(view, node):
            for inner, alpha, scaled in _scaled(view, operand):
                yield from _activated(("affine", alpha, number), scaled, node, inner)
            yield from _activated(("affine", 1.0, number), operand, node)
    else:
        for operand, number in _with_scalar(view, node):
            yield from _scaled_tanh(view, node, operand, number)
            yield from _activated(("affine", number, -0.0), operand, node)


def _scaled_tanh(view: Surroundings, node: Node, operand: Value, alpha: float) -> Iterator[Activated]:
    tanh = view.node(operand, "Tanh")
    if tanh is None:
        return
    for inner, beta, scaled in _scaled(view, tanh.inputs[0]):
        yield from _activated(("scaled_tanh", alpha, beta), scaled, node, tanh, inner)
    yield from _activated(("scaled_tanh", alpha, 1.0), tanh.inputs[0], node, tanh)


def _scaled(view: Surroundings, value: Value | None) -> Iterator[tuple[Node, float, Value]]:
    """A value as a number times another."""
    node = view.node(value, "Mul")
    if node is not None:
        for operand, number in _with_scalar(view, node):
            yield node, number, operand


def _with_scalar(view: Surroundings, node: Node) -> Iterator[tuple[Value, float]]:
    for operand, constant in (node.inputs, node.inputs[::-1]):
        number = view.scalar(constant)
        if number is not None and operand is not None:
            yield operand, number


def _activated(function: Function, operand: Value | None, *nodes: Node) -> Iterator[Activated]:
    if operand is not None:
        yield Activated(function, inf, operand, nodes)
