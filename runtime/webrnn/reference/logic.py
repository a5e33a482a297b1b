"""Comparisons, boolean and bitwise operations, tests for NaN and infinity, Where."""

from __future__ import annotations

import numpy as np

from webrnn.errors import ModelError, UnsupportedOp

from .arrays import Array, require_bool, require_same_type
from .registry import op


@op("Equal")
def equal(a: Array, b: Array) -> Array:
    require_same_type(a, b)
    return np.asarray(a == b, dtype=np.bool_)


@op("Less")
def less(a: Array, b: Array) -> Array:
    require_same_type(a, b)
    return a < b


@op("LessOrEqual")
def less_or_equal(a: Array, b: Array) -> Array:
    require_same_type(a, b)
    return a <= b


@op("Greater")
def greater(a: Array, b: Array) -> Array:
    require_same_type(a, b)
    return a > b


@op("GreaterOrEqual")
def greater_or_equal(a: Array, b: Array) -> Array:
    require_same_type(a, b)
    return a >= b


@op("And")
def logical_and(a: Array, b: Array) -> Array:
    require_bool(a, b)
    return a & b


@op("Or")
def logical_or(a: Array, b: Array) -> Array:
    require_bool(a, b)
    return a | b


@op("Xor")
def logical_xor(a: Array, b: Array) -> Array:
    require_bool(a, b)
    return a ^ b


@op("Not")
def logical_not(x: Array) -> Array:
    require_bool(x)
    return ~x


@op("BitwiseAnd")
def bitwise_and(a: Array, b: Array) -> Array:
    _require_integers(a, b)
    return a & b


@op("BitwiseOr")
def bitwise_or(a: Array, b: Array) -> Array:
    _require_integers(a, b)
    return a | b


@op("BitwiseXor")
def bitwise_xor(a: Array, b: Array) -> Array:
    _require_integers(a, b)
    return a ^ b


@op("BitwiseNot")
def bitwise_not(x: Array) -> Array:
    _require_integers(x)
    return ~x


@op("BitShift")
def bit_shift(x: Array, amount: Array, *, direction: str) -> Array:
    """A shift by a negative amount, or by the width or more, leaves only copies of the sign bit."""
    _require_integers(x, amount)
    width = x.dtype.itemsize * 8
    within = (amount >= 0) & (amount < width)
    safe_amount = np.where(within, amount, 0).astype(x.dtype)
    if direction == "LEFT":
        return np.where(within, x << safe_amount, 0).astype(x.dtype)
    if direction == "RIGHT":
        return np.where(within, x >> safe_amount, np.where(x < 0, -1, 0)).astype(x.dtype)
    raise UnsupportedOp(f"{direction!r} is neither LEFT nor RIGHT", attribute="direction")


def _require_integers(*tensors: Array) -> None:
    require_same_type(*tensors)
    if tensors[0].dtype.kind not in "iu":
        raise ModelError(f"the inputs must be integers, not {tensors[0].dtype}")


@op("IsNaN")
def is_nan(x: Array) -> Array:
    return np.isnan(x)


@op("IsInf")
def is_inf(x: Array, *, detect_negative: int = 1, detect_positive: int = 1) -> Array:
    found = np.zeros(x.shape, np.bool_)
    if detect_positive:
        found |= np.isposinf(x)
    if detect_negative:
        found |= np.isneginf(x)
    return found


@op("Where", any_type=True)
def where(condition: Array, x: Array, y: Array) -> Array:
    require_bool(condition)
    require_same_type(x, y)
    return np.where(condition, x, y)
