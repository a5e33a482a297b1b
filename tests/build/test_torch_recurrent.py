from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webrnn
from webrnn import build

from .oracles import torch_gru, torch_lstm

GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def layer(
    kind: str, inputs: int = 3, hidden: int = 4, layers: int = 1, projected: int = 0, seed: int = 0
) -> dict[str, np.ndarray]:
    """A state_dict of a recurrent layer that is called rnn."""
    numbers, found = np.random.default_rng(seed), {}
    rows, size = GATES[kind] * hidden, projected or hidden
    for index in range(layers):
        shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, size), "bias_ih": (rows,), "bias_hh": (rows,)}
        shapes |= {"weight_hr": (projected, hidden)} if projected else {}
        for name, shape in shapes.items():
            found[f"rnn.{name}_l{index}"] = numbers.normal(size=shape).astype("f") / 2
        inputs = size
    return found


def of(weights: dict[str, np.ndarray], index: int = 0) -> list[np.ndarray]:
    return [weights[f"rnn.{name}_l{index}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]


@pytest.mark.parametrize("backend", ["auto", "numpy"])
@pytest.mark.parametrize(("inputs", "hidden", "time", "batch"), [(1, 1, 1, 1), (5, 33, 7, 3)])
def test_gru_by_its_formula(backend: str, inputs: int, hidden: int, time: int, batch: int) -> None:
    weights = layer("gru", inputs, hidden, layers=2)
    net = build.torch(weights)
    y, h = net.gru("rnn", net.input("x", ("time", "batch", inputs)))
    assert y.shape == ("time", "batch", hidden)
    assert h.shape == (2, "batch", hidden)
    net.output("y", y)
    net.output("h", h)
    x = np.random.default_rng(1).normal(size=(time, batch, inputs)).astype("f")
    first = torch_gru(x, np.zeros((batch, hidden)), *of(weights))
    second = torch_gru(first, np.zeros((batch, hidden)), *of(weights, 1))
    found = net.session(backend=backend).run(None, {"x": x})
    assert np.allclose(found[0], second, atol=1e-5)
    assert np.allclose(found[1], [first[-1], second[-1]], atol=1e-5)


@pytest.mark.parametrize("projected", [0, 2])
def test_lstm_by_its_formula(projected: int) -> None:
    weights = layer("lstm", projected=projected)
    net = build.torch(weights)
    states = net.input("h", (1, 2, projected or 4)), net.input("c", (1, 2, 4))
    y, (h, c) = net.lstm("rnn", net.input("x", ("time", 2, 3)), states)
    for name, tensor in (("y", y), ("h_n", h), ("c_n", c)):
        net.output(name, tensor)
    numbers = np.random.default_rng(1)
    fed = {
        value.name: numbers.normal(size=[5 if size == "time" else size for size in value.shape]).astype("f")
        for value in net.session().get_inputs()
    }
    w, u, b, b2 = of(weights)
    expected, last = torch_lstm(fed["x"], fed["h"][0], fed["c"][0], w, u, b + b2, weights.get("rnn.weight_hr_l0"))
    found = net.session().run(None, fed)
    assert np.allclose(found[0], expected, atol=1e-5)
    assert np.allclose(found[1][0], expected[-1], atol=1e-5)
    assert np.allclose(found[2][0], last, atol=1e-5)


# ------------------------------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize(("kind", "projected"), [("rnn", 0), ("gru", 0), ("lstm", 0), ("lstm", 2)])
@pytest.mark.parametrize("batch_first", [False, True])
def test_a_stream_is_the_whole_run(kind: str, projected: int, batch_first: bool, tmp_path: Path) -> None:
    """With states as inputs and outputs, and by frames; also from a plan."""
    weights = {**layer(kind, layers=2, projected=projected), "out.weight": np.ones((1, projected or 4), "f")}
    x = np.random.default_rng(2).normal(size=(1, 6, 3) if batch_first else (6, 1, 3)).astype("f")
    time = 1 if batch_first else 0

    def model(states: bool) -> build.TorchNet:
        net = build.torch(weights)
        x = net.input("x", (1, "time", 3) if batch_first else ("time", 1, 3))
        y, _ = getattr(net, kind)("rnn", x, batch_first=batch_first, states=states)
        net.output("y", net.linear("out", y))
        return net

    whole = model(False).session().run(None, {"x": x})[0]
    net = model(True)
    assert net.carry == {f"rnn_{label}": f"rnn_{label}_next" for label in ("hc" if kind == "lstm" else "h")}
    assert net.session().find_states().carry() == net.carry
    assert net.session().get_outputs()[0].name == "y"
    net.session().export(tmp_path / "model.rnn", carry=net.carry)
    streams = [net.stream(), model(False).stream(), webrnn.InferenceSession(tmp_path / "model.rnn").stream()]
    for stream in streams:
        steps = [stream.step({"x": part})[0] for part in np.split(x, 3, time)]
        assert np.array_equal(np.concatenate(steps, time), whole)


def test_small_weights() -> None:
    weights = {name: array / 4 for name, array in layer("gru", 64, 64).items()}
    net = build.torch(weights)
    y, _ = net.gru("rnn", net.input("x", ("time", 1, 64)))
    net.output("y", y)
    x = np.random.default_rng(2).normal(size=(6, 1, 64)).astype("f")
    session = net.session(weights="int8")
    assert session.weight_report is not None
    assert {(row.name, row.form) for row in session.weight_report.rows} == {
        ("rnn/from_x", "int8"),
        ("rnn/from_h", "int8"),
    }
    assert np.abs(session.run(None, {"x": x})[0] - net.session().run(None, {"x": x})[0]).max() < 0.05


# ------------------------------------------------------------------------------------------------------------- misuse

ONE = "rnn.weight_hh_l0"


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("gru", {"rnn.weight_ih_l0": (3, 12)}, r"'rnn.weight_ih_l0' is \[3, 12\], it needs to be \[12, \?\]"),
        ("gru", {ONE: (4, 12)}, r"'rnn.weight_hh_l0' is \[4, 12\]"),
        ("gru", {"rnn.bias_ih_l0": (11,)}, r"'rnn.bias_ih_l0' is \[11\], it needs to be \[12\]"),
        ("gru", {ONE: None}, "weight_hh_l0"),
        ("gru", {"rnn.weight_ih_l0": None}, "no 'rnn.weight_ih_l0'"),
        ("lstm", {}, "weights of a layer GRU, not LSTM"),
        ("rnn", {}, "weights of a layer GRU, not RNN"),
        ("gru", {"rnn.weight_hr_l0": (4, 4)}, "only an LSTM has a projection"),
        ("gru", {"rnn.weight_hh_l2": (12, 4)}, r"layers \[0, 2\]"),
        ("gru", {"rnn.weight_hh_l1": (12, 4), "rnn.weight_ih_l1": (12, 5)}, r"is \[12, 5\], it needs to be \[12, 4\]"),
        ("gru", {"rnn.weight_hh_l0_reverse": (12, 4)}, "no 'rnn.weight_ih_l0_reverse'"),
        ("gru", {ONE: (0, 0)}, "'rnn.weight_hh_l0'"),
        ("gru", {ONE: (12,)}, r"'rnn.weight_hh_l0' is \[12\]"),
    ],
)
def test_weights_that_do_not_fit(kind: str, change: dict[str, Any], words: str) -> None:
    weights = layer("gru")
    for name, shape in change.items():
        if shape is None:
            del weights[name]
        else:
            weights[name] = np.ones(shape, "f")
    net = build.torch(weights)
    with pytest.raises(webrnn.Error, match=words) as caught:
        getattr(net, kind)("rnn", net.input("x", ("time", 1, 3)))
    assert caught.value.node == "rnn"
    assert not net.weights.used


