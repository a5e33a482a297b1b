"""Silero's variants are one model: on 60 s of speech they agree with each other."""

import wave

import numpy as np
import pytest

import webrnn
from tests.models.fetch import Unavailable, model_path, speech_path

CHUNK, CONTEXT = 512, 64


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    """[chunks, 576]: each chunk of 512 samples behind the last 64 of the one before."""
    try:
        path = speech_path()
    except Unavailable as error:
        pytest.skip(str(error))
    with wave.open(str(path)) as file:
        assert file.getframerate() == 16000
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16) / np.float32(32768)
    chunks = samples[: len(samples) // CHUNK * CHUNK].reshape(-1, CHUNK)
    before = np.concatenate([np.zeros((1, CONTEXT), np.float32), chunks[:-1, -CONTEXT:]])
    return np.concatenate([before, chunks], axis=1)


def test_variants_agree_on_speech(frames):
    whole = webrnn.InferenceSession(model_path("silero_v6_seq"), backend="numpy")
    zeros = np.zeros((1, 1, 128), np.float32)
    expected = whole.run(["speech_probs"], {"input": frames, "h": zeros, "c": zeros})[0]
    assert expected.min() < 0.05
    assert expected.max() > 0.95
    for name in ("silero_v6", "silero_v6_op15", "silero_v6_op18_ifless"):
        np.testing.assert_allclose(_step_by_step(name, frames), expected, atol=1e-4, err_msg=name)


def _step_by_step(name, frames):
    session = webrnn.InferenceSession(model_path(name), backend="numpy")
    state, rate = np.zeros((2, 1, 128), np.float32), np.array(16000, np.int64)
    probabilities = []
    for frame in frames:
        output, state = session.run(["output", "stateN"], {"input": frame[None], "state": state, "sr": rate})
        probabilities.append(output[0, 0])
    return np.array(probabilities)
