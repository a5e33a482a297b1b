import numpy as np
import pytest

import webrnn

from .test_nam import changed, loaded
from .whole_and_parts import encoded, run_both

X = np.random.default_rng(3).uniform(-1, 1, (40, 2)).astype(np.float32)
RNG = np.random.default_rng(4)


def test_knobs_beside_the_signal() -> None:
    """An LSTM may take more than one input: x [time, inputs]."""
    hidden, inputs = 3, 2
    both = RNG.uniform(-0.5, 0.5, (4 * hidden, inputs + hidden)).astype(np.float32)
    bias, h, c = (RNG.uniform(-0.5, 0.5, size).astype(np.float32) for size in (4 * hidden, hidden, hidden))
    head = RNG.uniform(-0.5, 0.5, hidden + 1).astype(np.float32)
    data = {
        "architecture": "LSTM",
        "config": {"input_size": inputs, "hidden_size": hidden, "num_layers": 1},
        "weights": np.concatenate([both.reshape(-1), bias, h, c, head]).tolist(),
    }
    expected = []
    for row in X:
        i, f, g, o = np.split(both @ np.concatenate([row, h]) + bias, 4)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        expected.append(h @ head[:-1] + head[-1])
    np.testing.assert_allclose(run_both(encoded(data), X), expected, atol=1e-6)


def test_a_model_behind_it_needs_silence_that_stays() -> None:
    """The trainer writes states after long silence. With others there is no history to start from."""
    steady, moving = loaded("lstm"), loaded("lstm")
    moving["weights"][-13:-7] = [0.9] * 6
    for lstm, is_steady in ((steady, True), (moving, False)):
        data = {"architecture": "Sequential", "config": {"models": [lstm, loaded("linear")]}, "weights": []}
        if is_steady:
            parts = [run_both(encoded(lstm), np.concatenate([np.zeros(30, np.float32), X[:, 0]]))]
            parts.append(run_both(encoded(loaded("linear")), parts[0])[30:])
            np.testing.assert_allclose(run_both(encoded(data), X[:, 0]), parts[1], atol=1e-5)
        else:
            with pytest.raises(webrnn.UnsupportedOp, match=r"'taps' .*not constant in silence"):
                webrnn.InferenceSession(encoded(data))


@pytest.mark.parametrize(
    ("config", "kind", "said"),
    [
        ({"hidden_size": 6, "bidirectional": True}, webrnn.UnsupportedOp, "'bidirectional': this setting is not known"),
        ({"hidden_size": 0}, webrnn.ModelError, "it is 0, it needs to be 1"),
        ({"hidden_size": 10**6}, webrnn.ModelError, "not enough"),
        ({"hidden_size": 6, "num_layers": 10**6}, webrnn.ModelError, "lstm_1' .*not enough"),
        ({}, webrnn.ModelError, "'hidden_size': it is missing"),
    ],
)
def test_settings_that_are_wrong(config: dict[str, object], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        webrnn.InferenceSession(changed("lstm", config=config))


def test_it_takes_one_signal_in_a_sequence() -> None:
    lstm = {**loaded("lstm"), "config": {"input_size": 2, "hidden_size": 6}}
    data = {"architecture": "Sequential", "config": {"models": [loaded("linear"), lstm]}, "weights": []}
    with pytest.raises(webrnn.ModelError, match="it takes 2 signals and gets 1"):
        webrnn.InferenceSession(encoded(data))
