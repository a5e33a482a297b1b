"""The functions of recurrent cells: one row each. The number of one in a plan is its place: new rows come last.

This file imports nothing of webrnn, so that the build of the kernels can read it before webrnn is installed.
"""

from __future__ import annotations

from typing import NamedTuple


class ActivationRow(NamedTuple):
    name: str
    onnx: str
    """What RNN, GRU and LSTM call it."""
    alpha: float | None = None
    beta: float | None = None
    """What they are if a node does not say; None where the function has none."""
    is_op: bool = True
    """Whether ONNX has an op of that name, with these attributes."""
    flops: int = 1


ACTIVATION_ROWS = (
    ActivationRow("none", "", is_op=False, flops=0),
    ActivationRow("relu", "Relu"),
    ActivationRow("tanh", "Tanh"),
    ActivationRow("sigmoid", "Sigmoid"),
    ActivationRow("affine", "Affine", 1.0, 0.0, is_op=False, flops=2),
    ActivationRow("leaky_relu", "LeakyRelu", 0.01),
    ActivationRow("thresholded_relu", "ThresholdedRelu", 1.0),
    ActivationRow("scaled_tanh", "ScaledTanh", 1.0, 1.0, is_op=False, flops=3),
    ActivationRow("hard_sigmoid", "HardSigmoid", 0.2, 0.5),
    ActivationRow("elu", "Elu", 1.0),
    ActivationRow("softsign", "Softsign"),
    ActivationRow("softplus", "Softplus"),
)

ACTIVATIONS = tuple(row.name for row in ACTIVATION_ROWS)
