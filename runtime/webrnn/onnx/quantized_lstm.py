"""DynamicQuantizeLSTM of onnxruntime: an LSTM with 8-bit weights, whose inputs are quantized as they come.

X is quantized as a whole, before the loop, the state of the whole batch at each step. W is [directions, inputs,
4 * hidden], R [directions, hidden, 4 * hidden]: the other way round than those of an LSTM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from webrnn.errors import ModelError
from webrnn.ir import DType, GraphBuilder, Node, Value

from .cells import LstmCell, RecurrentAttributes, WeightCutter, Weights, added, scalar_like
from .contributed import Call
from .operands import expect_shape
from .recurrent import B, Layer, P, R, W, _Direction

W_SCALE, W_ZERO, R_SCALE, R_ZERO = range(8, 12)


def expand_quantized_lstm(c: Call) -> list[Value]:
    given = [*c.node.inputs, *[None] * (12 - len(c.node.inputs))]
    for index in (0, W, R, W_SCALE, W_ZERO, R_SCALE, R_ZERO):
        c.required(index)
    attrs = dict(c.node.attrs)
    if not attrs.get("clip", 0.0) > 0:
        attrs.pop("clip", None)
    c.rest(*c.node.attrs)
    made = [c.b.value(name) for name in ("y", "y_h", "y_c")]
    node = Node("LSTM", given[:8], [*made], attrs, c.node.name)
    _QuantizedLayer(c.b, node, RecurrentAttributes.of(node, 3), given[8:12]).run()
    return made


@dataclass(frozen=True)
class _Matrix:
    """8-bit weights of one direction, with one scale and zero point, or one for each column."""

    weights: Value
    scale: Value
    zero: Value

    def multiply(self, b: GraphBuilder, x: Value) -> Value:
        """x · weights, all of x quantized by one scale."""
        quantized, scale, zero = (b.value(name) for name in ("quantized", "scale", "zero"))
        b.add(Node("DynamicQuantizeLinear", [x], [quantized, scale, zero]))
        weights, factor, offset = (b.capture(each) if b.parent is not None else each for each in self._operands)
        total = b.op("MatMulInteger", quantized, weights, zero, offset)
        return b.op("Mul", b.op("Cast", total, to=int(DType.FLOAT)), b.op("Mul", scale, factor))

    @property
    def _operands(self) -> tuple[Value, Value, Value]:
        return self.weights, self.scale, self.zero


class _QuantizedCell(LstmCell):
    """Its first operand is what the gates get from X."""

    def step(self, x: Value, *states: Value) -> list[Value]:
        h, c = states
        if self.running is not None:  # a sequence that has ended has no part in the scale
            h = self.b.op("Where", self.running, h, scalar_like(self.b, 0.0, h))
        hw, peepholes = self.matrix.multiply(self.b, h), self.weights.peepholes
        inputs = [x, hw, c] if peepholes is None else [x, hw, c, self.b.capture(peepholes)]
        return self._cell("LstmCell", [*inputs], ["h_next", "c_next"], couple=int(self.attributes.input_forget))

    matrix: _Matrix


class _QuantizedLayer(Layer):
    def __init__(
        self, builder: GraphBuilder, node: Node, attributes: RecurrentAttributes, scales: Sequence[Value | None]
    ):
        super().__init__(builder, node, attributes, self._make_cell, 4, 2)
        self._scales = scales
        self._matrix: _Matrix | None = None

    def _make_cell(self, *arguments) -> _QuantizedCell:  # type: ignore[no-untyped-def]
        cell = _QuantizedCell(*arguments)
        assert self._matrix is not None
        cell.matrix = self._matrix
        return cell

    def _hidden_size(self) -> int:
        shape = self._required(R, "R").shape
        if shape is None or len(shape) != 3 or not isinstance(shape[1], int) or shape[1] < 1:
            raise ModelError("R has to be of known shape [directions, hidden, 4 * hidden]")
        declared = self.attributes.hidden_size
        if declared is not None and declared != shape[1]:
            raise ModelError(f"{declared} contradicts the {shape[1]} rows of R", attribute="hidden_size")
        return shape[1]

    def _checked_input(self, x: Value) -> Value:
        hidden, n_directions = self._hidden_size(), len(self.attributes.directions)
        shape = self._required(W, "W").shape
        inputs = shape[1] if shape is not None and len(shape) == 3 else None
        expect_shape(self.b, self._required(W, "W"), (n_directions, None, 4 * hidden), "W", self.prefix)
        expect_shape(self.b, self._required(R, "R"), (n_directions, hidden, 4 * hidden), "R", self.prefix)
        return expect_shape(self.b, x, (None, None, inputs if isinstance(inputs, int) else None), "X", self.prefix)

    def _state_type(self, x: Value) -> DType | None:
        return DType.FLOAT

    def _matrix_of(self, weights: int, scales: Sequence[Value | None], direction: int) -> _Matrix:
        whole = [self._required(weights, "WR"[weights - 1]), *scales]
        return _Matrix(*(self._of_direction(value, direction) for value in whole if value is not None))

    def _of_direction(self, whole: Value, direction: int) -> Value:
        array = self.b.array_of(whole)
        if array is not None:
            return self.b.constant(np.ascontiguousarray(array[direction]), whole.name, whole.dtype)
        return self.b.op("Gather", whole, self.b.constant(np.int64(direction), "direction"), axis=0)

    def _scan(
        self, index: int, reverse: bool, x: Value, cutter: WeightCutter, inits: Sequence[Value], mask: Value | None,
        lengths: Value | None,
    ) -> _Direction:  # fmt: skip
        self._matrix = self._matrix_of(R, self._scales[2:], index)
        if mask is not None:  # neither have steps that no sequence reaches
            lasting = self.b.op("ReduceMax", self.b.op("Cast", mask, to=int(DType.FLOAT)), self.b.ints(1), keepdims=1)
            some = self.b.op("Cast", lasting, to=int(DType.BOOL))
            x = self.b.op("Where", some, x, self.b.constant(np.float32(0), "zero"))
        gates = self._matrix_of(W, self._scales[:2], index).multiply(self.b, x)
        biases = [cutter.bias(self.inputs[B], half, index) for half in range(2)]
        if biases[0] is not None and biases[1] is not None:
            gates = self.b.op("Add", gates, added(self.b, biases[0], biases[1]))
        gates.dtype = DType.FLOAT
        return super()._scan(index, reverse, gates, cutter, inits, mask, lengths)

    def _weights(self, cutter: WeightCutter, index: int) -> Weights:
        nothing = self._required(R, "R")
        return Weights(nothing, nothing, None, None, cutter.peepholes(self.inputs[P], index), cutter.hidden)
