"""Silero's detector at both of its rates."""

import numpy as np
import onnxruntime
import pytest

import webrnn
from tests.models.fetch import model_path
from webrnn.audio import plans


@pytest.mark.parametrize("rate", [16000, 8000])
def test_probabilities_are_those_of_onnxruntime(rate, speech):
    model = plans.silero(model_path("silero_v6"), rate)
    size = model.audio["frame"]
    assert (model.audio["sample_rate"], size) == (rate, {16000: 512, 8000: 256}[rate])
    chunks = speech[: 16000 * 8 : 16000 // rate]
    chunks = chunks[: len(chunks) // size * size].reshape(-1, size)
    session = onnxruntime.InferenceSession(str(model_path("silero_v6")), providers=["CPUExecutionProvider"])
    state, context, expected = np.zeros((2, 1, 128), np.float32), np.zeros(size // 8, np.float32), []
    for chunk in chunks:
        feeds = {"input": np.concatenate([context, chunk])[None], "state": state, "sr": np.array(rate)}
        probability, state = session.run(None, feeds)
        expected.append(probability[0, 0])
        context = chunk[-size // 8 :]
    frames = model.frames()
    found = [frames(chunk)[0] for chunk in chunks]
    np.testing.assert_allclose(found, expected, atol=2e-5, rtol=0)
    assert max(found) > 0.9


def test_other_rates_and_models():
    with pytest.raises(webrnn.OptionError, match="16000 or 8000 Hz, not 44100"):
        plans.silero(rate=44100)
    with pytest.raises(webrnn.Error, match="sr"):
        plans.silero(model_path("riann"))
