"""The pullbacks of recurrent cells (fused.py), in any arithmetic: of arrays, of registers of an expression, of counts.

An operand or result is the list of its gates, each as wide as a state; None stands for zeros and for what is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Protocol, TypeAlias

from .activations import ACTIVATION_ROWS

Gates: TypeAlias = Sequence[Any]

PULLBACKS = {row.name: row.pullback for row in ACTIVATION_ROWS}


class Arithmetic(Protocol):
    def op(self, name: str, *operands: Any) -> Any:
        """An op of ONNX on values and numbers."""

    def activation(self, which: int, x: Any, clipped: bool = True) -> Any:
        """The function of the cell in this place, behind the clip."""


class _Cell:
    def __init__(self, arithmetic: Arithmetic, attrs: Mapping[str, Any]):
        self.op, self.activation, self._attrs = arithmetic.op, arithmetic.activation, attrs

    def add(self, *terms: Any) -> Any:
        total, *rest = (term for term in terms if term is not None)
        for term in rest:
            total = self.op("Add", total, term)
        return total

    def mul(self, a: Any, b: Any) -> Any:
        return self.op("Mul", a, b)

    def rest(self, gate: Any) -> Any:
        return self.op("Sub", 1.0, gate)

    def pull(self, which: int, d: Any, a: Any, y: Any, clipped: bool = True) -> Any:
        """The gradient of a, where y is the activation of it and d the gradient of y."""
        params = self._attrs["params"]
        clip = params[0] if clipped else inf
        x = a if clip == inf else self.op("Min", self.op("Max", a, -clip), clip)
        pulled = PULLBACKS[self._attrs["activations"][which]](self.op, d, x, y, *params[2 * which + 1 : 2 * which + 3])
        return pulled if clip == inf else self.op("Where", self.op("Greater", self.op("Abs", a), clip), 0.0, pulled)


def _rnn(cell: _Cell, xw: Gates, hw: Gates, d_next: Gates) -> list[Gates]:
    a = cell.add(xw[0], hw[0])
    return [[cell.pull(0, d_next[0], a, cell.activation(0, a))]]


def _gru(cell: _Cell, xw: Gates, hw: Gates, h: Gates, d_next: Gates) -> list[Gates]:
    (d,) = d_next
    a_z, a_r = cell.add(xw[0], hw[0]), cell.add(xw[1], hw[1])
    z, r = cell.activation(0, a_z), cell.activation(0, a_r)
    a_n = cell.add(xw[2], cell.mul(r, hw[2]))
    n = cell.activation(1, a_n)
    d_n, d_z, d_h = _unmixed(cell, z, n, h[0], d)
    d_n = cell.pull(1, d_n, a_n, n)
    d_r = cell.pull(0, cell.mul(d_n, hw[2]), a_r, r)
    d_z = cell.pull(0, d_z, a_z, z)
    return [[d_z, d_r, d_n], [d_z, d_r, cell.mul(d_n, r)], [d_h]]


def _unmixed(cell: _Cell, z: Any, n: Any, h: Any, d: Any) -> tuple[Any, Any, Any]:
    """The gradients of n, z and h, where d is that of (1 - z) n + z h."""
    return cell.mul(d, cell.rest(z)), cell.mul(d, cell.op("Sub", h, n)), cell.mul(d, z)


def _gru_reset(cell: _Cell, xw: Gates, hw: Gates, h: Gates, d_z: Gates, d_rh: Gates) -> list[Gates]:
    a_z, a_r = cell.add(xw[0], hw[0]), cell.add(xw[1], hw[1])
    z, r = cell.activation(0, a_z), cell.activation(0, a_r)
    d_a = [cell.pull(0, d_z[0], a_z, z), cell.pull(0, cell.mul(d_rh[0], h[0]), a_r, r)]
    return [[*d_a, None], d_a, [cell.mul(d_rh[0], r)]]


def _gru_update(cell: _Cell, xw: Gates, hn: Gates, z: Gates, h: Gates, d_next: Gates) -> list[Gates]:
    a = cell.add(xw[2], hn[0])
    n = cell.activation(1, a)
    d_n, d_z, d_h = _unmixed(cell, z[0], n, h[0], d_next[0])
    d_a = cell.pull(1, d_n, a, n)
    return [[None, None, d_a], [d_a], [d_z], [d_h]]


def _lstm(
    cell: _Cell, couple: bool, xw: Gates, hw: Gates, c_before: Gates, peephole: Gates | None, d_h: Gates, d_c: Gates
) -> list[Gates]:
    (c,) = c_before
    peep_i, peep_o, peep_f = peephole or (None, None, None)

    def total(gate: int, weights: Any = None, state: Any = None) -> Any:
        return cell.add(xw[gate], hw[gate], None if weights is None else cell.mul(weights, state))

    a_i, a_g = total(0, peep_i, c), total(3)
    i, g = cell.activation(0, a_i), cell.activation(1, a_g)
    a_f = None if couple else total(2, peep_f, c)
    f = cell.rest(i) if couple else cell.activation(0, a_f)
    c_next = cell.add(cell.mul(f, c), cell.mul(i, g))
    a_o = total(1, peep_o, c_next)
    o, y = cell.activation(0, a_o), cell.activation(2, c_next, clipped=False)

    d_o = cell.pull(0, cell.mul(d_h[0], y), a_o, o)
    d = cell.add(d_c[0], cell.pull(2, cell.mul(d_h[0], o), c_next, y, clipped=False))
    if peephole:
        d = cell.add(d, cell.mul(d_o, peep_o))
    d_i = cell.pull(0, cell.mul(d, cell.op("Sub", g, c) if couple else g), a_i, i)
    d_f = None if couple else cell.pull(0, cell.mul(d, c), a_f, f)
    d_g = cell.pull(1, cell.mul(d, i), a_g, g)
    d_before = cell.mul(d, f)
    if not peephole:
        return [[d_i, d_o, d_f, d_g], [d_before]]
    d_before = cell.add(d_before, cell.mul(d_i, peep_i), None if d_f is None else cell.mul(d_f, peep_f))
    d_peephole = [cell.mul(d_i, c), cell.mul(d_o, c_next), None if d_f is None else cell.mul(d_f, c)]
    return [[d_i, d_o, d_f, d_g], [d_before], d_peephole]


_PULLBACKS: dict[str, Callable[..., list[Gates]]] = {
    "RnnCellBackward": _rnn,
    "GruCellBackward": _gru,
    "GruResetBackward": _gru_reset,
    "GruUpdateBackward": _gru_update,
}


def pull_back(op: str, arithmetic: Arithmetic, attrs: Mapping[str, Any], operands: Sequence[Any]) -> list[Gates]:
    """The gates of each result of a backward cell, where operands are lists of gates."""
    cell = _Cell(arithmetic, attrs)
    if op == "LstmCellBackward":
        return _lstm(cell, bool(attrs["couple"]), *operands)
    return _PULLBACKS[op](cell, *operands)
