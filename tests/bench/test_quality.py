"""`make quality`: its measures, and a short run of it."""

import numpy as np
import pytest

from bench import quality
from bench.motion import angles, simulated_motion
from tests.models.fetch import CACHE, Unavailable, model_path, speech_path
from webrnn.audio import read_wav


def test_angles():
    half = np.sqrt(0.5)
    ours = np.array([[1, 0, 0, 0], [1, 0, 0, 0], [half, half, 0, 0], [2.0, 0, 0, 0]])
    theirs = np.array([[1, 0, 0, 0], [-1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1.0]])
    np.testing.assert_allclose(angles(ours, theirs), [0, 0, 90, 180], atol=1e-9)


def test_a_simulated_motion_is_what_a_sensor_sees():
    motion = simulated_motion(2000, 100)
    assert motion.shape == (2000, 7)
    assert motion.dtype == np.float32
    assert np.all(motion[:, 6] == np.float32(0.01))
    assert 8 < np.linalg.norm(motion[:, :3], axis=1).mean() < 12, "gravity"
    assert 0.2 < np.abs(motion[:, 3:6]).mean() < 3
    assert simulated_motion(2000, 100).tobytes() == motion.tobytes()
    # what stands still in the room turns in the sensor as its rotation says
    up = motion[:, :3] / np.linalg.norm(motion[:, :3], axis=1, keepdims=True)
    turned = up[:-1] - np.cross(motion[:-1, 3:6] / 100, up[:-1])
    assert np.abs(turned - up[1:]).mean() < 0.02


def test_stretches_that_move():
    assert quality._moved([(1, 5)], [(1, 5)]) == []
    assert quality._moved([(1, 6), (8, 9)], [(2, 4), (8, 9)]) == [1, 2]
    assert quality._moved([(1, 5)], []) is None


def test_what_is_beyond_its_bound_is_marked():
    figures = [
        quality.Figure("A", "int16", "SNR", "1.0", "1.0"),
        quality.Figure("A", "int8", "SNR", "0.5", "1.0", "±0.1", is_met=False),
    ]
    assert "A      SNR   1.0      1.0    0.5 (bound ±0.1)" in quality.report(figures, ["int16", "int8"])


@pytest.fixture
def material(monkeypatch):
    monkeypatch.setenv("WEBRNN_MODELS", str(CACHE))
    try:
        for name in ("dtln_1", "dtln_2", "nsnet2_16k", "silero_v6", "riann"):
            model_path(name)
        return quality.Material(read_wav(speech_path())[0][: 3 * quality.RATE])
    except Unavailable as error:
        pytest.skip(str(error))


def test_int16_is_level_with_float32(material):
    found = list(quality.Study(material, has_growth=False).figures(["int16"]))
    assert {figure.subject for figure in found} == {"DTLN", "NSNet2", "Silero", "RIANN"}
    assert [figure for figure in found if not figure.is_met] == []


def test_errors_do_not_grow(material, monkeypatch):
    monkeypatch.setattr(quality, "BLOCK", 100)
    early, late = quality.growth(quality.Dtln(), material, "auto", "int16")
    assert early.what == "error after 1,000 steps ÷ after 100"
    assert float(early.value) < 1.5
    assert float(late.value) < 1.5
