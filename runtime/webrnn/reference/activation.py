"""Activations: element-wise functions of one tensor, and Softmax."""

from __future__ import annotations

import numpy as np

from .arrays import Array
from .registry import op


@op("Relu")
def relu(x: Array) -> Array:
    return np.maximum(x, 0)


@op("Tanh")
def tanh(x: Array) -> Array:
    return np.tanh(x)


@op("Sigmoid")
def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@op("Identity")
def identity(x: Array) -> Array:
    return x


@op("Softmax")
def softmax(x: Array, *, axis: int = -1) -> Array:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)
