"""Whole audio models as one plan: what the pipelines of Python give, the same bits on all kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import webrnn
from tests.audio.cutting import assert_same_bits, by_blocks
from tests.backends import KERNELS, MAIN
from tests.models.fetch import model_path as fetch
from webrnn.audio import FrameFilter, plans

RATE = 16000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plans")
    plans.dtln(fetch("dtln_1"), fetch("dtln_2")).export(folder / "dtln.rnn")
    plans.silero(fetch("silero_v6").read_bytes()).export(folder / "silero.rnn")
    return folder


def _filtered(session: webrnn.InferenceSession, samples: np.ndarray) -> np.ndarray:
    stream, audio = session.stream(), session.about["audio"]
    frames = FrameFilter(lambda frame: stream.step({audio["input"]: frame})[0], audio["frame"], audio["hop"])
    return by_blocks(frames, [samples])


def test_dtln_is_the_pipeline_of_two_models(speech, files):
    from examples.denoise_wav import denoise_samples, denoiser, stage, with_noise

    noisy = with_noise(speech[: 10 * RATE], 10)
    expected = denoise_samples(noisy, denoiser(stage("dtln_1"), stage("dtln_2")))
    found = _filtered(webrnn.InferenceSession(files / "dtln.rnn"), noisy)
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


def test_silero_keeps_its_context(speech, files):
    from examples.vad import chunks, detector

    samples = speech[: RATE * 10 // 512 * 512]
    expected = list(map(detector(), chunks([samples], RATE)))
    assert_same_bits(_probabilities(files, MAIN, samples), np.array(expected, np.float32))


def _probabilities(files: Path, backend: str, samples: np.ndarray) -> np.ndarray:
    stream = webrnn.InferenceSession(files / "silero.rnn", backend=backend).stream()
    return np.concatenate([stream.step({"samples": chunk})[0] for chunk in samples.reshape(-1, 512)])


def test_all_kernels_give_the_same_bits(speech, files):
    samples = speech[: 100 * 512]
    filtered = [_filtered(webrnn.InferenceSession(files / "dtln.rnn", backend=name), samples) for name in KERNELS]
    analysed = [_probabilities(files, name, samples) for name in KERNELS]
    for found in (filtered, analysed):
        for other in found[1:]:
            assert_same_bits(other, found[0])
    assert analysed[0].max() > 0.9, "somebody speaks"


def test_all_of_it_is_one_plan(files):
    for name in ("dtln", "silero"):
        session = webrnn.InferenceSession(files / f"{name}.rnn")
        assert session.get_inputs()[0].name == "samples"
        assert len(session.stream().carry) == 2
        assert "numpy" not in session.report()


def test_filter_of_a_model_that_was_not_exported(speech):
    model = plans.dtln(fetch("dtln_1"), fetch("dtln_2"))
    found, expected = (by_blocks(model.filter(backend), [speech[:4000]]) for backend in (MAIN, "numpy"))
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
    with pytest.raises(webrnn.ModelError, match="not samples"):
        plans.silero(fetch("silero_v6")).filter()


def test_models_that_do_not_fit():
    with pytest.raises(webrnn.ModelError, match="frames of 257 numbers"):
        plans.dtln(fetch("dtln_2"), fetch("dtln_1"))
    with pytest.raises(webrnn.Error):
        plans.silero(fetch("dtln_1"))


def test_command(tmp_path, capsys):
    target = tmp_path / "vad.rnn"
    assert plans.main(["silero", str(fetch("silero_v6")), "-o", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}: {target.stat().st_size:,} bytes\n"
    assert webrnn.InferenceSession(target).about["audio"]["kind"] == "analyser"
    assert plans.main(["silero", str(target), "-o", str(target)]) == 1
    assert "Error" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        plans.main(["dtln", "one.onnx"])


def test_a_session_of_a_graph_leaves_the_graph_alone():
    model = plans.silero(fetch("silero_v6"))
    count = len(model.graph.nodes)
    model.session()
    assert len(model.graph.nodes) == count
    with pytest.raises(webrnn.OptionError, match="fixed"):
        webrnn.InferenceSession(model.graph, fixed={"samples": 0})
