"""The ops that stand for several of ONNX's, each with an instruction of a plan. The reader makes cells of RNN, GRU and
LSTM; fusing passes make the others, and cells of what exporters wrote in plain ops.

    Linear(x, w, bias?) -> y              x [..., K] times w [K, N], plus bias [N]; x has two axes or more
    SmallLinear(x, w, scale, bias?) -> y  the same with w of integers and scales [N]: see reference/small.py
    SmallConv(x, w, scale, bias?) -> y    Conv with w of integers and the scales of filters
    Expression(*operands) -> *outputs     element by element; all outputs have the shape that the operands broadcast to
    RnnCell(xw, hw) -> h_next             f(xw + hw)
    GruCell(xw, hw, h) -> h_next          linear_before_reset = 1; gates z, r, n
    GruReset(xw, hw, h) -> z, rh          linear_before_reset = 0, before the product with r * h; hw has z and r only
    GruUpdate(xw, hn, z, h) -> h_next     and behind it: hn is that product
    LstmCell(xw, hw, c, peephole?) -> h_next, c_next     gates i, o, f, c; peephole [3 H] for i, o, f

`range` of what is small says to which integers its rows are rounded.

`body` of an Expression is its graph. Constants with one element are scalars inside it, all others are operands; each of
its nodes gives the shape of the outputs. A cell has xw and hw [rows, gates * H], the products of the input and of the
last state with their biases inside, and states [rows, H]. Its attributes: `activations`, the names of f, g and h as far
as the cell has them; `params`, a clip (infinity is none) and then alpha and beta of each activation; `couple` of an
LstmCell, whether the forget gate is 1 - i. It gives the bits of the plain ops that it stands for, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from .graph import WEBRNN, Node


@dataclass(frozen=True, slots=True)
class CellForm:
    """What a cell takes and gives."""

    widths: tuple[int, ...]
    """Of the operands that it needs, in hidden sizes; the last one is as wide as a state."""
    activations: int
    optional: int = 0
    outputs: int = 1

    @property
    def gates(self) -> int:
        return self.widths[0]

    @property
    def required(self) -> int:
        return len(self.widths)


CELLS = {
    "RnnCell": CellForm((1, 1), 1),
    "GruCell": CellForm((3, 3, 1), 2),
    "GruReset": CellForm((3, 2, 1), 2, outputs=2),
    "GruUpdate": CellForm((3, 1, 1, 1), 2),
    "LstmCell": CellForm((4, 4, 1), 3, optional=1, outputs=2),
}


def is_linear(node: Node) -> bool:
    return node.op == "Linear" and node.domain == WEBRNN


def is_small_linear(node: Node) -> bool:
    return node.op == "SmallLinear" and node.domain == WEBRNN


def is_small(node: Node) -> bool:
    return node.op in ("SmallLinear", "SmallConv") and node.domain == WEBRNN


def is_expression(node: Node) -> bool:
    return node.op == "Expression" and node.domain == WEBRNN


def is_cell(node: Node) -> bool:
    return node.op in CELLS and node.domain == WEBRNN
