"""RNN, GRU and LSTM as ops of ir/fused.py: their weights, the product of the whole sequence, and one step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.ir import WEBRNN, GraphBuilder, Node, Value

from .operands import expect_shape
from .recurrent_attributes import RecurrentAttributes


@dataclass
class Weights:
    """Of one direction: W and R are transposed to [inputs, gates] and [hidden, gates], the biases are [gates]."""

    w: Value
    r: Value
    w_bias: Value | None
    r_bias: Value | None
    peepholes: Value | None
    hidden: int


class WeightCutter:
    """Constant weights become other constants, views where possible; others are cut by nodes when the graph runs."""

    def __init__(self, builder: GraphBuilder, n_gates: int, n_directions: int, hidden: int, prefix: str):
        self.b = builder
        self.n_gates, self.n_directions, self.hidden, self.prefix = n_gates, n_directions, hidden, prefix

    def input_weights(self, w: Value, direction: int) -> Value:
        """W: [directions, gates * hidden, inputs] to [inputs, gates * hidden]."""
        return self._transposed(w, direction, None, "W")

    def recurrent_weights(self, r: Value, direction: int) -> Value:
        """R: [directions, gates * hidden, hidden] to [hidden, gates * hidden]."""
        return self._transposed(r, direction, self.hidden, "R")

    def bias(self, b: Value | None, half: int, direction: int) -> Value | None:
        """B: [directions, 2 * gates * hidden] to the [gates * hidden] of W (half 0) or of R (half 1)."""
        size = self.n_gates * self.hidden
        return self._row(b, direction, 2 * size, slice(half * size, half * size + size), "B")

    def peepholes(self, p: Value | None, direction: int) -> Value | None:
        """P: [directions, 3 * hidden] to [3 * hidden]."""
        return self._row(p, direction, 3 * self.hidden, slice(0, 3 * self.hidden), "P")

    def _transposed(self, whole: Value, direction: int, columns: int | None, name: str) -> Value:
        whole = expect_shape(self.b, whole, (self.n_directions, self.n_gates * self.hidden, columns), name, self.prefix)
        array = self.b.array_of(whole)
        if array is not None:
            return self.b.constant(array[direction].T, f"{self.prefix}_{name}T", whole.dtype)
        one = self.b.op("Gather", whole, self.b.constant(np.int64(direction), "direction"), axis=0)
        return self.b.op("Transpose", one, perm=[1, 0], name=f"{self.prefix}_{name}T")

    def _row(self, whole: Value | None, direction: int, columns: int, part: slice, name: str) -> Value | None:
        if whole is None:
            return None
        whole = expect_shape(self.b, whole, (self.n_directions, columns), name, self.prefix)
        array = self.b.array_of(whole)
        if array is not None:
            return self.b.constant(array[direction, part], f"{self.prefix}_{name}", whole.dtype)
        one = self.b.op("Gather", whole, self.b.constant(np.int64(direction), "direction"), axis=0)
        return slice_last(self.b, one, part.start, part.stop)


def slice_last(b: GraphBuilder, value: Value, start: int, stop: int) -> Value:
    """value[..., start:stop]; a constant stays one."""
    array = b.array_of(value)
    if array is not None:
        return b.constant(array[..., start:stop], value.name, value.dtype)
    return b.op("Slice", value, b.ints(start), b.ints(stop), b.ints(-1))


def added(b: GraphBuilder, left: Value, right: Value) -> Value:
    """left + right; of two constants another one."""
    left_array, right_array = b.array_of(left), b.array_of(right)
    if left_array is not None and right_array is not None:
        with np.errstate(all="ignore"):
            return b.constant(left_array + right_array, left.name, left.dtype)
    return b.op("Add", left, right)


def scalar_like(b: GraphBuilder, number: float, value: Value) -> Value:
    """A scalar of the element type of `value`."""
    if value.dtype is not None:
        return b.constant(np.array(number, value.dtype.array_type), "scalar")
    return b.op("CastLike", b.constant(np.float32(number), "scalar"), value)


class Cell:
    """What the cells have in common. The bias of W has that of R inside, unless a cell needs them apart."""

    def __init__(
        self, outside: GraphBuilder, body: GraphBuilder, weights: Weights, attributes: RecurrentAttributes, index: int
    ):
        self.outside, self.b, self.weights, self.attributes = outside, body, weights, attributes
        self.activations = attributes.activations[index]

    def project(self, x: Value, name: str) -> Value:
        """X·Wᵀ + b, of all steps."""
        bias, other = self.weights.w_bias, self.weights.r_bias
        if bias is not None and other is not None and not self.biases_are_apart:
            bias = added(self.outside, bias, other)
        return _linear(self.outside, x, self.weights.w, bias, f"{name}/from_x")

    def step(self, xw: Value, *states: Value) -> list[Value]:
        """The next states, H first."""
        raise NotImplementedError

    @property
    def biases_are_apart(self) -> bool:
        return False

    def _product(self, value: Value, weights: Value, name: str, bias: Value | None = None) -> Value:
        return _linear(self.b, value, self.b.capture(weights), None if bias is None else self.b.capture(bias), name)

    def _cell(self, op: str, inputs: list[Value | None], outputs: list[str], **attrs: int) -> list[Value]:
        clip = math.inf if self.attributes.clip is None else self.attributes.clip
        numbers = [number or 0.0 for row in self.activations for number in (row.alpha, row.beta)]
        shared: dict[str, Any] = {"activations": tuple(row.name for row in self.activations)}
        made = [self.b.value(name) for name in outputs]
        self.b.add(Node(op, inputs, [*made], {**shared, "params": (clip, *numbers), **attrs}, outputs[0], WEBRNN))
        return made


def _linear(b: GraphBuilder, x: Value, weights: Value, bias: Value | None, name: str) -> Value:
    made = b.value(name)
    b.add(Node("Linear", [x, weights] if bias is None else [x, weights, bias], [made], {}, name, WEBRNN))
    return made


class RnnCell(Cell):
    """H' = f(X·Wᵀ + H·Rᵀ + Wb + Rb)"""

    def step(self, xw: Value, *states: Value) -> list[Value]:
        (h,) = states
        return self._cell("RnnCell", [xw, self._product(h, self.weights.r, "from_h")], ["h_next"])


