"""Functions that are made of the operations of expressions.

`FUNCTIONS` are ops without an operation of their own. `COMPOSED` are operations that only some types have, for other
types. Float32 goes by way of float64 where only that has a function, so that nothing is lost in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .expressions import Register, Writer

_FAR = 22.0
"""From here on exp(-x) is nothing beside exp(x)."""


def _in_double(function: Callable[[Writer, Register], Register]) -> Callable[[Writer, Register], Register]:
    def run(w: Writer, x: Register) -> Register:
        return w.cast(function(w, w.cast(x, "f64")), w.types[x])

    return run


def _like(w: Writer, y: Register, x: Register) -> Register:
    """y, which is not negative, with the sign of x."""
    return w.op("select", w.op("less", x, 0.0), w.op("neg", y), w.op("select", w.op("equal", x, 0.0), x, y))


def _tan(w: Writer, x: Register) -> Register:
    return w.op("div", w.op("sin", x), w.op("cos", x))


def _asin(w: Writer, x: Register) -> Register:
    one = w.number(1.0, "f64")
    rest = w.op("mul", w.op("sub", one, x), w.op("add", one, x))
    return w.op("atan", w.op("div", x, w.op("sqrt", rest)))


def _acos(w: Writer, x: Register) -> Register:
    one = w.number(1.0, "f64")
    return w.op("mul", w.op("atan", w.op("sqrt", w.op("div", w.op("sub", one, x), w.op("add", one, x)))), 2.0)


def _half_exp(w: Writer, size: Register) -> Register:
    """exp(size) / 2, which may be finite where exp(size) is not."""
    half = w.op("exp", w.op("mul", size, 0.5))
    return w.op("mul", w.op("mul", half, 0.5), half)


def _sinh(w: Writer, x: Register) -> Register:
    size = w.op("abs", x)
    t = w.op("expm1", size)
    near = w.op("mul", w.op("add", t, w.op("div", t, w.op("add", t, 1.0))), 0.5)
    return _like(w, w.op("select", w.op("greater", size, _FAR), _half_exp(w, size), near), x)


def _cosh(w: Writer, x: Register) -> Register:
    size = w.op("abs", x)
    return w.op("add", _half_exp(w, size), w.op("mul", w.op("exp", w.op("neg", size)), 0.5))


def _asinh(w: Writer, x: Register) -> Register:
    size = w.op("abs", x)
    square = w.op("mul", size, size)
    root = w.op("add", w.op("sqrt", w.op("add", square, 1.0)), 1.0)
    near = w.op("log1p", w.op("add", size, w.op("div", square, root)))
    return _like(w, w.op("select", w.op("greater", size, 1e9), _log_of_double(w, size), near), x)


def _acosh(w: Writer, x: Register) -> Register:
    t = w.op("sub", x, 1.0)
    near = w.op("log1p", w.op("add", t, w.op("sqrt", w.op("mul", t, w.op("add", x, 1.0)))))
    return w.op("select", w.op("greater", x, 1e9), _log_of_double(w, x), near)


def _log_of_double(w: Writer, x: Register) -> Register:
    return w.op("add", w.op("log", x), math.log(2))


def _atanh(w: Writer, x: Register) -> Register:
    size = w.op("abs", x)
    ratio = w.op("div", w.op("add", size, size), w.op("sub", w.number(1.0, "f64"), size))
    return _like(w, w.op("mul", w.op("log1p", ratio), 0.5), x)


def _mish(w: Writer, x: Register) -> Register:
    softplus, tanh = (_operation(name) for name in ("softplus", "tanh"))
    return w.op("mul", x, tanh(w, softplus(w, x)))


def _operation(base: str) -> Callable[[Writer, Register], Register]:
    return lambda w, x: w.op(base, x) if w.has(base, w.types[x]) else COMPOSED[base](w, x)


FUNCTIONS: dict[str, Callable[..., Register]] = {
    "Tan": _in_double(_tan), "Asin": _in_double(_asin), "Acos": _in_double(_acos),
    "Sinh": _in_double(_sinh), "Cosh": _in_double(_cosh),
    "Asinh": _in_double(_asinh), "Acosh": _in_double(_acosh), "Atanh": _in_double(_atanh), "Mish": _mish,
}  # fmt: skip


# --- operations, for types that do not have them ----------------------------------------------------------------------


def _tanh(w: Writer, x: Register) -> Register:
    size = w.op("min", w.op("abs", x), _FAR)
    t = w.op("expm1", w.op("add", size, size))
    return _like(w, w.op("div", t, w.op("add", t, 2.0)), x)


def _sigmoid(w: Writer, x: Register) -> Register:
    return _reciprocal(w, w.op("add", w.op("exp", w.op("neg", x)), 1.0))


def _reciprocal(w: Writer, x: Register) -> Register:
    return w.op("div", w.number(1.0, w.types[x]), x)


def _ceil(w: Writer, x: Register) -> Register:
    return w.op("neg", w.op("floor", w.op("neg", x)))


def _relu(w: Writer, x: Register) -> Register:
    return w.op("max", x, 0)


def _softplus(w: Writer, x: Register) -> Register:
    return w.op("add", w.op("max", x, 0.0), w.op("log1p", w.op("exp", w.op("neg", w.op("abs", x)))))


def _softsign(w: Writer, x: Register) -> Register:
    return w.op("div", x, w.op("add", w.op("abs", x), 1.0))


def _below_zero(w: Writer, x: Register, below: Register) -> Register:
    return w.op("select", w.op("less", x, 0.0), below, x)


def _leaky_relu(w: Writer, x: Register, alpha: float = 0.01, beta: float = 0.0) -> Register:
    return _below_zero(w, x, w.op("mul", x, alpha))


def _elu(w: Writer, x: Register, alpha: float = 1.0, beta: float = 0.0) -> Register:
    return _below_zero(w, x, w.op("mul", w.op("expm1", x), alpha))


def _thresholded_relu(w: Writer, x: Register, alpha: float = 1.0, beta: float = 0.0) -> Register:
    return w.op("select", w.op("greater", x, alpha), x, w.number(0.0, w.types[x]))


def _hard_sigmoid(w: Writer, x: Register, alpha: float = 0.2, beta: float = 0.5) -> Register:
    return w.op("max", w.op("min", w.op("add", w.op("mul", x, alpha), beta), 1.0), 0.0)


COMPOSED: dict[str, Callable[..., Register]] = {
    "tanh": _tanh, "sigmoid": _sigmoid, "reciprocal": _reciprocal, "ceil": _ceil, "relu": _relu,
    "softplus": _softplus, "softsign": _softsign, "leaky_relu": _leaky_relu, "elu": _elu,
    "thresholded_relu": _thresholded_relu, "hard_sigmoid": _hard_sigmoid,
}  # fmt: skip
