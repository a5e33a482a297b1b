from typing import Any

import numpy as np
import pytest

import webrnn

from .rtneural_models import numbers
from .whole_and_parts import encoded, run_both

RNG = np.random.default_rng(5)
X = np.random.default_rng(3).uniform(-1, 1, (24, 2)).astype(np.float32)


def recurrent(prefix: str, gates: int, inputs: int, hidden: int, layers: int = 1) -> dict[str, Any]:
    states = {}
    for layer in range(layers):
        states[f"{prefix}weight_ih_l{layer}"] = numbers(RNG, gates * hidden, inputs if layer == 0 else hidden)
        states[f"{prefix}weight_hh_l{layer}"] = numbers(RNG, gates * hidden, hidden)
        states[f"{prefix}bias_ih_l{layer}"] = numbers(RNG, gates * hidden)
        states[f"{prefix}bias_hh_l{layer}"] = numbers(RNG, gates * hidden)
    return states


def linear(prefix: str, inputs: int, outputs: int = 1) -> dict[str, Any]:
    return {f"{prefix}weight": numbers(RNG, outputs, inputs), f"{prefix}bias": numbers(RNG, outputs)}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def stepped(states: dict[str, Any], prefix: str, layer: int, x: np.ndarray) -> np.ndarray:
    """torch's GRU or LSTM, written down once more."""
    parts = [np.array(states[f"{prefix}{kind}_{side}h_l{layer}"]) for kind in ("weight", "bias") for side in "ih"]
    w, r, b, c = parts
    h, cell, results = np.zeros(r.shape[1]), np.zeros(r.shape[1]), []
    for row in x:
        if len(r) == 3 * r.shape[1]:
            (xr, xz, xn), (hr, hz, hn) = np.split(w @ row + b, 3), np.split(r @ h + c, 3)
            update = sigmoid(xz + hz)
            h = (1 - update) * np.tanh(xn + sigmoid(xr + hr) * hn) + update * h
        else:
            i, f, g, o = np.split(w @ row + b + r @ h + c, 4)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(cell)
        results.append(h)
    return np.array(results)


def projected(states: dict[str, Any], prefix: str, x: np.ndarray) -> np.ndarray:
    return x @ np.array(states[f"{prefix}weight"]).T + np.array(states[f"{prefix}bias"])


@pytest.mark.parametrize("gates", [3, 4])
def test_layers_in_the_order_of_the_file(gates: int) -> None:
    states = {**recurrent("rnn.", gates, 1, 4), **recurrent("rnn2.", gates, 4, 3, 2), **linear("dense.", 3)}
    y = stepped(states, "rnn.", 0, X[:, :1])
    y = stepped(states, "rnn2.", 1, stepped(states, "rnn2.", 0, y))
    got = run_both(encoded(states), X[:, 0])
    np.testing.assert_allclose(got, projected(states, "dense.", y)[:, 0], atol=1e-6)


def test_a_layer_alone_without_a_name() -> None:
    states = recurrent("", 3, 2, 4)
    np.testing.assert_allclose(run_both(encoded(states), X), stepped(states, "", 0, X), atol=1e-6)


def proteus(inputs: int = 1, **settings: Any) -> dict[str, Any]:
    model = {"model": "SimpleRNN", "input_size": inputs, "skip": 1, "unit_type": "LSTM", "hidden_size": 4, **settings}
    return {"model_data": model, "state_dict": {**recurrent("rec.", 4, inputs, 4), **linear("lin.", 4)}}


@pytest.mark.parametrize("skip", [0, 1])
@pytest.mark.parametrize("inputs", [1, 2])
def test_proteus(inputs: int, skip: int) -> None:
    data, x = proteus(inputs, skip=skip), X[:, :inputs]
    states = data["state_dict"]
    expected = projected(states, "lin.", stepped(states, "rec.", 0, x)) + skip * x[:, :1]
    np.testing.assert_allclose(run_both(encoded(data), np.squeeze(x)), expected[:, 0], atol=1e-6)


def test_knobs_can_be_fixed() -> None:
    data, x = encoded(proteus(2)), X.copy()
    x[:, 1] = 0.5
    got = run_both(data, x[:, 0], fixed={"controls": 0.5})
    np.testing.assert_allclose(got, run_both(data, x), atol=1e-6)


LSTM = recurrent("rec.", 4, 1, 2)


@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [
        (proteus(model="RecNet"), webrnn.UnsupportedOp, "the model 'RecNet' is not known"),
        (proteus(skip=2), webrnn.UnsupportedOp, "at most one"),
        ({"state_dict": 3}, webrnn.ModelError, "it is 3, it needs to be an object"),
        ({"state_dict": {}}, webrnn.UnsupportedOp, "webrnn.build"),
        ({"state_dict": linear("fc.", 1)}, webrnn.UnsupportedOp, "webrnn.build"),
        ({**LSTM, **linear("a.", 2, 2), **linear("b.", 2)}, webrnn.UnsupportedOp, "webrnn.build"),
        ({**LSTM, "conv.weight": [[[1.0]]]}, webrnn.UnsupportedOp, "'conv.weight': a convolution"),
        ({**LSTM, "rec.weight_hr_l0": [[1.0]]}, webrnn.UnsupportedOp, "'rec.weight_hr_l0' belongs to no layer"),
        ({**LSTM, "rec.weight_hh_l0": [[1.0]] * 5}, webrnn.UnsupportedOp, "no matrix of a GRU or of an LSTM"),
        ({**LSTM, "rec.weight_ih_l0": []}, webrnn.ModelError, "it is no matrix"),
        ({**LSTM, "rec.bias_ih_l0": [1.0]}, webrnn.ModelError, r"'rec.bias_ih_l0': it is \[1\], it needs to be \[8\]"),
        ({**LSTM, **linear("lin.", 3)}, webrnn.ModelError, r"it is \[1, 3\], it needs to be \[1, 2\]"),
    ],
)
def test_a_file_that_is_wrong(data: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        webrnn.InferenceSession(encoded(data))