class GruCell(Cell):
    """z, r = f(X·Wᵀ + H·Rᵀ + b); n = g(X·Wnᵀ + reset(H)); H' = (1 - z)·n + z·H

    reset is (r·H)·Rnᵀ + b, or with linear_before_reset r·(H·Rnᵀ + b).
    """

    def step(self, xw: Value, *states: Value) -> list[Value]:
        (h,) = states
        if self.attributes.linear_before_reset:
            hw = self._product(h, self.weights.r, "from_h", self.weights.r_bias)
            return self._cell("GruCell", [xw, hw, h], ["h_next"])
        cut, end = 2 * self.weights.hidden, 3 * self.weights.hidden
        hw = self._product(h, slice_last(self.outside, self.weights.r, 0, cut), "from_h")
        update, remembered = self._cell("GruReset", [xw, hw, h], ["update", "remembered"])
        hn = self._product(remembered, slice_last(self.outside, self.weights.r, cut, end), "from_remembered")
        return self._cell("GruUpdate", [xw, hn, update, h], ["h_next"])

    @property
    def biases_are_apart(self) -> bool:
        return self.attributes.linear_before_reset


class LstmCell(Cell):
    """i, o, f = f(X·Wᵀ + H·Rᵀ + P·C + b); n = g(...); C' = f·C + i·n; H' = o·h(C')

    The output gate's peephole sees C'; with input_forget the forget gate is 1 - i. C' is not clipped, neither for h nor
    for the next step: so does onnxruntime read the "input of activations" that ONNX clips.
    """

    def step(self, xw: Value, *states: Value) -> list[Value]:
        h, c = states
        hw, peepholes = self._product(h, self.weights.r, "from_h"), self.weights.peepholes
        inputs = [xw, hw, c] if peepholes is None else [xw, hw, c, self.b.capture(peepholes)]
        return self._cell("LstmCell", [*inputs], ["h_next", "c_next"], couple=int(self.attributes.input_forget))
