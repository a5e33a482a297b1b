"""Comparisons, boolean and bitwise operations, tests for NaN and infinity, Where."""

from __future__ import annotations

import numpy as np

from webrnn.errors import UnsupportedOp

from .arrays import Array
from .registry import binary, op, unary

unary(__name__, {"Not": np.logical_not, "BitwiseNot": np.invert, "IsNaN": np.isnan})
binary(
    __name__,
    {
        "Equal": lambda a, b: np.asarray(a == b, dtype=np.bool_),
        "Less": np.less,
        "LessOrEqual": np.less_equal,
        "Greater": np.greater,
        "GreaterOrEqual": np.greater_equal,
        "And": np.logical_and,
        "Or": np.logical_or,
        "Xor": np.logical_xor,
        "BitwiseAnd": np.bitwise_and,
        "BitwiseOr": np.bitwise_or,
        "BitwiseXor": np.bitwise_xor,
    },
)


@op("BitShift")
def bit_shift(x: Array, amount: Array, *, direction: str) -> Array:
    """A shift by a negative amount, or by the width or more, leaves only copies of the sign bit."""
    width = x.dtype.itemsize * 8
    within = (amount >= 0) & (amount < width)
    safe_amount = np.where(within, amount, 0).astype(x.dtype)
    if direction == "LEFT":
        return np.where(within, x << safe_amount, x.dtype.type(0))
    if direction == "RIGHT":
        return np.where(within, x >> safe_amount, np.where(x < 0, -1, 0).astype(x.dtype))
    raise UnsupportedOp(f"{direction!r} is neither LEFT nor RIGHT", attribute="direction")


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
    return np.where(condition, x, y)
