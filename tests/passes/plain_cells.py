"""One step of RNN, GRU and LSTM as plain ops: what the cells that the reader makes stand for, op by op."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from webrnn.ir import GraphBuilder, Value
from webrnn.ir.activations import ActivationRow
from webrnn.onnx.cells import RecurrentAttributes, Weights, added, scalar_like, slice_last


@contextmanager
def written_plainly() -> Iterator[None]:
    """The reader makes these."""
    with patch.multiple("webrnn.onnx.recurrent", RnnCell=RnnCell, GruCell=GruCell, LstmCell=LstmCell):
        yield


class Cell:
    """What the cells have in common: activations, clipping and products."""

    def __init__(
        self, outside: GraphBuilder, body: GraphBuilder, weights: Weights, attributes: RecurrentAttributes, index: int
    ):
        captured = [
            None if value is None else body.capture(value)
            for value in (weights.w, weights.r, weights.w_bias, weights.r_bias, weights.peepholes)
        ]
        self.b, self.weights, self.attributes = body, Weights(*captured, weights.hidden), attributes
        self.activations = attributes.activations[index]

    def step(self, x: Value, *states: Value) -> list[Value]:
        """The next states, H first."""
        raise NotImplementedError

    def _scalar(self, number: float) -> Value:
        return scalar_like(self.b, number, self.weights.w)

    def _activate(self, function: ActivationRow, value: Value, name: str) -> Value:
        """f(clip(value))."""
        if self.attributes.clip is not None:
            limit = self.attributes.clip
            value = self.b.op("Clip", value, self._scalar(-limit), self._scalar(limit))
        return self._unclipped(function, value, name)

    def _unclipped(self, function: ActivationRow, value: Value, name: str) -> Value:
        if function.is_op:
            numbers = {"alpha": function.alpha, "beta": function.beta}
            attrs: dict[str, Any] = {key: number for key, number in numbers.items() if number is not None}
            return self.b.op(function.onnx, value, name=name, **attrs)
        return (_affine if function.name == "affine" else _scaled_tanh)(self, function, value, name)

    def _product(self, value: Value, weights: Value, bias: Value | None, name: str) -> Value:
        product = self.b.op("MatMul", value, weights, name=name)
        return product if bias is None else self.b.op("Add", product, bias, name=name)

    def _joint_bias(self) -> Value | None:
        if self.weights.w_bias is None or self.weights.r_bias is None:
            return None
        return added(self.b, self.weights.w_bias, self.weights.r_bias)

    def _op(self, op: str, *inputs: Value, name: str) -> Value:
        return self.b.op(op, *inputs, name=name)


class RnnCell(Cell):
    """H' = f(X·Wᵀ + H·Rᵀ + Wb + Rb)"""

    def step(self, x: Value, *states: Value) -> list[Value]:
        (h,) = states
        from_x = self._product(x, self.weights.w, self._joint_bias(), "from_x")
        from_h = self._product(h, self.weights.r, None, "from_h")
        return [self._activate(self.activations[0], self.b.op("Add", from_x, from_h, name="sum"), "h_next")]


