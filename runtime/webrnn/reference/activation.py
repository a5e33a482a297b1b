"""Activations: element-wise functions of one tensor, and the Softmax family."""

from __future__ import annotations

import math

import numpy as np

from webrnn.errors import UnsupportedOp

from .arrays import Array, normalize_axis, widen
from .erf import erf
from .registry import op, unary


@op("Relu")
def relu(x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0))


@op("LeakyRelu", widens=True)
def leaky_relu(x: Array, *, alpha: float = 0.01) -> Array:
    return np.where(x < 0, alpha * x, x)


@op("PRelu")
def prelu(x: Array, slope: Array) -> Array:
    return np.where(x < 0, np.broadcast_to(slope, x.shape) * x, x)


@op("ThresholdedRelu", widens=True)
def thresholded_relu(x: Array, *, alpha: float = 1.0) -> Array:
    return np.where(x > alpha, x, x.dtype.type(0))


@op("Elu", widens=True)
def elu(x: Array, *, alpha: float = 1.0) -> Array:
    return np.where(x < 0, alpha * np.expm1(x), x)


@op("Celu", widens=True)
def celu(x: Array, *, alpha: float = 1.0) -> Array:
    return np.maximum(x, 0) + np.minimum(alpha * np.expm1(x / alpha), 0)


@op("Selu", widens=True)
def selu(x: Array, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> Array:
    return gamma * np.where(x <= 0, alpha * np.expm1(x), x)


@op("Sigmoid")
def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@op("HardSigmoid", widens=True)
def hard_sigmoid(x: Array, *, alpha: float = 0.2, beta: float = 0.5) -> Array:
    return np.clip(alpha * x + beta, 0, 1)


def softsign(x: Array) -> Array:
    return x / (1 + np.abs(x))


unary(
    __name__,
    {
        "Erf": erf,
        "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
        "Softsign": softsign,
        "Tanh": np.tanh,
    },
)


@op("Swish", widens=True)
def swish(x: Array, *, alpha: float = 1.0) -> Array:
    return x / (1 + np.exp(-alpha * x))


@op("SwiGLU", widens=True)
def swiglu(gate: Array, value: Array, *, alpha: float = 1.0) -> Array:
    return swish(gate, alpha=alpha) * value


@op("Softplus")
def softplus(x: Array) -> Array:
    return np.logaddexp(x, x.dtype.type(0))


@op("Mish")
def mish(x: Array) -> Array:
    return x * np.tanh(softplus(x))


@op("Gelu", widens=True)
def gelu(x: Array, *, approximate: str = "none") -> Array:
    if approximate == "none":
        return 0.5 * x * (1 + erf(x / math.sqrt(2)))
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    raise UnsupportedOp(f"{approximate!r} is neither none nor tanh", attribute="approximate")


@op("Shrink", widens=True)
def shrink(x: Array, *, bias: float = 0.0, lambd: float = 0.5) -> Array:
    y = np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))
    return y.astype(x.dtype, copy=False)


@op("Softmax")
def softmax(x: Array, *, axis: int = -1) -> Array:
    shifted, axis = _shift_to_maximum(x, axis)
    e = np.exp(shifted)
    return (e / np.sum(e, axis=axis, keepdims=True)).astype(x.dtype, copy=False)


@op("LogSoftmax")
def log_softmax(x: Array, *, axis: int = -1) -> Array:
    shifted, axis = _shift_to_maximum(x, axis)
    return (shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))).astype(x.dtype, copy=False)


def _shift_to_maximum(x: Array, axis: int) -> tuple[Array, int]:
    axis = normalize_axis(axis, x.ndim)
    wide = widen(x)
    return (wide - np.max(wide, axis=axis, keepdims=True) if x.size else wide), axis


@op("Hardmax")
def hardmax(x: Array, *, axis: int = -1) -> Array:
    axis = normalize_axis(axis, x.ndim)
    one_hot = np.zeros_like(x)
    if x.size:
        np.put_along_axis(one_hot, np.expand_dims(np.argmax(x, axis=axis), axis), 1, axis=axis)
    return one_hot
