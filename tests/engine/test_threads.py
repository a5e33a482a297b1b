"""`InferenceSession(..., threads=)`: the same bits for any number."""

import numpy as np
import pytest

import webrnn
from tests.models.fetch import model_path
from tests.models.real_models import feeds_of
from webrnn.bench.models import BUILT_IN, streaming_gru
from webrnn.engine.kernels.team import number_of_threads, processors
from webrnn.guesses import random_input

REAL = ("nsnet2_16k", "riann", "silero_v6_seq", "dtln_1", "localwake_loop")


def same(results, others):
    return all(a.tobytes() == b.tobytes() for a, b in zip(results, others, strict=True))


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_models(name):
    one, three = (webrnn.InferenceSession(BUILT_IN[name](), backend="native", threads=n) for n in (1, 3))
    rng = np.random.default_rng(0)
    feeds = {value.name: random_input(value, {}, rng) for value in one.inputs}
    wanted = one.run(None, feeds)
    assert all(same(three.run(None, feeds), wanted) for _ in range(5))


@pytest.mark.parametrize("weights", ["f32", "int8"])
@pytest.mark.parametrize("name", REAL)
def test_real_models(name, weights):
    path, feeds = model_path(name), feeds_of(name)[0]
    one, two = (webrnn.InferenceSession(path, backend="native", threads=n, weights=weights) for n in (1, 2))
    wanted = one.run(None, feeds)
    assert all(same(two.run(None, feeds), wanted) for _ in range(4))


@pytest.mark.parametrize("batch", [2, 7, 8, 40])
def test_batches(batch):
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.standard_normal((12, batch, 64)).astype(np.float32),
        "h_in": rng.standard_normal((1, batch, 128)).astype(np.float32),
    }
    one, *others = (webrnn.InferenceSession(streaming_gru(), backend="native", threads=n) for n in (1, 2, 5))
    wanted = one.run(None, feeds)
    assert all(same(session.run(None, feeds), wanted) for session in others for _ in range(4))


def test_streams_and_pools():
    rng = np.random.default_rng(1)
    frames = rng.standard_normal((6, 30, 1, 64)).astype(np.float32)
    results = []
    for threads in (1, 2):
        session = webrnn.InferenceSession(streaming_gru(), backend="native", threads=threads)
        stream, pool = session.stream(), session.pool(max_streams=6)
        streamed = [stream.step({"x": frames[0, t : t + 1]})[0] for t in range(30)]
        handles = [pool.open() for _ in range(6)]
        for handle, feed in zip(handles, frames, strict=True):
            pool.submit(handle, {"x": feed})
        ticked = pool.tick()
        results.append([*streamed, *(ticked[handle][0] for handle in handles)])
    assert same(*results)


def test_a_plan_file(tmp_path):
    session = webrnn.InferenceSession(streaming_gru(), backend="native", threads=2)
    session.export(tmp_path / "gru.rnn")
    feeds = {"x": np.ones((64, 1, 64), np.float32), "h_in": np.zeros((1, 1, 128), np.float32)}
    loaded = webrnn.InferenceSession(tmp_path / "gru.rnn", backend="native", threads=2)
    assert loaded.threads == 2
    assert same(loaded.run(None, feeds), session.run(None, feeds))


def test_limits_hold_with_threads():
    limits = webrnn.Limits(seconds=1e-5)
    session = webrnn.InferenceSession(BUILT_IN["gru_256x2"](), backend="native", threads=2, limits=limits)
    for _ in range(3):
        with pytest.raises(webrnn.LimitError, match="seconds"):
            session.run(None, {"x": np.zeros((100, 1, 256), np.float32)})


@pytest.mark.parametrize("threads", [0, -1, 32, 1.5, "two", True, None])
def test_no_number_of_threads(threads):
    with pytest.raises(webrnn.OptionError, match="threads is"):
        webrnn.InferenceSession(streaming_gru(), threads=threads)


@pytest.mark.parametrize("backend", ["wasm:simd", "numpy"])
def test_other_backends_have_one(backend):
    with pytest.raises(webrnn.OptionError, match="only the backend native"):
        webrnn.InferenceSession(streaming_gru(), backend=backend, threads=2)
    assert webrnn.InferenceSession(streaming_gru(), backend=backend, threads="auto").threads == 1


def test_auto():
    assert webrnn.InferenceSession(streaming_gru(), backend="native", threads="auto").threads == min(processors(), 31)
    assert number_of_threads(1, "pyodide") == 1
