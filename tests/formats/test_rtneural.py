from typing import Any

import numpy as np
import pytest

import webrnn
from webrnn.formats import read

from . import rtneural_models as rt
from .whole_and_parts import encoded, run_both

RNG = np.random.default_rng(11)
X = np.random.default_rng(3).uniform(-1, 1, (30, 3)).astype(np.float32)


def amp(inputs: int = 1, **others: Any) -> dict[str, Any]:
    layers = rt.recurrent(RNG, "lstm", inputs, 4), rt.dense(RNG, 4, 1)
    return {**rt.model([None, None, inputs], *layers), **others}


def test_gains_and_skip() -> None:
    """AIDA-X: the gain of the input, the model, the input added, the gain of the output."""
    data = amp(in_gain=6.0, out_gain=-3, in_skip=1)
    louder = X[:, :1] * 10 ** (6 / 20)
    expected = (rt.result(data, louder) + louder) * 10 ** (-3 / 20)
    np.testing.assert_allclose(run_both(encoded(data), X[:, 0]), expected[:, 0], atol=1e-6)


def test_the_gain_is_not_that_of_the_knobs() -> None:
    data = amp(3, in_gain=6.0, in_skip=1)
    louder = X * np.array([10 ** (6 / 20), 1, 1])
    expected = rt.result(data, louder) + louder[:, :1]
    np.testing.assert_allclose(run_both(encoded(data), X), expected[:, 0], atol=1e-6)


@pytest.mark.parametrize("gain", [-90, -200])
def test_no_gain_is_silence(gain: float) -> None:
    assert not run_both(encoded(amp(out_gain=gain)), X[:, 0]).any()


def test_knobs_can_be_fixed() -> None:
    data, x = encoded(amp(3, in_skip=1)), X.copy()
    x[:, 1:] = 0.25, 0.75
    got = run_both(data, x[:, 0], fixed={"controls": [0.25, 0.75]})
    np.testing.assert_allclose(got, run_both(data, x), atol=1e-6)
    assert "audio" not in read(data).about
    assert read(data, {"controls": [0, 1]}).about["audio"]["input"] == "x"


@pytest.mark.parametrize(
    ("others", "rate"),
    [
        ({}, 48000),
        ({"metadata": {"samplerate": "44100", "name": "Crunch"}}, 44100),
        ({"sample_rate": 96000.0, "metadata": {"sample_rate": 1}}, 96000),
        ({"metadata": "none", "in_skip": None, "in_gain": "loud"}, 48000),
    ],
)
def test_rate_and_metadata(others: dict[str, Any], rate: int) -> None:
    about = read(encoded(amp(**others))).about
    assert about["audio"]["sample_rate"] == rate
    assert about.get("metadata") == (others.get("metadata") if isinstance(others.get("metadata"), dict) else None)
    assert about["architecture"] == "lstm+dense"


def test_keras_may_write_a_list_of_shapes() -> None:
    data = amp()
    data["in_shape"] = [data["in_shape"]]
    assert read(encoded(data)).is_effect


@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [
        (amp(in_skip=2), webrnn.UnsupportedOp, "2 inputs are to be added"),
        (amp(in_gain=1e9), webrnn.ModelError, "'in_gain': it is 1e\\+09 dB"),
        (amp(out_gain=float("inf")), webrnn.ModelError, "'out_gain': it is no finite number"),
        (amp(in_shape=[1]), webrnn.ModelError, "it has 1 axes"),
        (amp(in_shape=[None, None, None]), webrnn.ModelError, "'in_shape': it is nothing"),
        (amp(in_shape="mono"), webrnn.ModelError, "'in_shape': it is a text"),
        (amp(layers={}), webrnn.ModelError, "'layers': it is an object"),
        (amp(layers=[3]), webrnn.ModelError, r"layers\[0\].*it is 3, it needs to be an object"),
        (amp(layers=[{}]), webrnn.ModelError, r"layers\[0\].*'type': it is missing"),
        (amp(metadata={"samplerate": "high"}), webrnn.ModelError, "samplerate is no number"),
        (rt.model([None, 1], rt.dense(RNG, 1, 2), in_skip=1), webrnn.ModelError, "a result of one column"),
        (rt.model([None, 9, 4, 1], rt.activation("tanh", 4), in_gain=3), webrnn.UnsupportedOp, "models of one signal"),
    ],
)
def test_a_file_that_is_wrong(data: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        webrnn.InferenceSession(encoded(data))


@pytest.mark.parametrize(
    ("inputs", "fixed"), [(1, {"controls": [1]}), (3, {"controls": [1]}), (3, {"controls": ["a", "b"]}), (3, {"k": 1})]
)
def test_what_cannot_be_fixed(inputs: int, fixed: dict[str, Any]) -> None:
    with pytest.raises(webrnn.ShapeError, match="fixed"):
        webrnn.InferenceSession(encoded(amp(inputs)), fixed=fixed)
