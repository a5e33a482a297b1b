"""The functions of recurrent cells: one row each. The number of one in a plan is its place: new rows come last.

This file imports nothing of webrnn, so that the build of the kernels can read it before webrnn is installed.

The pullback of a function f is d times f'(x), where d is the gradient of y = f(x). It is written in the ops of ONNX:
`op("Mul", d, y)` applies one, and numbers are operands like others. Whoever calls it chooses what values are: arrays,
values of a graph, registers of an expression. Where f has a kink, the derivative is that of the lower side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

Pullback: TypeAlias = Callable[..., Any]
"""Of (op, d, x, y, alpha, beta). It multiplies d by nothing where f'(x) is 0 or 1: an infinite d gives no NaN there."""


def _pull_scaled_tanh(op: Any, d: Any, x: Any, y: Any, alpha: float, beta: float) -> Any:
    t = op("Tanh", op("Mul", x, beta))
    return op("Mul", d, op("Mul", op("Mul", op("Sub", 1.0, op("Mul", t, t)), beta), alpha))


def _pull_hard_sigmoid(op: Any, d: Any, x: Any, y: Any, alpha: float, beta: float) -> Any:
    below_one = op("Where", op("Less", y, 1.0), op("Mul", d, alpha), 0.0)
    return op("Where", op("Greater", y, 0.0), below_one, 0.0)


def _pull_softsign(op: Any, d: Any, x: Any, y: Any, alpha: float, beta: float) -> Any:
    s = op("Add", op("Abs", x), 1.0)
    return op("Div", d, op("Mul", s, s))


class ActivationRow(NamedTuple):
    name: str
    onnx: str
    """What RNN, GRU and LSTM call it."""
    pullback: Pullback
    alpha: float | None = None
    beta: float | None = None
    """What they are if a node does not say; None where the function has none."""
    is_op: bool = True
    """Whether ONNX has an op of that name, with these attributes."""
    flops: int = 1


ACTIVATION_ROWS = (
    ActivationRow("none", "", lambda op, d, x, y, alpha, beta: d, is_op=False, flops=0),
    ActivationRow(
        "relu", "Relu",
        lambda op, d, x, y, alpha, beta: op("Where", op("Greater", x, 0.0), d, 0.0),
    ),
    ActivationRow(
        "tanh", "Tanh",
        lambda op, d, x, y, alpha, beta: op("Mul", d, op("Sub", 1.0, op("Mul", y, y))),
    ),
    ActivationRow(
        "sigmoid", "Sigmoid",
        lambda op, d, x, y, alpha, beta: op("Mul", d, op("Mul", y, op("Sub", 1.0, y))),
    ),
    ActivationRow(
        "affine", "Affine",
        lambda op, d, x, y, alpha, beta: op("Mul", d, alpha),
        1.0, 0.0, is_op=False, flops=2,
    ),
    ActivationRow(
        "leaky_relu", "LeakyRelu",
        lambda op, d, x, y, alpha, beta: op("Where", op("Greater", x, 0.0), d, op("Mul", d, alpha)),
        0.01,
    ),
    ActivationRow(
        "thresholded_relu", "ThresholdedRelu",
        lambda op, d, x, y, alpha, beta: op("Where", op("Greater", x, alpha), d, 0.0),
        1.0,
    ),
    ActivationRow("scaled_tanh", "ScaledTanh", _pull_scaled_tanh, 1.0, 1.0, is_op=False, flops=3),
    ActivationRow("hard_sigmoid", "HardSigmoid", _pull_hard_sigmoid, 0.2, 0.5),
    ActivationRow(
        "elu", "Elu",
        lambda op, d, x, y, alpha, beta: op(
            "Where", op("Greater", x, 0.0), d, op("Mul", d, op("Mul", op("Exp", x), alpha))
        ),
        1.0,
    ),
    ActivationRow("softsign", "Softsign", _pull_softsign),
    ActivationRow("softplus", "Softplus", lambda op, d, x, y, alpha, beta: op("Mul", d, op("Sigmoid", x))),
)  # fmt: skip

ACTIVATIONS = tuple(row.name for row in ACTIVATION_ROWS)
