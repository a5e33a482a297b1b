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

The pullback of a cell takes the operands and attributes of the cell and the gradients of its outputs. It gives those of
its operands, each as wide as that operand. It computes the gates again; backward_cells.py has the formulas.

    RnnCellBackward(xw, hw, d_next) -> d                                of xw and of hw: they are the same
    GruCellBackward(xw, hw, h, d_next) -> d_xw, d_hw, d_h
    GruResetBackward(xw, hw, h, d_z, d_rh) -> d_xw, d_hw, d_h           d_xw [rows, 3 H] is 0 for the gate n
    GruUpdateBackward(xw, hn, z, h, d_next) -> d_xw, d_hn, d_z, d_h     d_xw [rows, 3 H] is 0 for the gates z and r
    LstmCellBackward(xw, hw, c, peephole?, d_h_next, d_c_next) -> d_gates, d_c, d_peephole

d_gates [rows, 4 H] is the gradient of xw and of hw. d_peephole [rows, 3 H] is that of each row: their sum is the
gradient of the peepholes. A cell without peepholes has no such output. Where the forget gate is 1 - i, the parts of f
in both are 0. What a clip cut off has the gradient 0. Any output may be left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from .graph import WEBRNN, Node

PEEPHOLES = 0
"""In the place of a width: a vector of 3 hidden sizes, which may be left out."""


@dataclass(frozen=True, slots=True)
class CellForm:
    """What a cell takes and gives."""

    widths: tuple[int, ...]
    """Of the operands, in hidden sizes, or PEEPHOLES."""
    activations: int
    results: tuple[int, ...] = (1,)
    """Widths of the outputs, in hidden sizes."""

    @property
    def gates(self) -> int:
        return self.widths[0]

    @property
    def state(self) -> int:
        """The place of an operand that has the shape of a state."""
        return self.widths.index(1)

    @property
    def required(self) -> int:
        """How many operands it has at least: peepholes may be missing if they come last."""
        return len(self.widths) - (self.widths[-1] == PEEPHOLES)

    @property
    def outputs(self) -> int:
        return len(self.results)


CELLS = {
    "RnnCell": CellForm((1, 1), 1),
    "GruCell": CellForm((3, 3, 1), 2),
    "GruReset": CellForm((3, 2, 1), 2, (1, 1)),
    "GruUpdate": CellForm((3, 1, 1, 1), 2),
    "LstmCell": CellForm((4, 4, 1, PEEPHOLES), 3, (1, 1)),
}

BACKWARD_CELLS = {
    "RnnCellBackward": CellForm((1, 1, 1), 1),
    "GruCellBackward": CellForm((3, 3, 1, 1), 2, (3, 3, 1)),
    "GruResetBackward": CellForm((3, 2, 1, 1, 1), 2, (3, 2, 1)),
    "GruUpdateBackward": CellForm((3, 1, 1, 1, 1), 2, (3, 1, 1, 1)),
    "LstmCellBackward": CellForm((4, 4, 1, PEEPHOLES, 1, 1), 3, (4, 1, 3)),
}
"""The pullback of each cell."""

CELL_FORMS = {**CELLS, **BACKWARD_CELLS}


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


def is_backward_cell(node: Node) -> bool:
    return node.op in BACKWARD_CELLS and node.domain == WEBRNN
