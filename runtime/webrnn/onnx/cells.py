"""RNN, GRU and LSTM: their attributes, their weights, and one step as ops of ir/fused.py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.errors import ModelError, UnsupportedOp
from webrnn.ir import WEBRNN, GraphBuilder, Node, Value
from webrnn.ir.activations import ACTIVATION_ROWS, ActivationRow
from webrnn.reference.registry import call

from .operands import expect_shape

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""For each direction that the node runs, whether it is reversed."""

_DEFAULT_ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}

_KNOWN = {
    "activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "input_forget", "layout",
    "linear_before_reset",
}  # fmt: skip

_BY_LOWER_CASE = {row.onnx.lower(): row for row in ACTIVATION_ROWS if row.onnx}


@dataclass(frozen=True)
class RecurrentAttributes:
    directions: tuple[bool, ...]
    activations: tuple[tuple[ActivationRow, ...], ...]
    """For each direction the functions f, g, h."""
    hidden_size: int | None
    clip: float | None
    batch_first: bool
    input_forget: bool
    linear_before_reset: bool

    @staticmethod
    def of(node: Node, n_activations: int) -> RecurrentAttributes:
        attrs = node.attrs
        for name in attrs.keys() - _KNOWN:
            raise UnsupportedOp("this attribute is not known", attribute=name)
        direction = _of_kind(attrs, "direction", str, "forward")
        if direction not in DIRECTIONS:
            raise ModelError(f"{direction!r} is not a direction", attribute="direction")
        directions = DIRECTIONS[direction]
        layout = _of_kind(attrs, "layout", int, 0)
        if layout not in (0, 1):
            raise ModelError(f"layout is {layout}", attribute="layout")
        clip = _of_kind(attrs, "clip", float, None)
        if clip is not None and not clip >= 0:
            raise ModelError(f"clip is {clip}", attribute="clip")
        return RecurrentAttributes(
            directions,
            _activations(node, n_activations, len(directions)),
            _of_kind(attrs, "hidden_size", int, None),
            clip,
            layout == 1,
            _of_kind(attrs, "input_forget", int, 0) != 0,
            _of_kind(attrs, "linear_before_reset", int, 0) != 0,
        )


