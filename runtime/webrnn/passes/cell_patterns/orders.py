"""Operands in either order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from webrnn.ir import Node, Value

from .surroundings import Surroundings


def orders(node: Node | None) -> Iterator[tuple[Value, Value]]:
    """Both orders of the two operands of an op that commutes; nothing where there is no node."""
    if node is not None and len(node.inputs) == 2:
        first, second = node.inputs
        if first is not None and second is not None:
            yield first, second
            yield second, first


def complement(view: Surroundings, value: Value, of: Value | None = None) -> Node | None:
    """The subtraction if a value is 1 - `of`."""
    node = view.node(value, "Sub")
    if node is None or (of is not None and node.inputs[1] is not of):
        return None
    array = view.constant(node.inputs[0])
    if array is None or array.dtype != np.float32 or array.ndim > 2 or not np.all(array == 1):
        return None
    return node if view.shape(value) == view.shape(node.inputs[1]) else None
