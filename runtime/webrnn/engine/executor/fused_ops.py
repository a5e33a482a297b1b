"""Linear and the recurrent cells in numpy: op by op what they stand for, so that fusing changes no bit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any

import numpy as np

from webrnn import reference
from webrnn.checks.arrays import call
from webrnn.errors import ShapeError
from webrnn.ir.activations import ACTIVATION_ROWS

Array = np.ndarray


def linear(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    x, w, bias = [*arguments, None][:3]
    if x.ndim < 2 or w.ndim != 2 or (bias is not None and bias.shape != w.shape[1:]):
        shapes = ", ".join(str(list(each.shape)) for each in (x, w, bias) if each is not None)
        raise ShapeError(f"a Linear takes [..., K], [K, N] and [N], given are {shapes}")
    product = _op("MatMul", x, w)
    return [product if bias is None else _op("Add", product, bias)]


def rnn_cell(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    xw, hw = arguments
    return [_Functions(attrs)(0, _op("Add", xw, hw))]


def gru_cell(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    xw, hw, h = arguments
    functions = _Functions(attrs)
    (xz, xr, xn), (hz, hr, hn) = _gates(xw, h, 3), _gates(hw, h, 3)
    z = functions(0, _op("Add", xz, hz))
    r = functions(0, _op("Add", xr, hr))
    n = functions(1, _op("Add", xn, _op("Mul", r, hn)))
    return [_mix(z, n, h)]


def gru_reset(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    xw, hw, h = arguments
    functions = _Functions(attrs)
    (xz, xr, _), (hz, hr) = _gates(xw, h, 3), _gates(hw, h, 2)
    return [functions(0, _op("Add", xz, hz)), _op("Mul", functions(0, _op("Add", xr, hr)), h)]


def gru_update(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    xw, hn, z, h = arguments
    n = _Functions(attrs)(1, _op("Add", _gates(xw, h, 3)[2], hn))
    return [_mix(z, n, h)]


def lstm_cell(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    xw, hw, c, peephole = [*arguments, None][:4]
    functions = _Functions(attrs)
    i, o, f, n = _gates(_op("Add", xw, hw), c, 4)
    peep_i, peep_o, peep_f = [None] * 3 if peephole is None else np.split(peephole, 3)
    i = functions(0, _peep(i, peep_i, c))
    f = _op("Sub", np.array(1, i.dtype), i) if attrs["couple"] else functions(0, _peep(f, peep_f, c))
    n = functions(1, n)
    c_next = _op("Add", _op("Mul", f, c), _op("Mul", i, n))
    o = functions(0, _peep(o, peep_o, c_next))
    return [_op("Mul", o, functions(2, c_next, clipped=False)), c_next]


class _Functions:
    """The activations of a cell."""

    def __init__(self, attrs: dict[str, Any]):
        self._names = attrs["activations"]
        self._clip, *self._numbers = attrs["params"]

    def __call__(self, which: int, value: Array, clipped: bool = True) -> Array:
        if clipped and self._clip < np.inf:
            limit = np.array(self._clip, value.dtype)
            value = _op("Clip", value, -limit, limit)
        alpha, beta = self._numbers[2 * which : 2 * which + 2]
        return _activation(self._names[which], value, alpha, beta)


_function = cache(partial(reference.lookup, ""))


def _op(op: str, *inputs: Any, **attrs: Any) -> Array:
    try:
        return np.asarray(_function(op)(*inputs, **attrs))  # type: ignore[misc]
    except Exception:  # the checked way says what is wrong
        result: Array = call(op, "", inputs, attrs)[0]
        return result


def _gates(wide: Array, state: Array, count: int) -> list[Array]:
    if wide.shape != (*state.shape[:-1], count * state.shape[-1]):
        raise ShapeError(f"{list(wide.shape)} does not hold {count} gates for a state of {list(state.shape)}")
    return np.split(wide, count, axis=-1)


def _mix(z: Array, n: Array, h: Array) -> Array:
    return _op("Add", _op("Mul", _op("Sub", np.array(1, z.dtype), z), n), _op("Mul", z, h))


def _peep(total: Array, peephole: Array | None, c: Array) -> Array:
    return total if peephole is None else _op("Add", total, _op("Mul", peephole, c))


def _activation(name: str, x: Array, alpha: float, beta: float) -> Array:
    if name == "none":
        return x
    if name == "affine":
        return _op("Add", _op("Mul", x, np.array(alpha, x.dtype)), np.array(beta, x.dtype))
    if name == "scaled_tanh":
        return _op("Mul", _op("Tanh", _op("Mul", x, np.array(beta, x.dtype))), np.array(alpha, x.dtype))
    row = _ROWS[name]
    attrs = {} if row.alpha is None else {"alpha": alpha} if row.beta is None else {"alpha": alpha, "beta": beta}
    return _op(row.onnx, x, **attrs)


_ROWS = {row.name: row for row in ACTIVATION_ROWS}


def _quiet(
    function: Callable[[list[Any], dict[str, Any]], list[Any]],
) -> Callable[[list[Any], dict[str, Any]], list[Any]]:
    """Without numpy's warnings about overflow and NaN."""

    @wraps(function)
    def call(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
        with np.errstate(all="ignore"):
            return function(arguments, attrs)

    return call


FUSED_OPS: dict[str, Callable[[list[Any], dict[str, Any]], list[Any]]] = {
    "Linear": _quiet(linear),
    "RnnCell": _quiet(rnn_cell),
    "GruCell": _quiet(gru_cell),
    "GruReset": _quiet(gru_reset),
    "GruUpdate": _quiet(gru_update),
    "LstmCell": _quiet(lstm_cell),
}