@pytest.mark.parametrize(
    ("misuse", "words"),
    [
        (lambda net, x: net.gru("rn", x), "did you mean 'rnn'"),
        (lambda net, x: net.gru("rnn", x[..., :2]), "axis -1 has 2 elements, the weights take 3"),
        (lambda net, x: net.gru("rnn", x[0, 0]), "2 or 3 axes"),
        (lambda net, x: net.gru("rnn", x, net.input("h", (2, 1, 4))), r"a state is \[2, 1, 4\]: axis 0"),
        (lambda net, x: net.gru("rnn", x, net.input("h", (1, 1, 5))), "axis 2 has 5 elements"),
        (lambda net, x: net.gru("rnn", x, net.input("h", (1, 3, 4))), r"\[1, 3, 4\], it needs to be \[1, 1, 4\]"),
        (lambda net, x: net.gru("rnn", x, net.input("h", (1, 4))), "a state is"),
        (lambda net, x: net.gru("rnn", x, (x, x)), "one state"),
        (lambda net, x: net.lstm("rnn", x, x), "two: "),
        (lambda net, x: net.gru("rnn", x, net.input("h", (1, 1, 4)), states=True), "either the states are given"),
        (lambda net, x: net.rnn("rnn", x, nonlinearity="sigmoid"), "tanh or relu"),
        (lambda net, x: net.gru("rnn", net.input("i", ("time", 1, 3), "int64")), "int64"),
        (lambda net, x: net.gru_cell("rnn", x), "no 'rnn.weight_hh'"),
    ],
)
def test_misuse(misuse: Any, words: str) -> None:
    net = build.torch(layer("gru"))
    with pytest.raises(webrnn.Error, match=words):
        misuse(net, net.input("x", ("time", 1, 3)))


def test_states_of_both_directions_cannot_be_kept() -> None:
    weights = layer("gru")
    net = build.torch({**weights, **{f"{name}_reverse": array for name, array in weights.items()}})
    x = net.input("x", ("time", 1, 3))
    with pytest.raises(webrnn.OptionError, match="begins at the end"):
        net.gru("rnn", x, states=True)
    y, h = net.gru("rnn", x)
    assert (y.shape, h.shape) == (("time", 1, 8), (2, 1, 4))


def test_a_layer_without_a_prefix() -> None:
    net = build.torch({name.removeprefix("rnn."): array for name, array in layer("gru").items()})
    y, _ = net.gru("", net.input("x", ("time", 1, 3)), states=True)
    net.output("y", y)
    assert net.carry == {"h": "h_next"}
    net.stream().step({"x": np.ones((2, 1, 3), "f")})
