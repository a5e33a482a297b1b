"""The pullbacks of recurrent cells in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from webrnn.errors import ShapeError
from webrnn.ir.backward_cells import pull_back
from webrnn.ir.fused import BACKWARD_CELLS, PEEPHOLES, CellForm

from .fused_ops import FUSED_OPS as FUSED_OPS
from .fused_ops import Array, activation, fused, hidden_size


def _sigmoid(x: Array) -> Array:
    return np.divide(1, np.add(1, np.exp(np.negative(x))))


_OPS: dict[str, Callable[..., Any]] = {
    "Abs": np.abs, "Add": np.add, "Div": np.divide, "Exp": np.exp, "Greater": np.greater, "Less": np.less,
    "Max": np.maximum, "Min": np.minimum, "Mul": np.multiply, "Sigmoid": _sigmoid, "Sub": np.subtract, "Tanh": np.tanh,
    "Where": np.where,
}  # fmt: skip


class _Arrays:
    """The arithmetic of arrays of one type."""

    def __init__(self, attrs: dict[str, Any], dtype: Any):
        self._attrs, self._dtype = attrs, dtype

    def op(self, name: str, *operands: Any) -> Any:
        """Numbers are of the type of the arrays, as in a kernel."""
        return _OPS[name](*(self._dtype.type(each) if isinstance(each, float) else each for each in operands))

    def activation(self, which: int, x: Any, clipped: bool = True) -> Any:
        return activation(self._attrs, which, x, clipped)


def _backward(op: str, form: CellForm) -> None:
    @fused(op)
    def run(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
        state = arguments[form.state]
        wide = [(each, count) for each, count in zip(arguments, form.widths, strict=True) if count != PEEPHOLES]
        hidden_size(state, *wide)
        operands = [_gates(each, count, state) for each, count in zip(arguments, form.widths, strict=True)]
        results = pull_back(op, _Arrays(attrs, state.dtype), attrs, operands)
        zeros = np.zeros(state.shape, state.dtype)
        found = [np.concatenate([zeros if gate is None else gate for gate in gates], axis=-1) for gates in results]
        return [*found, *[None] * (form.outputs - len(found))]


def _gates(array: Array | None, count: int, state: Array) -> list[Array] | None:
    if array is None:
        return None
    width = state.shape[-1]
    if count == PEEPHOLES and array.shape != (3 * width,):
        raise ShapeError(f"peepholes of {list(array.shape)} are not those of a state of {list(state.shape)}")
    return [array[..., k * width : (k + 1) * width] for k in range(3 if count == PEEPHOLES else count)]


for _op, _form in BACKWARD_CELLS.items():
    _backward(_op, _form)