def _of_kind(attrs: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    value = attrs.get(name, default)
    if value is not default and not isinstance(value, kind):
        raise ModelError(f"the attribute is a {type(value).__name__}, it needs to be a {kind.__name__}", attribute=name)
    return value


def _activations(node: Node, per_direction: int, n_directions: int) -> tuple[tuple[ActivationRow, ...], ...]:
    names = _of_kind(node.attrs, "activations", list, None)
    if not names:
        names = _DEFAULT_ACTIVATIONS[node.op] * n_directions
    if len(names) != per_direction * n_directions:
        raise ModelError(
            f"{len(names)} functions given, it needs {per_direction * n_directions}", attribute="activations"
        )
    alphas = iter(_of_kind(node.attrs, "activation_alpha", list, []))
    betas = iter(_of_kind(node.attrs, "activation_beta", list, []))
    functions = [_activation(name, alphas, betas) for name in names]
    return tuple(tuple(functions[start : start + per_direction]) for start in range(0, len(functions), per_direction))


def _activation(name: str, alphas: Iterator[float], betas: Iterator[float]) -> ActivationRow:
    """The values of alpha and beta go, in order, to the functions that have them, those that are left to none; as in
    onnxruntime."""
    known = _BY_LOWER_CASE.get(name.lower() if isinstance(name, str) else "")
    if known is None:
        raise UnsupportedOp(f"the activation {name!r} is not known", attribute="activations")
    return known._replace(
        alpha=None if known.alpha is None else float(next(alphas, known.alpha)),
        beta=None if known.beta is None else float(next(betas, known.beta)),
    )


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
        return b.constant(call("Add", "", [left_array, right_array], {})[0], left.name, left.dtype)
    return b.op("Add", left, right)


def scalar_like(b: GraphBuilder, number: float, value: Value) -> Value:
    """A scalar of the element type of `value`."""
    if value.dtype is not None:
        if not value.dtype.is_narrow:
            return b.constant(np.array(number, value.dtype.array_type), "scalar")
        from webrnn.reference.narrow import TYPES, encode  # few models have such types

        return b.constant(encode(np.array(number), TYPES[value.dtype]), "scalar")
    return b.op("CastLike", b.constant(np.float32(number), "scalar"), value)


class Cell:
    """What the cells have in common."""

    def __init__(
        self, outside: GraphBuilder, body: GraphBuilder, weights: Weights, attributes: RecurrentAttributes, index: int
    ):
        self.outside, self.b, self.weights, self.attributes = outside, body, weights, attributes
        self.activations = attributes.activations[index]
        self.running: Value | None = None
        """Which sequences of the batch still last at this step; None if all do."""

    def step(self, x: Value, *states: Value) -> list[Value]:
        """The next states, H first."""
        raise NotImplementedError

    def _product(self, value: Value, weights: Value, bias: Value | None, name: str) -> Value:
        made = self.b.value(name)
        operands = [value, self.b.capture(weights), *([] if bias is None else [self.b.capture(bias)])]
        self.b.add(Node("Linear", [*operands], [made], {}, name, WEBRNN))
        return made

    def _joint_bias(self) -> Value | None:
        if self.weights.w_bias is None or self.weights.r_bias is None:
            return None
        return added(self.outside, self.weights.w_bias, self.weights.r_bias)

    def _cell(self, op: str, inputs: list[Value | None], outputs: list[str], **attrs: int) -> list[Value]:
        clip = math.inf if self.attributes.clip is None else self.attributes.clip
        numbers = [number or 0.0 for row in self.activations for number in (row.alpha, row.beta)]
        shared: dict[str, Any] = {"activations": tuple(row.name for row in self.activations)}
        made = [self.b.value(name) for name in outputs]
        self.b.add(Node(op, inputs, [*made], {**shared, "params": (clip, *numbers), **attrs}, outputs[0], WEBRNN))
        return made


class RnnCell(Cell):
    """H' = f(X·Wᵀ + H·Rᵀ + Wb + Rb)"""

    def step(self, x: Value, *states: Value) -> list[Value]:
        (h,) = states
        xw = self._product(x, self.weights.w, self._joint_bias(), "from_x")
        return self._cell("RnnCell", [xw, self._product(h, self.weights.r, None, "from_h")], ["h_next"])


class GruCell(Cell):
    """z, r = f(X·Wᵀ + H·Rᵀ + b); n = g(X·Wnᵀ + reset(H)); H' = (1 - z)·n + z·H

    reset is (r·H)·Rnᵀ + b, or with linear_before_reset r·(H·Rnᵀ + b).
    """

    def step(self, x: Value, *states: Value) -> list[Value]:
        (h,) = states
        if self.attributes.linear_before_reset:
            xw = self._product(x, self.weights.w, self.weights.w_bias, "from_x")
            hw = self._product(h, self.weights.r, self.weights.r_bias, "from_h")
            return self._cell("GruCell", [xw, hw, h], ["h_next"])
        xw = self._product(x, self.weights.w, self._joint_bias(), "from_x")
        cut, end = 2 * self.weights.hidden, 3 * self.weights.hidden
        hw = self._product(h, slice_last(self.outside, self.weights.r, 0, cut), None, "from_h")
        update, remembered = self._cell("GruReset", [xw, hw, h], ["update", "remembered"])
        hn = self._product(remembered, slice_last(self.outside, self.weights.r, cut, end), None, "from_remembered")
        return self._cell("GruUpdate", [xw, hn, update, h], ["h_next"])


class LstmCell(Cell):
    """i, o, f = f(X·Wᵀ + H·Rᵀ + P·C + b); n = g(...); C' = f·C + i·n; H' = o·h(C')

    The output gate's peephole sees C'; with input_forget the forget gate is 1 - i. C' is not clipped, neither for h nor
    for the next step: so does onnxruntime read the "input of activations" that ONNX clips.
    """

    def step(self, x: Value, *states: Value) -> list[Value]:
        h, c = states
        xw = self._product(x, self.weights.w, self._joint_bias(), "from_x")
        hw, peepholes = self._product(h, self.weights.r, None, "from_h"), self.weights.peepholes
        inputs = [xw, hw, c] if peepholes is None else [xw, hw, c, self.b.capture(peepholes)]
        return self._cell("LstmCell", [*inputs], ["h_next", "c_next"], couple=int(self.attributes.input_forget))
