"""Linear and the recurrent cells in numpy: op by op what they stand for, so that fusing changes no bit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from webrnn import reference
from webrnn.checks.arrays import call
from webrnn.errors import ShapeError
from webrnn.ir.activations import ACTIVATION_ROWS
from webrnn.reference.narrow import BFLOAT16, decode, encode

Array: TypeAlias = np.ndarray
Fused: TypeAlias = Callable[[list[Any], dict[str, Any]], list[Any]]

FUSED_OPS: dict[str, Fused] = {}


def fused(op: str) -> Callable[[Fused], Fused]:
    """Put a function into the table: without numpy's warnings about overflow and NaN."""

    def register(function: Fused) -> Fused:
        def run(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
            with np.errstate(all="ignore"):
                if arguments[0].dtype != BFLOAT16.dtype:
                    return function(arguments, attrs)
                wide = [None if array is None else decode(array) for array in arguments]
                return [None if array is None else encode(array, BFLOAT16) for array in function(wide, attrs)]

        FUSED_OPS[op] = run
        return function

    return register


@fused("Linear")
def linear(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    x, w, bias = [*arguments, None][:3]
    if x.ndim < 2 or w.ndim != 2 or (bias is not None and bias.shape != w.shape[1:]):
        shapes = ", ".join(str(list(each.shape)) for each in (x, w, bias) if each is not None)
        raise ShapeError(f"a Linear takes [..., K], [K, N] and [N], given are {shapes}")
    product = _op("MatMul", x, w)
    return [product if bias is None else _op("Add", product, bias)]


@fused("RnnCell")
def rnn_cell(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    xw, hw = arguments
    hidden_size(xw, (hw, 1))
    return [activation(attrs, 0, xw + hw)]


@fused("GruCell")
def gru_cell(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    xw, hw, h = arguments
    width = hidden_size(h, (xw, 3), (hw, 3))
    gates = activation(attrs, 0, xw[..., : 2 * width] + hw[..., : 2 * width])
    z, r = gates[..., :width], gates[..., width:]
    n = activation(attrs, 1, xw[..., 2 * width :] + r * hw[..., 2 * width :])
    return [(1 - z) * n + z * h]


@fused("GruReset")
def gru_reset(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    xw, hw, h = arguments
    width = hidden_size(h, (xw, 3), (hw, 2))
    gates = activation(attrs, 0, xw[..., : 2 * width] + hw)
    return [gates[..., :width], gates[..., width:] * h]


@fused("GruUpdate")
def gru_update(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    xw, hn, z, h = arguments
    width = hidden_size(h, (xw, 3), (hn, 1), (z, 1))
    n = activation(attrs, 1, xw[..., 2 * width :] + hn)
    return [(1 - z) * n + z * h]


@fused("LstmCell")
def lstm_cell(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    xw, hw, c, peephole = [*arguments, None][:4]
    width = hidden_size(c, (xw, 4), (hw, 4))
    total = xw + hw
    i, o, f, n = (total[..., k * width : (k + 1) * width] for k in range(4))
    if peephole is None:
        gates = activation(attrs, 0, total[..., : 3 * width])
        i, o, f = (gates[..., k * width : (k + 1) * width] for k in range(3))
    else:
        peep_i, peep_o, peep_f = np.split(peephole, 3)
        i, f = activation(attrs, 0, i + peep_i * c), activation(attrs, 0, f + peep_f * c)
    if attrs["couple"]:
        f = 1 - i
    c_next = f * c + i * activation(attrs, 1, n)
    if peephole is not None:
        o = activation(attrs, 0, o + peep_o * c_next)
    return [o * activation(attrs, 2, c_next, clipped=False), c_next]


def hidden_size(state: Array, *gates: tuple[Array, int]) -> int:
    """The hidden size, if these hold so many gates for each row of a state."""
    for wide, count in gates:
        if wide.shape != (*state.shape[:-1], count * state.shape[-1]):
            raise ShapeError(f"{list(wide.shape)} does not hold {count} gates for a state of {list(state.shape)}")
    return state.shape[-1]


def activation(attrs: dict[str, Any], which: int, x: Array, clipped: bool = True) -> Array:
    """The function of a cell in this place."""
    name, params = attrs["activations"][which], attrs["params"]
    clip = params[0]
    if clipped and clip < np.inf:
        limit = np.array(clip, x.dtype)
        x = _op("Clip", x, -limit, limit)
    if name == "tanh":
        return np.tanh(x)
    if name == "sigmoid":
        x = np.negative(x)  # not in place: numpy 2.4 writes other numbers to a column of a matrix of four
        np.exp(x, out=x)
        return np.divide(1, np.add(1, x, out=x), out=x)
    alpha, beta = params[2 * which + 1 : 2 * which + 3]
    if name == "none":
        return x
    if name == "affine":
        return x * np.array(alpha, x.dtype) + np.array(beta, x.dtype)
    if name == "scaled_tanh":
        return _op("Tanh", x * np.array(beta, x.dtype)) * np.array(alpha, x.dtype)
    row = _ROWS[name]
    if row.alpha is None:
        return _op(row.onnx, x)
    return _op(row.onnx, x, alpha=alpha) if row.beta is None else _op(row.onnx, x, alpha=alpha, beta=beta)


_ROWS = {row.name: row for row in ACTIVATION_ROWS}

_function = cache(partial(reference.lookup, ""))


def _op(op: str, *inputs: Any, **attrs: Any) -> Array:
    try:
        return np.asarray(_function(op)(*inputs, **attrs))  # type: ignore[misc]
    except Exception:  # the checked way says what is wrong
        result: Array = call(op, "", inputs, attrs)[0]
        return result
