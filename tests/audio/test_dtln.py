"""DTLN on speech in noise, end to end: what onnxruntime gives with its state fed back by hand."""

import numpy as np
import pytest

from bench.audio import peer_stage
from examples.denoise_wav import RATE, denoise_samples, denoiser, snr, stage, with_noise
from tests.audio.cutting import assert_same_bits, by_blocks, pieces


@pytest.mark.parametrize(("backend", "seconds"), [("native", 20), ("wasm:relaxed", 10), ("numpy", 2)])
def test_end_to_end(backend, seconds, speech):
    clean = speech[: seconds * RATE]
    noisy = with_noise(clean, 10)
    expected = denoise_samples(noisy, denoiser(peer_stage("dtln_1"), peer_stage("dtln_2")))
    found = denoise_samples(noisy, denoiser(stage("dtln_1", backend), stage("dtln_2", backend)))
    assert found.shape == clean.shape
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)
    gain = snr(clean, found) - snr(clean, noisy)
    assert gain == pytest.approx(snr(clean, expected) - snr(clean, noisy), abs=0.05)
    assert gain > 3, "it denoises"


def test_blocks_change_no_bit(speech):
    noisy = with_noise(speech[:RATE], 10)
    whole = denoise_samples(noisy, denoiser(stage("dtln_1"), stage("dtln_2")))
    by_other_blocks = by_blocks(denoiser(stage("dtln_1"), stage("dtln_2")), pieces(noisy, [1, 480, 0, 127, 5000, 33]))
    assert_same_bits(by_other_blocks, whole)
