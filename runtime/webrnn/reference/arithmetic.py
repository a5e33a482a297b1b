"""Element-wise arithmetic of numbers: sums and products, powers, rounding, minimum and maximum."""

from __future__ import annotations

from functools import reduce

import numpy as np

from webrnn.errors import ModelError, ShapeError

from .arrays import Array, broadcast_shape, widen
from .registry import binary, op, unary

binary(__name__, {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply})
unary(
    __name__,
    {
        "Neg": np.negative,
        "Abs": np.abs,
        "Sign": np.sign,
        "Reciprocal": lambda x: 1 / x,
        "Exp": np.exp,
        "Log": np.log,
        "Sqrt": np.sqrt,
        "Floor": np.floor,
        "Ceil": np.ceil,
        "Round": np.rint,
    },
)


@op("Div")
def div(a: Array, b: Array) -> Array:
    if a.dtype.kind in "iu":
        return divide_toward_zero(a, b)
    return a / b


def divide_toward_zero(a: Array, b: Array) -> Array:
    """Integer division as C does it."""
    _require_divisors(a, b)
    quotient = a // b
    if a.dtype.kind == "u":
        return quotient
    rounded_down = (quotient * b != a) & ((a < 0) != (b < 0))
    return quotient + rounded_down.astype(a.dtype)


def _require_divisors(a: Array, b: Array) -> None:
    """That no integer is divided by zero; where there is none, nothing is divided."""
    if a.size and not np.all(b):
        raise ModelError("integer division by zero")


@op("Mod")
def mod(a: Array, b: Array, *, fmod: int = 0) -> Array:
    if fmod not in (0, 1):
        raise ModelError(f"it must be 0 or 1, not {fmod}", attribute="fmod")
    if a.dtype.kind in "iu":
        _require_divisors(a, b)
    return np.fmod(a, b) if fmod else np.mod(a, b)


@op("Pow")
def power(base: Array, exponent: Array) -> Array:
    """The result has the type of the base; the exponent may have another one."""
    if base.dtype.kind == "f":
        return np.power(base, exponent).astype(base.dtype, copy=False)
    if exponent.dtype.kind not in "iu":
        return np.power(base.astype(np.float64), exponent).astype(base.dtype)
    whole = np.power(base.astype(np.int64), np.maximum(exponent, 0).astype(np.int64)).astype(base.dtype)
    if not np.any(exponent < 0):
        return whole
    return np.where(exponent < 0, np.power(base.astype(np.float64), exponent).astype(base.dtype), whole)


@op("Max")
def maximum(*tensors: Array) -> Array:
    _require_operands(*tensors)
    return reduce(np.maximum, tensors)


@op("Min")
def minimum(*tensors: Array) -> Array:
    _require_operands(*tensors)
    return reduce(np.minimum, tensors)


@op("Sum")
def sum_of(*tensors: Array) -> Array:
    _require_operands(*tensors)
    return reduce(np.add, tensors)


@op("Mean")
def mean_of(*tensors: Array) -> Array:
    _require_operands(*tensors)
    total = reduce(np.add, [widen(x) for x in tensors])
    return (total / len(tensors)).astype(tensors[0].dtype, copy=False)


def _require_operands(*tensors: Array) -> None:
    if not tensors:
        raise ModelError("at least one input is required")
    broadcast_shape(*(x.shape for x in tensors))


@op("Clip")
def clip(x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    """Where low > high the result is high. A bound that is not given is the last finite number."""
    x = np.maximum(x, _bound(x, low, "min"))
    return np.minimum(x, _bound(x, high, "max"))


def _bound(x: Array, bound: Array | None, name: str) -> Array:
    if bound is None:
        limits = np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype)
        return np.array(getattr(limits, name), x.dtype)
    if bound.size != 1:
        raise ShapeError(f"{name} must be a scalar, its shape is {list(bound.shape)}")
    return bound.reshape(())
