"""DynamicQuantizeLSTM of onnxruntime: an LSTM with 8-bit weights, whose inputs are quantized as they come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from webrnn.errors import ModelError, ShapeError, UnsupportedOp

from .activation import relu, sigmoid, softplus, softsign
from .arrays import Array, int_list, require_rank, require_shape
from .linear import integer_product
from .quantize import dynamic_range, round_and_saturate
from .registry import op

_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "relu": relu,
    "softsign": softsign,
    "softplus": softplus,
}


@dataclass(frozen=True)
class _Weights:
    """An 8-bit matrix (inputs, 4 * hidden) with one scale and zero point, or one for each column."""

    matrix: Array
    scale: Array
    zero_point: Array

    def multiply(self, x: Array) -> Array:
        """x @ weights, with all rows of x quantized by one scale."""
        scale, zero_point = dynamic_range(x)
        quantized = round_and_saturate(x / scale, zero_point, np.dtype(np.uint8))
        product = integer_product(quantized, self.matrix, zero_point, self.zero_point)
        return product.astype(np.float32) * (scale * self.scale)


@op("DynamicQuantizeLSTM", domain="com.microsoft", may_be_none=(3, 4, 5, 6, 7))
def dynamic_quantize_lstm(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    sequence_lens: Array | None,
    initial_h: Array | None,
    initial_c: Array | None,
    p: Array | None,
    w_scale: Array,
    w_zero_point: Array,
    r_scale: Array,
    r_zero_point: Array,
    *,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    activations: list[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
) -> tuple[Array, Array, Array]:
    """X is (steps, batch, inputs), W (directions, inputs, 4 * hidden), R (directions, hidden, 4 * hidden).

    The gates are in the order input, output, forget, cell. X is quantized as a whole, the state of the whole batch
    at each step: what onnxruntime does with one thread (with more it splits the batch, and gives other numbers).
    """
    require_rank(x, 3, "X")
    require_rank(r, 3, "R")
    steps, batch, inputs = x.shape
    directions, hidden = r.shape[0], r.shape[1]
    _check_attributes(direction, directions, hidden, hidden_size, activation_alpha, activation_beta)
    require_shape(w, (directions, inputs, 4 * hidden), "W")
    require_shape(r, (directions, hidden, 4 * hidden), "R")
    functions = _activation_functions(activations, directions)
    lengths = np.full(batch, steps) if sequence_lens is None else np.array(int_list(sequence_lens, "sequence_lens"))
    if lengths.shape != (batch,) or np.any((lengths < 0) | (lengths > steps)):
        raise ShapeError(f"sequence_lens {lengths.tolist()} do not fit a batch of {batch} and {steps} steps")
    state_shape = (directions, batch, hidden)
    bias = _given_or_zeros(b, (directions, 8 * hidden), "B").reshape(directions, 2, 4 * hidden).sum(axis=1)
    peepholes = _given_or_zeros(p, (directions, 3 * hidden), "P")
    h = _given_or_zeros(initial_h, state_shape, "initial_h").copy()
    c = _given_or_zeros(initial_c, state_shape, "initial_c").copy()
    y = np.zeros((steps, directions, batch, hidden), np.float32)
    longest = int(lengths.max(initial=0))
    for d in range(directions):
        backward = direction == "reverse" or d == 1
        input_weights = _weights(w, w_scale, w_zero_point, d)
        state_weights = _weights(r, r_scale, r_zero_point, d)
        gates = input_weights.multiply(x[:longest].reshape(-1, inputs)).reshape(longest, batch, -1) + bias[d]
        for step in range(longest):
            active = step < lengths
            row = np.where(active, lengths - 1 - step, 0) if backward else np.full(batch, step)
            total = gates[row, np.arange(batch)] + state_weights.multiply(np.where(active[:, None], h[d], 0))
            new_h, new_c = _cell(total, c[d], peepholes[d], functions[d], clip, bool(input_forget))
            h[d], c[d] = np.where(active[:, None], new_h, h[d]), np.where(active[:, None], new_c, c[d])
            y[row[active], d, active.nonzero()[0]] = new_h[active]
    h[:, lengths == 0] = c[:, lengths == 0] = 0
    return y, h, c


def _cell(
    total: Array,
    c: Array,
    peepholes: Array,
    functions: list[Callable[[Array], Array]],
    clip: float | None,
    input_forget: bool,
) -> tuple[Array, Array]:
    gate, candidate, output = functions
    to_input, to_output, to_forget = np.split(peepholes, 3)
    i, o, f, z = np.split(total, 4, axis=-1)

    def clipped(value: Array) -> Array:
        return value if clip is None or clip <= 0 else np.clip(value, -clip, clip)

    i = gate(clipped(i + to_input * c))
    f = 1 - i if input_forget else gate(clipped(f + to_forget * c))
    new_c = f * c + i * candidate(clipped(z))
    o = gate(clipped(o + to_output * new_c))
    return o * output(new_c), new_c


def _check_attributes(
    direction: str,
    directions: int,
    hidden: int,
    hidden_size: int | None,
    alpha: list[float] | None,
    beta: list[float] | None,
) -> None:
    if direction not in ("forward", "reverse", "bidirectional"):
        raise UnsupportedOp(f"{direction!r} is not supported", attribute="direction")
    if directions != (2 if direction == "bidirectional" else 1):
        raise ShapeError(f"R has {directions} directions, the attribute says {direction}", attribute="direction")
    if hidden_size is not None and hidden_size != hidden:
        raise ShapeError(f"{hidden_size} contradicts the {hidden} rows of R", attribute="hidden_size")
    if alpha or beta:
        raise UnsupportedOp("activations with alpha or beta are not supported", attribute="activation_alpha")


def _activation_functions(names: list[str] | None, directions: int) -> list[list[Callable[[Array], Array]]]:
    chosen = names or ["Sigmoid", "Tanh", "Tanh"] * directions
    if len(chosen) != 3 * directions:
        raise ModelError(f"{len(chosen)} functions for {directions} directions", attribute="activations")
    for name in chosen:
        if name.lower() not in _ACTIVATIONS:
            raise UnsupportedOp(f"{name!r} is not supported", attribute="activations")
    functions = [_ACTIVATIONS[name.lower()] for name in chosen]
    return [functions[3 * d : 3 * d + 3] for d in range(directions)]


def _weights(matrix: Array, scale: Array, zero_point: Array, direction: int) -> _Weights:
    directions, _, columns = matrix.shape
    for name, parameter in (("scale", scale), ("zero point", zero_point)):
        if parameter.shape not in ((directions,), (directions, columns)):
            raise ShapeError(f"a {name} of shape {list(parameter.shape)} does not fit weights {list(matrix.shape)}")
    return _Weights(matrix[direction], scale[direction], np.atleast_1d(zero_point[direction]))


def _given_or_zeros(x: Array | None, shape: tuple[int, ...], name: str) -> Array:
    if x is None:
        return np.zeros(shape, np.float32)
    require_shape(x, shape, name)
    return x
