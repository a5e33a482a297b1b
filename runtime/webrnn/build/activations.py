"""Element-wise functions under the names of the frameworks."""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import OptionError, UnsupportedOp

from .net import Net
from .tensor import Tensor


class Activations(Net):
    """Functions that PyTorch and Keras have in common."""

    def relu(self, x: Tensor) -> Tensor:
        return self.op("Relu", x)

    def relu6(self, x: Tensor) -> Tensor:
        return self.op("Clip", x, self.like(0.0, x), self.like(6.0, x))

    def tanh(self, x: Tensor) -> Tensor:
        return self.op("Tanh", x)

    def sigmoid(self, x: Tensor) -> Tensor:
        return self.op("Sigmoid", x)

    def hard_sigmoid(self, x: Tensor) -> Tensor:
        """relu6(x + 3) / 6, as PyTorch and Keras 3 have it."""
        return self.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)

    def hard_tanh(self, x: Tensor, low: float = -1.0, high: float = 1.0) -> Tensor:
        return self.op("Clip", x, self.like(float(low), x), self.like(float(high), x))

    def elu(self, x: Tensor, alpha: float = 1.0) -> Tensor:
        return self.op("Elu", x, alpha=float(alpha))

    def selu(self, x: Tensor) -> Tensor:
        return self.op("Selu", x)

    def celu(self, x: Tensor, alpha: float = 1.0) -> Tensor:
        return self.op("Celu", x, alpha=float(alpha))

    def silu(self, x: Tensor) -> Tensor:
        return x * self.sigmoid(x)

    swish = silu

    def mish(self, x: Tensor) -> Tensor:
        return self.op("Mish", x)

    def hard_silu(self, x: Tensor) -> Tensor:
        return x * self.hard_sigmoid(x)

    hard_swish = hard_silu

    def softplus(self, x: Tensor) -> Tensor:
        return self.op("Softplus", x)

    def softsign(self, x: Tensor) -> Tensor:
        return self.op("Softsign", x)

    def exponential(self, x: Tensor) -> Tensor:
        return self.op("Exp", x)

    def log_sigmoid(self, x: Tensor) -> Tensor:
        return -self.softplus(-x)

    def linear_activation(self, x: Tensor) -> Tensor:
        return x

    def leaky_relu_by_name(self, x: Tensor) -> Tensor:
        """What "leaky_relu" is as the name of an activation of Keras's."""
        return self.op("LeakyRelu", x, alpha=0.2)

    def glu(self, x: Tensor, axis: int = -1) -> Tensor:
        """The first half along an axis, times the sigmoid of the second."""
        first, second = self.split(x, 2, axis)
        return first * self.sigmoid(second)


NAMES = {
    "linear": "linear_activation", "relu": "relu", "relu6": "relu6", "tanh": "tanh", "sigmoid": "sigmoid",
    "hard_sigmoid": "hard_sigmoid", "hard_tanh": "hard_tanh", "elu": "elu", "selu": "selu", "celu": "celu",
    "silu": "silu", "swish": "silu", "mish": "mish", "hard_silu": "hard_silu", "hard_swish": "hard_silu",
    "softplus": "softplus", "softsign": "softsign", "exponential": "exponential", "log_sigmoid": "log_sigmoid",
    "softmax": "softmax", "log_softmax": "log_softmax", "gelu": "gelu", "leaky_relu": "leaky_relu_by_name",
    "glu": "glu",
}  # fmt: skip
"""Functions by the names that layers of Keras take, and the methods that they are."""


def activated(net: Any, x: Tensor, function: Any) -> Tensor:
    """x through a function, given by its name, by a function of tensors, or None."""
    if function is None:
        return x
    if callable(function):
        return function(x)
    if function not in NAMES:
        known = ", ".join(NAMES)
        raise OptionError(f"{function!r} is not an activation; known are {known}, and functions of tensors")
    return getattr(net, NAMES[function])(x)


CELL_FUNCTIONS: dict[str, tuple[str, float | None, float | None]] = {
    "tanh": ("Tanh", None, None),
    "sigmoid": ("Sigmoid", None, None),
    "relu": ("Relu", None, None),
    "linear": ("Affine", 1.0, 0.0),
    "hard_sigmoid": ("HardSigmoid", float(np.float32(1 / 6)), 0.5),
    "hard_sigmoid_keras2": ("HardSigmoid", 0.2, 0.5),
    "elu": ("Elu", 1.0, None),
    "softsign": ("Softsign", None, None),
    "softplus": ("Softplus", None, None),
}
"""What recurrent cells take: ONNX's name, alpha and beta."""


def cell_function(name: Any) -> tuple[str, float | None, float | None]:
    if name is None:
        name = "linear"
    if name not in CELL_FUNCTIONS:
        raise UnsupportedOp(f"the cell has activation {name!r}; known are {', '.join(CELL_FUNCTIONS)}")
    return CELL_FUNCTIONS[name]
