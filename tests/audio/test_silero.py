"""Silero on speech: the probabilities that onnxruntime gives with its state fed back by hand."""

import numpy as np
import pytest

from bench.audio import peer_detector
from examples.vad import CHUNK, RATE, chunks, detector, segments
from tests.audio.cutting import pieces


@pytest.mark.parametrize(("backend", "seconds"), [("native", 60), ("wasm:relaxed", 10), ("numpy", 3)])
def test_probabilities(backend, seconds, speech):
    inputs = list(chunks([speech[: seconds * RATE]], RATE))
    assert len(inputs) == -(-seconds * RATE // CHUNK)
    expected = list(map(peer_detector(), inputs))
    found = list(map(detector(backend), inputs))
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
    assert min(found) < 0.05
    assert max(found) > 0.95


def test_chunks_begin_with_the_end_of_the_one_before(speech):
    samples = speech[:5000]
    found = np.array(list(chunks(pieces(samples, [1, 700, 0, 513]), RATE)))
    padded = np.concatenate([np.zeros(64, np.float32), samples, np.zeros(120, np.float32)])
    expected = np.array([padded[first : first + 576] for first in range(0, 5000, 512)])
    assert found.tobytes() == expected.tobytes()


def test_segments():
    quiet, loud = [0.0] * 20, [0.9] * 10
    assert list(segments([])) == []
    assert list(segments(quiet + loud + quiet)) == [(20, 30)]
    assert list(segments(loud + [0.1] * 9 + loud)) == [(0, 29)], "a short pause"
    assert list(segments(loud + [0.4] * 30 + loud)) == [(0, 50)], "not sure, but not silent"
    assert list(segments(quiet + [0.4] * 30)) == [], "not sure"
    assert list(segments(loud[:5] + quiet + loud)) == [(25, 35)], "too short"
