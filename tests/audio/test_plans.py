"""Whole audio models as one plan: what the pipelines of Python give, natively and on wasm, to the bit between them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import webrnn
from examples.denoise_wav import denoise_samples, denoiser, stage, with_noise
from examples.vad import chunks, detector
from tests.audio.cutting import assert_same_bits
from tests.models.fetch import CACHE
from tests.models.fetch import model_path as fetch
from webrnn.audio import FrameFilter, plans

RATE = 16000
PAGE = Path(__file__).parents[2] / "docs" / "audio-worklet.md"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plans")
    plans.dtln(fetch("dtln_1"), fetch("dtln_2")).export(folder / "dtln.rnn")
    plans.silero(fetch("silero_v6")).export(folder / "silero.rnn")
    return folder


def _filter(session: webrnn.InferenceSession) -> FrameFilter:
    stream, audio = session.stream(), session.about["audio"]
    return FrameFilter(lambda frame: stream.step({audio["input"]: frame})[0], audio["frame"], audio["hop"])


def test_dtln_is_the_pipeline_of_two_models(speech, files):
    noisy = with_noise(speech[: 10 * RATE], 10)
    expected = denoise_samples(noisy, denoiser(stage("dtln_1"), stage("dtln_2")))
    native = denoise_samples(noisy, _filter(webrnn.InferenceSession(files / "dtln.rnn", backend="native")))
    np.testing.assert_allclose(native, expected, atol=1e-5, rtol=0)
    relaxed = denoise_samples(noisy, _filter(webrnn.InferenceSession(files / "dtln.rnn", backend="wasm:relaxed")))
    assert_same_bits(relaxed, native)


def test_silero_keeps_its_context(speech, files):
    samples = speech[: RATE * 10 // 512 * 512]
    expected = list(map(detector(), chunks([samples], RATE)))
    for backend in ("native", "wasm:relaxed"):
        stream = webrnn.InferenceSession(files / "silero.rnn", backend=backend).stream()
        found = [stream.step({"samples": samples[first : first + 512]})[0] for first in range(0, len(samples), 512)]
        assert np.array_equal(np.array(found)[:, 0], np.array(expected, np.float32))


def test_all_of_it_is_one_plan(files):
    for name, states in (("dtln", 2), ("silero", 2)):
        session = webrnn.InferenceSession(files / f"{name}.rnn")
        assert session.get_inputs()[0].name == "samples"
        assert len(session.stream().carry) == states
        assert "numpy" not in session.report()


def test_filter_of_a_model_that_was_not_exported(speech):
    model = plans.dtln(fetch("dtln_1"), fetch("dtln_2"))
    found = denoise_samples(speech[:4000], model.filter("numpy"))
    np.testing.assert_allclose(found, denoise_samples(speech[:4000], model.filter("native")), atol=1e-5, rtol=0)
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


def test_code_of_the_page(tmp_path, monkeypatch, speech):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEBRNN_MODELS", str(CACHE))
    for name in ("dtln_1", "dtln_2", "silero_v6"):
        fetch(name)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    assert len(names["clean"]) == 16000 - 384
    assert {file.name for file in tmp_path.iterdir()} == {"silero.rnn", "dtln.rnn", "quieter.rnn"}
    found = webrnn.InferenceSession("quieter.rnn").run(None, {"x": np.ones(128, np.float32)})
    assert np.array_equal(found[0], np.full(128, 0.5, np.float32))


def test_a_session_of_a_graph_leaves_the_graph_alone():
    model = plans.silero(fetch("silero_v6"))
    count = len(model.graph.nodes)
    model.session()
    assert len(model.graph.nodes) == count
    with pytest.raises(webrnn.OptionError, match="fixed"):
        webrnn.InferenceSession(model.graph, fixed={"samples": 0})
