"""Trigonometric and hyperbolic functions."""

from __future__ import annotations

import numpy as np

from .registry import unary

unary(
    __name__,
    {
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
    },
)
