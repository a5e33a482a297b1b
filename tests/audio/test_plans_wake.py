"""The front-end of wake words; the whole of three models is in tests/along_time/test_real_models.py."""

import numpy as np
import pytest

import webrnn
from tests.audio.cutting import assert_same_bits
from tests.models.fetch import model_path
from webrnn.audio import plans

STEP = 1280


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    return (0.1 * np.random.default_rng(5).standard_normal(30 * STEP)).astype(np.float32)


def test_front_and_head_are_the_three_models_in_one(samples):
    files = [model_path(name) for name in ("oww_melspec", "oww_embedding", "hey_mycroft_lstm")]
    (embeddings,) = plans.wake_word_front(*files[:2]).session().run(None, {"samples": samples})
    assert embeddings.shape == (30 - 9, 96)
    head = webrnn.InferenceSession(files[2])
    scores = [head.run(None, {head.get_inputs()[0].name: embeddings[None, at : at + 16]})[0][0] for at in range(6)]
    for scale in (1.0, 32768.0):
        whole = plans.openwakeword(*files, full_scale=scale).session()
        (expected,) = whole.run(None, {"samples": samples * np.float32(scale)})
        assert_same_bits(np.array(scores), expected)


def test_the_file_streams(samples, tmp_path):
    model = plans.wake_word_front()
    model.export(tmp_path / "front.rnn")
    stream = webrnn.InferenceSession(tmp_path / "front.rnn").stream()
    given = [stream.step({"samples": block})[0] for block in samples.reshape(-1, STEP)]
    assert [len(rows) for rows in given] == [0] * 9 + [1] * 21
    assert_same_bits(np.concatenate(given), model.session().run(None, {"samples": samples})[0])


def test_a_scale_of_nothing():
    with pytest.raises(webrnn.OptionError, match="a full scale of 0"):
        plans.wake_word_front(full_scale=0)