class GruCell(Cell):
    """z, r = f(X·Wᵀ + H·Rᵀ + b); n = g(X·Wnᵀ + reset(H)); H' = (1 - z)·n + z·H

    reset is (r·H)·Rnᵀ + b, or with linear_before_reset r·(H·Rnᵀ + b).
    """

    def step(self, x: Value, *states: Value) -> list[Value]:
        (h,) = states
        if self.attributes.linear_before_reset:
            update, candidate = self._linear_before_reset(x, h)
        else:
            update, candidate = self._reset_before_linear(x, h)
        new = self._op("Mul", self._op("Sub", self._scalar(1.0), update, name="keep"), candidate, name="new_part")
        return [self.b.op("Add", new, self._op("Mul", update, h, name="old_part"), name="h_next")]

    def _gates(self, x_update: Value, h_update: Value, x_reset: Value, h_reset: Value) -> tuple[Value, Value]:
        f = self.activations[0]
        update = self._activate(f, self._op("Add", x_update, h_update, name="update_sum"), "update")
        reset = self._activate(f, self._op("Add", x_reset, h_reset, name="reset_sum"), "reset")
        return update, reset

    def _linear_before_reset(self, x: Value, h: Value) -> tuple[Value, Value]:
        from_x = self._product(x, self.weights.w, self.weights.w_bias, "from_x")
        from_h = self._product(h, self.weights.r, self.weights.r_bias, "from_h")
        x_update, x_reset, x_new = self.b.split(from_x, ["x_update", "x_reset", "x_new"])
        h_update, h_reset, h_new = self.b.split(from_h, ["h_update", "h_reset", "h_new"])
        update, reset = self._gates(x_update, h_update, x_reset, h_reset)
        remembered = self._op("Mul", reset, h_new, name="remembered")
        candidate = self._op("Add", x_new, remembered, name="candidate_sum")
        return update, self._activate(self.activations[1], candidate, "candidate")

    def _reset_before_linear(self, x: Value, h: Value) -> tuple[Value, Value]:
        from_x = self._product(x, self.weights.w, self._joint_bias(), "from_x")
        x_update, x_reset, x_new = self.b.split(from_x, ["x_update", "x_reset", "x_new"])
        hidden = self.weights.hidden
        from_h = self._product(h, slice_last(self.b, self.weights.r, 0, 2 * hidden), None, "from_h")
        h_update, h_reset = self.b.split(from_h, ["h_update", "h_reset"])
        update, reset = self._gates(x_update, h_update, x_reset, h_reset)
        remembered = self._op("Mul", reset, h, name="remembered")
        from_remembered = self._product(
            remembered, slice_last(self.b, self.weights.r, 2 * hidden, 3 * hidden), None, "from_remembered"
        )
        candidate = self._op("Add", x_new, from_remembered, name="candidate_sum")
        return update, self._activate(self.activations[1], candidate, "candidate")


class LstmCell(Cell):
    """i, o, f = f(X·Wᵀ + H·Rᵀ + P·C + b); n = g(...); C' = f·C + i·n; H' = o·h(C')

    The output gate's peephole sees C'; with input_forget the forget gate is 1 - i. C' is not clipped, neither for h nor
    for the next step: so does onnxruntime read the "input of activations" that ONNX clips.
    """

    def step(self, x: Value, *states: Value) -> list[Value]:
        h, c = states
        from_x = self._product(x, self.weights.w, self._joint_bias(), "from_x")
        total = self._op("Add", from_x, self._product(h, self.weights.r, None, "from_h"), name="gates")
        i, o, f, n = self.b.split(total, ["input_sum", "output_sum", "forget_sum", "candidate_sum"])
        gate, squash, squash_cell = self.activations
        peep_i, peep_o, peep_f = self._peepholes()
        input_gate = self._activate(gate, self._peep(i, peep_i, c), "input_gate")
        if self.attributes.input_forget:
            forget_gate = self._op("Sub", self._scalar(1.0), input_gate, name="forget_gate")
        else:
            forget_gate = self._activate(gate, self._peep(f, peep_f, c), "forget_gate")
        candidate = self._activate(squash, n, "candidate")
        kept = self._op("Mul", forget_gate, c, name="kept")
        c_next = self._op("Add", kept, self._op("Mul", input_gate, candidate, name="written"), name="c_next")
        output_gate = self._activate(gate, self._peep(o, peep_o, c_next), "output_gate")
        squashed = self._unclipped(squash_cell, c_next, "squashed")
        return [self._op("Mul", output_gate, squashed, name="h_next"), c_next]

    def _peepholes(self) -> list[Value | None]:
        if self.weights.peepholes is None:
            return [None, None, None]
        array = self.b.array_of(self.weights.peepholes)
        names = ["peep_input", "peep_output", "peep_forget"]
        if array is None:
            return list(self.b.split(self.weights.peepholes, names))
        return [self.b.constant(part, name) for part, name in zip(np.split(array, 3), names, strict=True)]

    def _peep(self, total: Value, peephole: Value | None, c: Value) -> Value:
        if peephole is None:
            return total
        return self._op("Add", total, self._op("Mul", peephole, c, name="peeped"), name=total.name)


def _affine(cell: Cell, function: ActivationRow, value: Value, name: str) -> Value:
    scaled = cell.b.op("Mul", value, cell._scalar(function.alpha or 0.0))
    return cell.b.op("Add", scaled, cell._scalar(function.beta or 0.0), name=name)


def _scaled_tanh(cell: Cell, function: ActivationRow, value: Value, name: str) -> Value:
    inner = cell.b.op("Tanh", cell.b.op("Mul", value, cell._scalar(function.beta or 0.0)))
    return cell.b.op("Mul", inner, cell._scalar(function.alpha or 0.0), name=name)
