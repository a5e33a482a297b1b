from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webrnn
from webrnn import build
from webrnn.build.activations import NAMES, cell_function

X = np.linspace(-4, 4, 18, dtype=np.float32).reshape(2, 9)
ERF = np.vectorize(math.erf)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("relu", lambda x: np.maximum(x, 0)),
        ("relu6", lambda x: np.clip(x, 0, 6)),
        ("tanh", np.tanh),
        ("sigmoid", sigmoid),
        ("hard_sigmoid", lambda x: np.clip(x + 3, 0, 6) / 6),
        ("hard_tanh", lambda x: np.clip(x, -1, 1)),
        ("elu", lambda x: np.where(x > 0, x, np.expm1(x))),
        ("selu", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
        ("celu", lambda x: np.where(x > 0, x, np.expm1(x))),
        ("silu", lambda x: x * sigmoid(x)),
        ("mish", lambda x: x * np.tanh(np.log1p(np.exp(x)))),
        ("hard_silu", lambda x: x * np.clip(x + 3, 0, 6) / 6),
        ("softplus", lambda x: np.log1p(np.exp(x))),
        ("softsign", lambda x: x / (1 + abs(x))),
        ("exponential", np.exp),
        ("log_sigmoid", lambda x: np.log(sigmoid(x))),
        ("softmax", lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
        ("log_softmax", lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True))),
        ("gelu", lambda x: x * (1 + ERF(x / 2**0.5)) / 2),
        ("leaky_relu", lambda x: np.where(x > 0, x, 0.2 * x)),
        ("linear", lambda x: x),
    ],
)
def test_by_name(name: str, function: Callable[[Any], Any]) -> None:
    assert name in NAMES
    net = build.keras({})
    net.output("y", net.activation(net.input("x", (2, 9)), name))
    assert np.allclose(net.session().run(None, {"x": X})[0], function(X.astype(np.float64)), atol=1e-5)


@pytest.mark.parametrize("make", [build.torch, build.keras])
def test_every_name_is_a_method(make: Any) -> None:
    net = make({})
    x = net.input("x", (2, 8))
    for method in NAMES.values():
        assert getattr(net, method)(x).shape in ((2, 8), (2, 4))


def test_slopes_of_the_frameworks() -> None:
    for net, slope in ((build.torch({}), 0.01), (build.keras({}), 0.3)):
        net.output("y", net.leaky_relu(net.input("x", (1,))))
        assert np.isclose(net.session().run(None, {"x": np.float32([-1])})[0], -slope)


def test_functions_and_unknown_names() -> None:
    net = build.keras({})
    x = net.input("x", (2, 9))
    assert net.activation(x, None) is x
    assert net.activation(x, lambda x: x[0]).shape == (9,)
    with pytest.raises(webrnn.OptionError, match="'bent' is not an activation; known are linear"):
        net.activation(x, "bent")
    with pytest.raises(webrnn.UnsupportedOp, match="'bent'; known are tanh"):
        cell_function("bent")
