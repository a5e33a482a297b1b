"""Recurrent cells of types that have no instruction for them: as expressions."""

from __future__ import annotations

import math

from webrnn.ir import Node
from webrnn.ir.activations import ACTIVATION_ROWS

from ..lowering import Lowering
from ..views import View
from .expressions import Register, Writer
from .functions import COMPOSED

_ROWS = {row.name: row for row in ACTIVATION_ROWS}


class _Cell:
    """One expression of a step. Operands are [rows, width]; their gates lie side by side."""

    def __init__(self, l: Lowering, node: Node):
        self.w, self.l, self.node = Writer(l), l, node

    def gate(self, view: View, index: int, width: View) -> Register:
        hidden = width.shape[-1]
        return self.w.view(view.sliced(view.rank - 1, index * hidden, hidden))

    def op(self, base: str, *operands: Register | float) -> Register:
        return self.w.op(base, *operands)

    def activation(self, which: int, x: Register, clipped: bool = True) -> Register:
        params, name = self.node.attrs["params"], self.node.attrs["activations"][which]
        if clipped and params[0] < math.inf:
            x = self.op("min", self.op("max", x, -params[0]), params[0])
        alpha, beta = params[2 * which + 1 : 2 * which + 3]
        if name == "none":
            return x
        if name == "affine":
            return self.op("add", self.op("mul", x, alpha), beta)
        if name == "scaled_tanh":
            return self.op("mul", COMPOSED["tanh"](self.w, self.op("mul", x, beta)), alpha)
        numbers = {
            key: number for key, number in (("alpha", alpha), ("beta", beta)) if getattr(_ROWS[name], key) is not None
        }
        return COMPOSED[name](self.w, x, **numbers)

    def mixed(self, z: Register, n: Register, h: Register) -> Register:
        rest = self.op("sub", self.w.number(1.0, self.w.types[z]), z)
        return self.op("add", self.op("mul", rest, n), self.op("mul", z, h))

    def write(self, view: View, register: Register) -> None:
        self.w.write([(view, register)])


def lower_plain(l: Lowering, node: Node, operands: list[View | None], results: list[View]) -> None:
    """Results are the places of the cell's outputs."""
    views = [view for view in operands if view is not None]
    _CELLS[node.op](l, node, views, results)


def _rnn(l: Lowering, node: Node, operands: list[View], results: list[View]) -> None:
    cell = _Cell(l, node)
    xw, hw = map(cell.w.view, operands)
    cell.write(results[0], cell.activation(0, cell.op("add", xw, hw)))


def _gru(l: Lowering, node: Node, operands: list[View], results: list[View]) -> None:
    xw, hw, h = operands
    cell = _Cell(l, node)
    z, r = (cell.activation(0, cell.op("add", cell.gate(xw, k, h), cell.gate(hw, k, h))) for k in range(2))
    n = cell.activation(1, cell.op("add", cell.gate(xw, 2, h), cell.op("mul", r, cell.gate(hw, 2, h))))
    cell.write(results[0], cell.mixed(z, n, cell.w.view(h)))


def _gru_reset(l: Lowering, node: Node, operands: list[View], results: list[View]) -> None:
    xw, hw, h = operands
    for k, result in enumerate(results):
        cell = _Cell(l, node)
        gate = cell.activation(0, cell.op("add", cell.gate(xw, k, h), cell.gate(hw, k, h)))
        cell.write(result, cell.op("mul", gate, cell.w.view(h)) if k else gate)


def _gru_update(l: Lowering, node: Node, operands: list[View], results: list[View]) -> None:
    xw, hn, z, h = operands
    cell = _Cell(l, node)
    n = cell.activation(1, cell.op("add", cell.gate(xw, 2, h), cell.w.view(hn)))
    cell.write(results[0], cell.mixed(cell.w.view(z), n, cell.w.view(h)))


def _lstm(l: Lowering, node: Node, operands: list[View], results: list[View]) -> None:
    """Gates i, o, f and the new content; the first of the peepholes are in the same order."""
    xw, hw, c, *peephole = operands

    def total(cell: _Cell, k: int, state: View | None = None) -> Register:
        found = cell.op("add", cell.gate(xw, k, c), cell.gate(hw, k, c))
        if state is None or not peephole:
            return found
        weights = peephole[0].sliced(0, k * c.shape[-1], c.shape[-1])
        return cell.op("add", found, cell.op("mul", cell.w.view(weights), cell.w.view(state)))

    cell = _Cell(l, node)
    i = cell.activation(0, total(cell, 0, c))
    if node.attrs["couple"]:
        f = cell.op("sub", cell.w.number(1.0, cell.w.types[i]), i)
    else:
        f = cell.activation(0, total(cell, 2, c))
    kept = cell.op("mul", f, cell.w.view(c))
    after = l.temporary(c.shape, c.dtype)
    cell.write(after, cell.op("add", kept, cell.op("mul", i, cell.activation(1, total(cell, 3)))))
    cell = _Cell(l, node)
    o = cell.activation(0, total(cell, 1, after))
    cell.write(results[0], cell.op("mul", o, cell.activation(2, cell.w.view(after), clipped=False)))
    l.copy(after, results[1])


_CELLS = {"RnnCell": _rnn, "GruCell": _gru, "GruReset": _gru_reset, "GruUpdate": _gru_update, "LstmCell": _lstm}
