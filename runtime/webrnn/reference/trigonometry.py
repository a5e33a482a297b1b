"""Trigonometric and hyperbolic functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .arrays import Array, require_float
from .registry import op


def _register(name: str, function: Callable[[Array], Array]) -> None:
    def elementwise(x: Array) -> Array:
        require_float(x)
        return function(x)

    op(name)(elementwise)


for _name, _function in {
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
}.items():
    _register(_name, _function)
