import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webrnn
from webrnn.formats.activations import activated, paired
from webrnn.formats.effects import finished, samples_in
from webrnn.formats.entries import Entry
from webrnn.formats.signals import Signal, SignalBuilder
from webrnn.ir import GraphBuilder

LAYER = Entry({}, "layers[0]", "WaveNet")
X = np.linspace(-5, 5, 201, dtype=np.float32)


def softplus(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(x))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def leaky(slope: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.where(x >= 0, x, slope * x)


def leaky_hardtanh(low: float, high: float, below: float, above: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.where(x < low, (x - low) * below + low, np.where(x > high, (x - high) * above + high, x))


FUNCTIONS: list[tuple[Any, Callable[[np.ndarray], np.ndarray]]] = [
    ("CELU", lambda x: np.where(x > 0, x, np.exp(x) - 1)),
    ("ELU", lambda x: np.where(x > 0, x, np.exp(x) - 1)),
    ("GELU", lambda x: x * 0.5 * (1 + np.array([math.erf(v / math.sqrt(2)) for v in x]))),
    ("Hardsigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    ("Hardswish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    ("Hardtanh", lambda x: np.clip(x, -1, 1)),
    ({"type": "Hardtanh", "min_val": -2, "max_val": 0.5}, lambda x: np.clip(x, -2, 0.5)),
    ("Identity", lambda x: x),
    ("LeakyHardtanh", leaky_hardtanh(-1, 1, 0.01, 0.01)),
    ({"type": "LeakyHardtanh", "min_val": -2.0, "max_val": 3.0, "min_slope": 0.2, "max_slope": 0.1},
     leaky_hardtanh(-2, 3, 0.2, 0.1)),
    ("LeakyReLU", leaky(0.01)),
    ({"type": "LeakyReLU", "negative_slope": 0.3}, leaky(0.3)),
    ("LogSigmoid", lambda x: -softplus(-x)),
    ("Mish", lambda x: x * np.tanh(softplus(x))),
    ("PReLU", leaky(0.25)),
    ({"type": "PReLU", "negative_slopes": [0.6]}, leaky(0.6)),
    ("ReLU", lambda x: np.maximum(x, 0)),
    ("ReLU6", lambda x: np.clip(x, 0, 6)),
    ("SELU", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1))),
    ("SiLU", lambda x: x * sigmoid(x)),
    ("Sigmoid", sigmoid),
    ("Softplus", softplus),
    ("Softsigmoid", lambda x: 0.5 * (1 + x / (1 + np.abs(x)))),
    ("Softsign", lambda x: x / (1 + np.abs(x))),
    ("Tanh", np.tanh),
    ("Tanhshrink", lambda x: x - np.tanh(x)),
]  # fmt: skip


def results(build: Callable[[SignalBuilder, Signal], Signal]) -> tuple[np.ndarray, float]:
    """Of the function on X, and what the builder says of it for silence at 0.75."""
    b = GraphBuilder("f")
    x = b.op("Reshape", samples_in(b, 1), b.ints(1, 1, -1))
    y = build(SignalBuilder(b), Signal(x, np.full((1, 1, 1), 0.75), 1))
    assert y.silence is not None
    graph = finished(b, y.value, 1)
    return webrnn.InferenceSession(graph).run(None, {"x": X})[0], float(y.silence.reshape(-1)[0])


@pytest.mark.parametrize(("given", "function"), FUNCTIONS, ids=[str(given) for given, _ in FUNCTIONS])
def test_the_meaning_of_torch(given: Any, function: Callable[[np.ndarray], np.ndarray]) -> None:
    got, silence = results(lambda s, x: s.op("Mul", 1.0, activated(s, x, given, LAYER)))
    np.testing.assert_allclose(got, function(X.astype(np.float64)), atol=2e-6)
    assert silence == pytest.approx(function(np.array([0.75]))[0], abs=1e-7)


@pytest.mark.parametrize("mode", ["gated", "blended"])
def test_pairs(mode: str) -> None:
    def build(s: SignalBuilder, x: Signal) -> Signal:
        both = s.b.op("Concat", x.value, s.op("Mul", -2.0, x).value, axis=1)
        return paired(s, Signal(both, np.array([[[0.75], [-1.5]]]), 2), mode, "Tanh", "Sigmoid", LAYER)

    def expected(x: np.ndarray) -> np.ndarray:
        share = sigmoid(-2 * x)
        return share * np.tanh(x) + (0 if mode == "gated" else (1 - share) * x)

    got, silence = results(build)
    np.testing.assert_allclose(got, expected(X.astype(np.float64)), atol=1e-6)
    assert silence == pytest.approx(expected(np.array([0.75]))[0])


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ("Fasttanh", webrnn.UnsupportedOp, r"layers\[0\].activation' \(WaveNet\): .* 'Fasttanh' is not known"),
        ({"type": "Tanh", "slope": 2}, webrnn.UnsupportedOp, "'slope': this setting is not known"),
        ({"type": "PReLU", "negative_slopes": [1, 2]}, webrnn.ModelError, r"it is \[2\], it needs to be \[1\]"),
        ({"type": "Hardtanh", "min_val": 2}, webrnn.ModelError, "min_val 2 is above max_val 1"),
        ({}, webrnn.ModelError, "it is missing"),
        (3, webrnn.ModelError, "it is 3, it needs to be an object"),
    ],
)  # fmt: skip
def test_what_is_not_known(given: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        results(lambda s, x: activated(s, x, given, LAYER))
