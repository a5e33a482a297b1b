from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webrnn
from webrnn import build

from .oracles import keras_gru, keras_lstm


def layer(
    gates: int, inputs: int = 3, units: int = 4, bias: tuple[int, ...] = (), name: str = "rnn"
) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(gates)
    shapes = {"kernel": (inputs, gates * units), "recurrent_kernel": (units, gates * units)}
    shapes["bias"] = (*bias, gates * units)
    return {f"{name}/{role}": numbers.normal(size=shape).astype("f") / 2 for role, shape in shapes.items()}


@pytest.mark.parametrize("reset_after", [True, False])
@pytest.mark.parametrize(("inputs", "units"), [(3, 4), (1, 1), (7, 30)])
def test_gru_by_its_formula(reset_after: bool, inputs: int, units: int) -> None:
    weights = layer(3, inputs, units, (2,) if reset_after else ())
    net = build.keras(weights)
    net.output("y", net.gru("rnn", net.input("x", (2, "time", inputs)), return_sequences=True))
    x = np.random.default_rng(1).normal(size=(2, 6, inputs)).astype("f")
    expected = keras_gru(x, *weights.values(), reset_after)  # type: ignore[arg-type]
    assert np.allclose(net.session().run(None, {"x": x})[0], expected, atol=1e-5)


def test_lstm_by_its_formula() -> None:
    weights = layer(4)
    net = build.keras(weights)
    y, h, c = net.lstm("rnn", net.input("x", (2, "time", 3)), return_sequences=True, return_state=True)
    for name, tensor in (("y", y), ("h", h), ("c", c)):
        net.output(name, tensor)
    x = np.random.default_rng(1).normal(size=(2, 6, 3)).astype("f")
    expected = keras_lstm(x, *weights.values())
    found = net.session().run(None, {"x": x})
    assert np.allclose(found[0], expected, atol=1e-5)
    assert np.allclose(found[1], expected[:, -1], atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "gates", "bias"), [("simple_rnn", 1, ()), ("gru", 3, (2,)), ("gru", 3, ()), ("lstm", 4, ())]
)
def test_a_stream_is_the_whole_run(kind: str, gates: int, bias: tuple[int, ...]) -> None:
    def model(states: bool) -> build.KerasModel:
        net = build.keras(layer(gates, bias=bias))
        x = net.input("x", (1, "time", 3))
        net.output("y", getattr(net, kind)("rnn", x, return_sequences=True, states=states))
        return net

    x = np.random.default_rng(1).normal(size=(1, 6, 3)).astype("f")
    whole = model(False).session().run(None, {"x": x})[0]
    assert model(True).carry == {f"rnn_{label}": f"rnn_{label}_next" for label in ("hc" if kind == "lstm" else "h")}
    for stream in (model(True).stream(), model(False).stream()):
        steps = [stream.step({"x": x[:, at : at + 2]})[0] for at in range(0, 6, 2)]
        assert np.array_equal(np.concatenate(steps, 1), whole)


def test_keras_2_has_another_hard_sigmoid() -> None:
    weights = layer(3, bias=(2,))
    results = []
    for name in ("hard_sigmoid", "hard_sigmoid_keras2"):
        net = build.keras(weights)
        net.output("y", net.gru("rnn", net.input("x", (1, "time", 3)), recurrent_activation=name))
        results.append(net.session().run(None, {"x": np.ones((1, 3, 3), "f")})[0])
    assert not np.allclose(*results)


@pytest.mark.parametrize(
    ("misuse", "words"),
    [
        (lambda net, x: net.lstm("rnn", x), "weights of a GRU, not of a LSTM"),
        (lambda net, x: net.simple_rnn("rnn", x), "weights of a GRU, not of a SimpleRNN"),
        (lambda net, x: net.gru("rn", x), "no weights below 'rn'"),
        (lambda net, x: net.gru("rnn", x[..., :2]), "the weights take 3"),
        (lambda net, x: net.gru("rnn", x[0]), r"\[batch, time, inputs\]"),
        (lambda net, x: net.gru("rnn", x, reset_after=False), "reset_after is False, and the bias is"),
        (lambda net, x: net.gru("old", x, reset_after=True), "reset_after is True, and the bias is"),
        (lambda net, x: net.gru("rnn", x, activation="gelu"), "activation 'gelu'; known are tanh"),
        (lambda net, x: net.gru("rnn", x, [x, x]), "1 states, given are 2"),
        (lambda net, x: net.gru("rnn", x, x), r"a state is .* \[batch, 4\]"),
        (lambda net, x: net.gru("rnn", x, net.input("h", (1, 5))), "a state is"),
        (lambda net, x: net.gru("rnn", x, net.input("h", (1, 4)), states=True), "either the states are given"),
        (lambda net, x: net.gru("rnn", x, go_backwards=True, states=True), "begins at the end"),
        (lambda net, x: net.bidirectional("rnn", x), "no forward layer"),
        (lambda net, x: net.bidirectional("both", x, "max"), "merge_mode is 'max'"),
        (lambda net, x: net.gru("torn", x), r"'torn/kernel' is \[3, 9\], it needs to be \[\?, 12\]"),
    ],
)
def test_misuse(misuse: Any, words: str) -> None:
    weights = {**layer(3, bias=(2,)), **layer(3, name="old"), **layer(3, name="both/forward_gru")}
    weights |= {**layer(3, name="both/backward_gru"), **layer(3, name="torn"), "torn/kernel": np.ones((3, 9), "f")}
    net = build.keras(weights)
    with pytest.raises(webrnn.Error, match=words):
        misuse(net, net.input("x", (1, "time", 3)))
    assert not net.weights.used
