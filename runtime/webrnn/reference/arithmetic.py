"""Element-wise arithmetic."""

from __future__ import annotations

import numpy as np

from .arrays import Array
from .registry import op


@op("Add")
def add(a: Array, b: Array) -> Array:
    return a + b


@op("Sub")
def sub(a: Array, b: Array) -> Array:
    return a - b


@op("Mul")
def mul(a: Array, b: Array) -> Array:
    return a * b


@op("Neg")
def neg(x: Array) -> Array:
    return -x


@op("Abs")
def absolute(x: Array) -> Array:
    return np.abs(x)


@op("Exp")
def exp(x: Array) -> Array:
    return np.exp(x)


@op("Sqrt")
def sqrt(x: Array) -> Array:
    return np.sqrt(x)
