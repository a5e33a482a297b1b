"""NSNet2 frame by frame: what one run over the whole recording gives."""

import numpy as np
import pytest

import webrnn
from bench.audio import peer_session
from examples.nsnet2_stream import HOP, RATE, SIZE, WINDOW, denoiser, difference, features, gain, with_noise
from tests.audio.cutting import assert_same_bits, by_blocks, pieces
from webrnn.audio import istft, stft
from webrnn.models import fetch


@pytest.mark.parametrize(("backend", "seconds"), [("native", 20), ("wasm:relaxed", 5), ("numpy", 0.5)])
def test_frame_by_frame_is_the_whole(backend, seconds, speech):
    session = webrnn.InferenceSession(fetch("nsnet2_16k"), backend=backend)
    assert difference(session, with_noise(speech[: int(seconds * RATE)])) <= 1e-5


def test_frames_depend_on_those_before(speech):
    session = webrnn.InferenceSession(fetch("nsnet2_16k"))
    inputs = features(stft(with_noise(speech[:RATE]), SIZE, HOP, WINDOW))
    carried, alone = gain(session), session.run(None, {"input": inputs[-1:][None]})[0][0, 0]
    for frame in inputs:
        last = carried(frame)
    assert np.abs(last - alone).max() > 1e-2


def test_the_signal_is_that_of_onnxruntime_on_the_whole_recording(speech):
    noisy = with_noise(speech[: 5 * RATE])
    spectra = stft(noisy, SIZE, HOP, WINDOW)
    gains = peer_session("nsnet2_16k").run(None, {"input": features(spectra)[None]})[0][0].clip(1e-4, 1)
    expected = istft(spectra * gains, SIZE, HOP, WINDOW, length=len(noisy))
    session = webrnn.InferenceSession(fetch("nsnet2_16k"))
    found = by_blocks(denoiser(gain(session)), pieces(noisy, [7, 1000, 160, 0, 33333]))
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
    assert_same_bits(by_blocks(denoiser(gain(session)), [noisy]), found)
