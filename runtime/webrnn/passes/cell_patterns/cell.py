"""What a pattern finds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from webrnn.ir import Node, Value

from .sums import Part

Function = tuple[str, float, float]
"""The name of an activation, as in ir/fused.py, its alpha and its beta."""


@dataclass(slots=True)
class FoundCell:
    """A cell with all that a fused one needs. For each gate, in ONNX's order, its columns of the products and the
    constant that is added to each.
    """

    op: str
    outputs: list[Value]
    x: list[Part]
    h: list[Part]
    state: Value
    """H of a GRU, C of an LSTM, H before an RNN's product."""
    functions: list[Function]
    nodes: list[Node]
    """What it replaces, without the nodes that only cut gates apart."""
    x_bias: list[np.ndarray | None] = field(default_factory=list)
    h_bias: list[np.ndarray | None] = field(default_factory=list)
    peepholes: list[Value | None] = field(default_factory=list)
    """Of an LSTM, for i, o and f."""
    is_exact: bool = True
    """Whether all is added and mixed in the order of the fused cell."""
    update: Value | None = None
    """Of a GRU: z."""
    reset: Value | None = None
    """Of a GRU that resets before its product: r times H,"""
    product: Value | None = None
    """and the product of that."""
