"""Real models as streams: those of packages, and what torch's two exporters write of models over time."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import webrnn
from tests.models.fetch import Unavailable, model_path
from webrnn.audio.plans import openwakeword

from .judge import by_steps, cuttings, difference, obstacles, open_stream

BACKENDS = ("native", "wasm:relaxed", "wasm:simd")
EXPORTED = sorted((Path(__file__).parent / "exported").glob("*.onnx"))
TIMES = {
    "wavenet": (2, 64),
    "tcn": (2, 64),
    "crn": (1, 12),
    "tasnet": (1, 64),
    "kws": (1, 48),
    "mel_gru": (1, 96),
    "lstm_states": (1, 9),
    "down_and_up": (2, 14),
}
"""The axis of time and how many frames are tried."""
DELAYS = {"wavenet": 0, "tcn": 0, "crn": 0, "tasnet": 4, "kws": 16, "mel_gru": 16, "lstm_states": 0, "down_and_up": 4}
"""By how many frames of the input a stream is behind: nothing where the model is causal."""


def fetched(name):
    try:
        return model_path(name)
    except Unavailable as error:
        pytest.skip(str(error))


def assert_streams(session, feeds, stream=None, seed=0):
    """All cuttings, with a flush, are the whole run bit for bit."""
    stream = stream or open_stream(session)
    whole = dict(zip([value.name for value in session.get_outputs()], session.run(None, feeds), strict=True))
    name, axis = next(iter(stream.timing.inputs.items()))
    for lengths in cuttings(feeds[name].shape[axis], stream.stride, np.random.default_rng(seed)):
        stream.reset()
        given = by_steps(stream, feeds, lengths)
        gap = difference(given, {name: whole[name] for name in stream.output_names})
        assert not gap, (lengths, gap)
    return stream


@pytest.mark.parametrize("path", EXPORTED, ids=lambda path: path.name.removesuffix(".onnx"))
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_torch_exports(path, backend):
    name = path.name.split(".")[0]
    axis, frames = TIMES[name]
    model = onnx.load(path)
    session = webrnn.InferenceSession(path, backend=backend)
    dims = model.graph.input[0].type.tensor_type.shape.dim
    shape = [frames if place == axis else dim.dim_value or 2 for place, dim in enumerate(dims)]
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    stream = assert_streams(session, {"x": x})
    assert dict(stream.timing.inputs) == {"x": axis}
    assert stream.delay == DELAYS[name]
    assert not obstacles(stream)


def wake_word_models():
    return [fetched(name) for name in ("oww_melspec", "oww_embedding", "hey_mycroft_lstm")]


def by_windows(paths, samples, backend):
    """As openWakeWord calls its models: the last 1760 samples, 76 mel frames and 16 embeddings, every 80 ms."""
    melspec, embedding, head = (webrnn.InferenceSession(path, backend=backend) for path in paths)
    padded = np.concatenate([np.zeros(480, np.float32), samples])
    frames, embeddings, scores = np.zeros((0, 32), np.float32), np.zeros((0, 96), np.float32), []
    for start in range(0, len(samples), 1280):
        (mel,) = melspec.run(None, {"input": padded[None, start : start + 1760]})
        frames = np.concatenate([frames, mel[0, 0] / np.float32(10) + np.float32(2)])
        if len(frames) >= 76:
            (made,) = embedding.run(None, {"input_1": frames[None, -76:, :, None]})
            embeddings = np.concatenate([embeddings, made[0, 0]])
        if len(embeddings) >= 16:
            scores.append(head.run(None, {"input_1": embeddings[None, -16:]})[0][0])
    return np.array(scores)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_wake_word_in_one_stream_is_the_windowed_run(backend):
    paths = wake_word_models()
    steps = 30
    samples = (1000 * np.random.default_rng(3).standard_normal(1280 * steps)).astype(np.float32)
    session = openwakeword(*paths).session(backend)
    stream = assert_streams(session, {"samples": samples})
    assert (stream.stride, stream.delay) == (1280, 24 * 1280)  # the first score is that of two seconds, at once
    assert not obstacles(stream)
    (scores,) = session.run(None, {"samples": samples})
    assert scores.shape == (steps - 24, 1)
    assert scores.tobytes() == by_windows(paths, samples, backend).tobytes()


def test_a_wake_word_is_a_plan_file(tmp_path):
    model = openwakeword(*wake_word_models())
    model.export(tmp_path / "wake.rnn")
    samples = (1000 * np.random.default_rng(4).standard_normal(1280 * 26)).astype(np.float32)
    loaded = webrnn.InferenceSession(tmp_path / "wake.rnn")
    given = by_steps(loaded.stream(), {"samples": samples}, [1280] * 26)
    (scores,) = model.session().run(None, {"samples": samples})
    assert given["score"].tobytes() == scores.tobytes()
    assert loaded.about["audio"]["frame"] == 1280


def test_a_step_of_a_wake_word_computes_new_frames_only():
    """Of the multiplications of the windowed run, at most a fifth."""
    stream = openwakeword(*wake_word_models()).session("native").stream(carry="internal")
    stream.step({"samples": np.zeros(1280, np.float32)})
    frames_kept = sum(state.size for name, state in stream.state.items() if state.dtype == np.float32)
    assert frames_kept < 60_000  # a window of 76 frames at each of 20 layers would be a million numbers


def test_the_whole_mel_model_is_refused_for_its_maximum():
    session = webrnn.InferenceSession(fetched("oww_melspec"))
    with pytest.raises(webrnn.ModelError) as raised:
        session.stream(carry="internal", time={"input": 1})
    assert raised.value.node


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("time", [{"samples:0": 1}, None])
def test_a_loop_over_the_batch_that_cuts_frames(backend, time):
    """localwake: tf.map_fn over sequences, tf.signal.frame in it, then the embedding of 76 frames, every 80 ms."""
    session = webrnn.InferenceSession(fetched("localwake_loop"), backend=backend)
    samples = 0.1 * np.random.default_rng(7).standard_normal((1, 1280 * 20)).astype(np.float32)
    stream = assert_streams(session, {"samples:0": samples}, open_stream(session, time))
    assert (stream.stride, stream.delay) == (1280, 9 * 1280)
    assert session.run(None, {"samples:0": samples})[0].shape == (1, 11, 1, 96)
    assert not obstacles(stream)
    with pytest.raises(webrnn.ShapeError):
        stream.step({"samples:0": np.concatenate([samples, samples])})


@pytest.mark.parametrize("backend", BACKENDS)
def test_features_of_frames_that_a_buffer_cuts(backend):
    """wespeaker: a Scan keeps the last samples, from the first ones on; frames behind the length that is fed are 0."""
    session = webrnn.InferenceSession(fetched("wespeaker_scan"), backend=backend)
    samples = 0.1 * np.random.default_rng(8).standard_normal((2, 160 * 9)).astype(np.float32)
    feeds = {"waveforms": samples, "waveforms_lens": np.array([160 * 9, 160 * 6])}
    stream = assert_streams(session, feeds, open_stream(session, {"waveforms": 1}))
    assert (stream.stride, stream.delay) == (160, 320)


def test_an_open_batch_is_not_taken_for_time():
    with pytest.raises(webrnn.ModelError, match="time="):
        webrnn.InferenceSession(fetched("oww_embedding")).stream(carry="internal")


@pytest.mark.parametrize("backend", BACKENDS)
def test_nsnet2(backend):
    session = webrnn.InferenceSession(fetched("nsnet2_16k"), backend=backend)
    x = np.random.default_rng(5).standard_normal((1, 10, 161)).astype(np.float32)
    stream = assert_streams(session, {"input": x})
    assert (stream.stride, stream.delay) == (1, 0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_silero_for_sequences(backend):
    """Its state is an input and an output: it is carried by name."""
    session = webrnn.InferenceSession(fetched("silero_v6_seq"), backend=backend)
    rng = np.random.default_rng(6)
    x = 0.1 * rng.standard_normal((9, 576)).astype(np.float32)
    zeros = np.zeros((1, 1, 128), np.float32)
    whole = session.run(None, {"input": x, "h": zeros, "c": zeros})
    for size in (1, 2, 7, 9):
        stream = session.stream(carry={"h": "hn", "c": "cn"})
        parts = [stream.step({"input": x[first : first + size]})[0] for first in range(0, 9, size)]
        assert np.concatenate(parts).tobytes() == whole[0].tobytes()
        assert stream.state["h"].tobytes() == whole[1].tobytes()


@pytest.mark.parametrize("backend", BACKENDS)
def test_localwake(backend):
    """A loop over the batch cuts frames out of each signal and makes bands of them; convolutions follow."""
    session = webrnn.InferenceSession(fetched("localwake_loop"), backend=backend)
    stream = session.stream(carry="internal", time={"samples:0": 1})
    assert (stream.stride, stream.delay) == (1280, 9 * 1280)
    x = (0.1 * np.random.default_rng(7).standard_normal((1, 1280 * 14))).astype(np.float32)
    assert_streams(session, {"samples:0": x}, stream)


def test_silero_for_sequences_starts_from_what_is_fed():
    session = webrnn.InferenceSession(fetched("silero_v6_seq"))
    rng = np.random.default_rng(8)
    feeds = {name: rng.standard_normal((1, 1, 128)).astype(np.float32) for name in "hc"}
    feeds["input"] = 0.1 * rng.standard_normal((9, 576)).astype(np.float32)
    stream = assert_streams(session, feeds)
    assert dict(stream.timing.inputs) == {"input": 0}
