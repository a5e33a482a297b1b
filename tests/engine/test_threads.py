"""`InferenceSession(..., threads=)`: the same bits for any number."""

import numpy as np
import pytest

import webrnn
from tests.models.fetch import model_path
from tests.models.real_models import feeds_of
from webrnn.bench.models import BUILT_IN, streaming_gru
from webrnn.bench.onnx_file import GraphFile
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


def both_directions(op, hidden=48):
    """x[t, n, 16] through a layer in both directions, and another one."""
    graph, rng = GraphFile("both"), np.random.default_rng(2)
    gates, inputs = {"RNN": 1, "GRU": 3, "LSTM": 4}[op] * hidden, (16, 2 * hidden)
    for layer, width in enumerate(inputs):
        for name, shape in (("W", (2, gates, width)), ("R", (2, gates, hidden)), ("B", (2, 2 * gates))):
            graph.constant(f"{name}{layer}", rng.uniform(-0.2, 0.2, shape).astype(np.float32))
    graph.constant("flat", np.array([0, 0, 2 * hidden], np.int64))
    graph.node(op, ["x", "W0", "R0", "B0"], ["y0"], hidden_size=hidden, direction="bidirectional")
    graph.node("Transpose", ["y0"], ["z0"], perm=[0, 2, 1, 3])
    graph.node("Reshape", ["z0", "flat"], ["x1"])
    graph.node(op, ["x1", "W1", "R1", "B1"], ["y", "h"], hidden_size=hidden, direction="bidirectional")
    return graph.model({"x": ["t", "n", 16]}, {"y": ["t", 2, "n", hidden], "h": [2, "n", hidden]})


def plan_of(session):
    return session._program.plan


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_both_directions(op):
    one, *others = (webrnn.InferenceSession(both_directions(op), backend="native", threads=n) for n in (1, 2, 3, 4))
    rng = np.random.default_rng(3)
    assert [plan_of(session).file.has_sides for session in (one, *others)] == [False, True, True, False]
    for steps, batch in ((60, 1), (31, 8), (5, 2), (40, 19), (1, 1), (0, 3)):
        feeds = {"x": rng.standard_normal((steps, batch, 16)).astype(np.float32)}
        wanted = one.run(None, feeds)
        assert all(same(session.run(None, feeds), wanted) for session in others for _ in range(5)), (steps, batch)


def test_side_by_side_can_be_switched_off():
    session = webrnn.InferenceSession(both_directions("GRU"), backend="native", threads=2, disable=["side_by_side"])
    assert not plan_of(session).file.has_sides


def test_help_is_called_for_directions_of_small_steps():
    """No step is worth a part, a direction is."""
    feeds = {"x": np.ones((400, 1, 16), np.float32)}
    model = both_directions("RNN")
    for disable, is_needed in ((), True), (["side_by_side"], False):
        session = webrnn.InferenceSession(model, backend="native", threads=2, disable=disable)
        session.run(None, feeds)
        assert plan_of(session)._crew.is_needed == is_needed


def test_files_have_nothing_for_threads(tmp_path):
    files = []
    for threads in (1, 2):
        session = webrnn.InferenceSession(both_directions("GRU"), backend="native", threads=threads)
        session.export(tmp_path / "both.rnn", about={"for": "tests"})
        files.append((tmp_path / "both.rnn").read_bytes())
    assert files[0] == files[1]


def test_a_file_with_sides_runs(tmp_path):
    session = webrnn.InferenceSession(both_directions("LSTM"), backend="native", threads=2)
    feeds = {"x": np.random.default_rng(0).standard_normal((50, 4, 16)).astype(np.float32)}
    wanted = session.run(None, feeds)
    for threads in (1, 2):
        loaded = webrnn.InferenceSession(plan_of(session).file.data, backend="native", threads=threads)
        assert all(same(loaded.run(None, feeds), wanted) for _ in range(3))


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
