import gc
import weakref

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.backends import BACKENDS, KERNELS, MAIN
from tests.engine.stream_models import (
    CARRY,
    HIDDEN,
    INPUTS,
    assert_same_state,
    bits,
    counter,
    feed,
    growing,
    gru,
    hidden_state,
    lookup,
    session,
    stateful,
)
from tests.models.fetch import model_path
from tests.onnx.models import floats, model
from webrnn.engine.kernels.loading import load

LENGTHS = {"1x100": [100], "10x10": [10] * 10, "100x1": [1] * 100, "37+63": [37, 63]}


def chunks(x, lengths, axis=0):
    return np.split(x, np.cumsum(lengths)[:-1], axis)


# Chunks


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("op", CARRY)
def test_chunks_of_any_length_give_the_same_bits(op, batch, backend):
    s = session(stateful(op), backend)
    x = feed(100, batch)
    states = {name: np.zeros((batch, HIDDEN) if op == "Scan" else (1, batch, HIDDEN), np.float32) for name in CARRY[op]}
    whole = s.run(["y"], {"x": x, **states})[0]
    for lengths in LENGTHS.values():
        stream = s.stream()
        y = np.concatenate([stream.step({"x": part})[0] for part in chunks(x, lengths)])
        assert bits([y]) == bits([whole])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_hidden_states_in_chunks(op, batch, backend):
    s = session(hidden_state(op), backend)
    x = feed(100, batch)
    (whole,) = s.run(None, {"x": x})
    for lengths in LENGTHS.values():
        stream = s.stream(carry="internal")
        y = np.concatenate([stream.step({"x": part})[0] for part in chunks(x, lengths)])
        assert bits([y]) == bits([whole])


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("batch", [1, 3])
def test_nsnet2_in_chunks(batch, backend):
    s = webrnn.InferenceSession(model_path("nsnet2_16k"), backend=backend)
    x = np.random.default_rng(0).standard_normal((batch, 100, 161)).astype(np.float32)
    found = {_by_chunks(s, x, lengths).tobytes() for lengths in LENGTHS.values()}
    assert len(found) == 1
    np.testing.assert_allclose(_by_chunks(s, x, [100]), s.run(None, {"input": x})[0], atol=1e-5, rtol=0)


def test_nsnet2_in_chunks_with_numpy():
    """Whose matrix products are BLAS's: their bits depend on the number of rows."""
    s = webrnn.InferenceSession(model_path("nsnet2_16k"), backend="numpy")
    x = np.random.default_rng(0).standard_normal((1, 6, 161)).astype(np.float32)
    (whole,) = s.run(None, {"input": x})
    for lengths in ([6], [2, 4], [1] * 6):
        np.testing.assert_allclose(_by_chunks(s, x, lengths), whole, atol=1e-5, rtol=0)


def _by_chunks(s, x, lengths):
    stream = s.stream(carry="internal")
    return np.concatenate([stream.step({"input": part})[0] for part in chunks(x, lengths, 1)], 1)


def test_a_state_that_grows():
    for backend in BACKENDS:
        stream = session(growing(), backend).stream(carry={"past_in": "past_out"})
        stream.load({"past_in": np.zeros((0, 2), np.float32)})
        sums = [stream.step({"x": np.full((1, 2), i, np.float32)})[0] for i in range(5)]
        assert [float(y) for y in sums] == [0, 2, 6, 12, 20]
        assert stream.state["past_in"].shape == (5, 2)


def last_chunk():
    """The state is the chunk before, however long it was."""
    nodes = [
        helper.make_node("Identity", ["x"], ["x_out"]),
        helper.make_node("ReduceSum", ["x_in"], ["y"], keepdims=0),
    ]
    return model(
        nodes,
        [floats("x", ["new", 2]), floats("x_in", ["old", 2])],
        [floats("y", []), floats("x_out", ["new", 2])],
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_state_of_changing_size(backend):
    stream = session(last_chunk(), backend).stream(carry={"x_in": "x_out"})
    sums = []
    for rows in (3, 1, 1, 1000, 1000, 2, 5):
        sums.append(float(stream.step({"x": np.full((rows, 2), 0.5, np.float32)})[0]))
        assert stream.state["x_in"].shape == (rows, 2)
    assert sums == [0, 3, 1, 1, 1000, 1000, 2]


@pytest.mark.parametrize("backend", KERNELS)
def test_views_keep_the_memory_of_the_kernels(backend):
    kernels = load(backend)
    buffer = kernels.buffer(np.ones(1000, np.float32))
    if backend == MAIN:
        alive = weakref.ref(buffer.block.base)
        view = buffer.array[1:]
        del buffer
        gc.collect()
        assert alive() is not None
        del view
        gc.collect()
        assert alive() is None
    else:
        address, view = buffer.address, buffer.array[1:]
        del buffer
        gc.collect()
        assert kernels.empty(1000).address != address
        del view
        gc.collect()
        assert kernels.empty(1000).address == address


@pytest.mark.parametrize("backend", BACKENDS)
def test_states_of_other_types(backend):
    stream = session(counter(), backend).stream(carry={"count_in": "count_out", "sum_in": "sum_out"})
    for _ in range(3):
        (y,) = stream.step({"x": np.ones((2, 2), np.float32)})
    assert_same_state(stream.state, {"count_in": np.int64([3]), "sum_in": np.full((2, 2), 3, np.float32)})
    np.testing.assert_array_equal(y, np.full((2, 2), 3, np.int64))


# Results


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_are_the_callers(backend):
    stream = gru(backend)
    (first,) = stream.step({"x": feed(2, 1)})
    kept = first.copy()
    first[...] = 7
    (second,) = stream.step({"x": feed(2, 1, seed=1)})
    other = gru(backend)
    assert bits(other.step({"x": feed(2, 1)})) == bits([kept])
    assert bits(other.step({"x": feed(2, 1, seed=1)})) == bits([second])


@pytest.mark.parametrize("backend", BACKENDS)
def test_out_is_filled_and_returned(backend):
    stream, twin = gru(backend), gru(backend)
    out = np.full((2, 1, 3, HIDDEN), np.nan, np.float32)
    (y,) = stream.step({"x": feed(2, 3)}, out=[out])
    assert y is out
    assert bits([out]) == bits(twin.step({"x": feed(2, 3)}))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ([], "out has 0 arrays, a step returns 1"),
        ([np.zeros((2, 1, 1, HIDDEN), np.float64)], r"out for 'y' is float64.*gives float32"),
        ([np.zeros((1, 1, 1, HIDDEN), np.float32)], r"out for 'y' is float32\[1, 1, 1, 5\]"),
        ([[1.0]], "out for 'y' is a list"),
    ],
)
def test_wrong_out_leaves_the_state(out, message):
    stream = gru()
    stream.step({"x": feed(2, 1)})
    before = stream.state
    with pytest.raises(webrnn.ShapeError, match=message):
        stream.step({"x": feed(2, 1)}, out=out)
    assert_same_state(stream.state, before)


@pytest.mark.parametrize("backend", BACKENDS)
def test_borrowed_results(backend):
    stream, twin = gru(backend), gru(backend)
    for seed in range(4):
        borrowed = stream.step({"x": feed(2, 1, seed)}, borrow=True)
        assert bits(borrowed) == bits(twin.step({"x": feed(2, 1, seed)}))
        for array in borrowed:
            array[...] = np.nan  # it is not the state
    assert_same_state(stream.state, twin.state)


@pytest.mark.parametrize("backend", KERNELS)
def test_borrowed_results_share_the_memory_of_the_kernels(backend):
    stream = gru(backend)
    (first,) = stream.step({"x": feed(2, 1)}, borrow=True)
    (second,) = stream.step({"x": feed(2, 1)}, borrow=True)
    assert np.shares_memory(first, second)


@pytest.mark.parametrize("backend", BACKENDS)
def test_borrowed_memory_outlives_the_stream_and_longer_chunks(backend):
    stream = gru(backend)
    (small,) = stream.step({"x": feed(2, 1)}, borrow=True)
    (large,) = stream.step({"x": feed(2000, 1)}, borrow=True)
    kept = large.copy()
    del stream
    gc.collect()
    noise = [np.ones(1 << 20, np.float32) for _ in range(8)]
    assert small.shape == (2, 1, 1, HIDDEN)
    assert np.isfinite(small.sum())
    np.testing.assert_array_equal(large, kept)
    del noise


# Feeds


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "input 'x' is missing"),
        ({"x": feed(1, 1), "z": feed(1, 1)}, r"'z' is no input; a step takes \['x'\]"),
        ({"x": feed(1, 1), "h_in": np.zeros((1, 1, HIDDEN), np.float32)}, "'h_in' is carried"),
        ({"z": feed(1, 1)}, "'z' is no input"),
        ({"x": feed(1, 1).astype(np.float64)}, "input 'x' is float64"),
        ({"x": feed(1, 1)[0]}, r"input 'x' has shape \(1, 4\)"),
        ({"x": feed(1, 1)[:, :, :3]}, "axis 2 is 3, not 4"),
        ({"x": None}, "input 'x'"),
        ({"x": [[1.0], [2.0, 3.0]]}, "input 'x'"),
    ],
)
def test_wrong_feeds_leave_the_state(feeds, message, is_running, backend):
    stream, twin = gru(backend), gru(backend)
    if is_running:
        stream.step({"x": feed(2, 1)})
        twin.step({"x": feed(2, 1)})
    with pytest.raises(webrnn.ShapeError, match=message):
        stream.step(feeds)
    assert_same_state(stream.state, twin.state)
    assert bits(stream.step({"x": feed(1, 1)})) == bits(twin.step({"x": feed(1, 1)}))


@pytest.mark.parametrize("backend", BACKENDS)
def test_lists_and_strided_arrays_are_feeds(backend):
    x = feed(4, 3)
    expected = gru(backend).step({"x": x[::2]})
    assert bits(gru(backend).step({"x": np.ascontiguousarray(x[::2])})) == bits(expected)
    turned = np.asfortranarray(x[::2])
    stream = gru(backend)
    stream.step({"x": x[::2]})
    stream.reset()
    assert bits(stream.step({"x": turned})) == bits(expected)
    for numbers in (x[::2].tolist(), [*x[::2].astype(np.float64)]):  # lists have no type, as with onnxruntime
        stream.reset()
        assert bits(stream.step({"x": numbers})) == bits(expected)
    for wrong in (x.astype(np.float64), [[["no", "number", "here"]]]):
        with pytest.raises(webrnn.ShapeError, match=r"float64|<U6"):
            stream.step({"x": wrong})


@pytest.mark.parametrize("backend", BACKENDS)
def test_another_batch_does_not_fit_the_state(backend):
    for op in ("GRU", "Scan"):
        stream = session(stateful(op), backend).stream()
        stream.step({"x": feed(2, 1)})
        before = stream.state
        with pytest.raises(webrnn.ShapeError, match=r"'h_in' has shape|'x' has shape"):
            stream.step({"x": feed(2, 3)})
        assert_same_state(stream.state, before)
        stream.reset()
        assert stream.step({"x": feed(2, 3)})[0].size == 2 * 3 * HIDDEN


# Failing steps


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("steps_before", [0, 1, 2])
def test_a_step_that_is_not_finite_changes_nothing(steps_before, backend):
    stream, twin = gru(backend, check_finite=True), gru(backend)
    for seed in range(steps_before):
        stream.step({"x": feed(1, 1, seed)})
        twin.step({"x": feed(1, 1, seed)})
    out = [np.zeros((1, 1, 1, HIDDEN), np.float32)]
    for bad in (np.nan, np.inf):
        x = np.full((1, 1, INPUTS), bad, np.float32)
        x[0, 0, 1] = np.nan
        for options in ({}, {"out": out}, {"borrow": True}):
            with pytest.raises(webrnn.ModelError, match="not finite; the stream is as it was"):
                stream.step({"x": x}, **options)
    assert_same_state(stream.state, twin.state)
    assert not out[0].any()
    assert bits(stream.step({"x": feed(1, 1)})) == bits(twin.step({"x": feed(1, 1)}))


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_the_check_nan_goes_through(backend):
    stream = gru(backend)
    assert np.isnan(stream.step({"x": np.full((1, 1, INPUTS), np.nan, np.float32)})[0]).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_index_out_of_range_changes_nothing(backend):
    stream = session(lookup(), backend).stream(carry={"sum_in": "sum_out"})
    for _ in range(2):
        with pytest.raises(webrnn.ShapeError, match="pick"):
            stream.step({"index": np.int64([9])})
    assert stream.state == {}
    stream.step({"index": np.int64([1])})
    before = stream.state
    for bad in (4, -5):
        with pytest.raises(webrnn.ShapeError, match="pick"):
            stream.step({"index": np.int64([bad])})
        assert_same_state(stream.state, before)
    (y,) = stream.step({"index": np.int64([2])})
    np.testing.assert_array_equal(y, [[-9, -11, -13]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_failed_first_step_does_not_fix_the_batch(backend):
    stream = gru(backend, check_finite=True)
    with pytest.raises(webrnn.ModelError):
        stream.step({"x": np.full((1, 3, INPUTS), np.nan, np.float32)})
    assert stream.state == {}
    assert bits(stream.step({"x": feed(1, 1)})) == bits(gru(backend).step({"x": feed(1, 1)}))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("way", ["loaded", "running"])
def test_a_failed_step_of_another_length_changes_nothing(way, backend):
    stream, twin = gru(backend, check_finite=True), gru(backend)
    for each in (stream, twin):
        each.step({"x": feed(2, 1)})
        if way == "loaded":
            each.load(each.state)
    for steps in (3, 3, 5):
        with pytest.raises(webrnn.ModelError, match="not finite"):
            stream.step({"x": np.full((steps, 1, INPUTS), np.nan, np.float32)})
        assert_same_state(stream.state, twin.state)
        assert_same_state(stream.fork().state, twin.state)
    for steps in (5, 2):
        assert bits(stream.step({"x": feed(steps, 1)})) == bits(twin.step({"x": feed(steps, 1)}))
    assert_same_state(stream.state, twin.state)


# Internal states and plan files


@pytest.mark.parametrize("backend", BACKENDS)
def test_internal_states_are_snapshots_as_well(backend):
    s = session(hidden_state("LSTM"), backend)
    stream = s.stream(carry="internal")
    stream.step({"x": feed(4, 2)})
    state = stream.state
    assert set(state) == {"cell.h", "cell.c"}
    fork = s.stream(carry="internal")
    fork.load(state)
    assert bits(fork.step({"x": feed(2, 2)})) == bits(stream.step({"x": feed(2, 2)}))


@pytest.mark.parametrize("backend", KERNELS)
def test_streams_of_plan_files(backend, tmp_path):
    s = session(stateful("LSTM"), backend)
    s.export(tmp_path / "m.rnn")
    stream = webrnn.InferenceSession(tmp_path / "m.rnn", backend=backend).stream()
    assert stream.carry == CARRY["LSTM"]
    expected = s.stream()
    for steps in (1, 1, 7, 2):
        assert bits(stream.step({"x": feed(steps, 2, steps)})) == bits(expected.step({"x": feed(steps, 2, steps)}))
    assert_same_state(stream.state, expected.state)
    fork = stream.fork()
    assert bits(fork.step({"x": feed(1, 2)})) == bits(expected.step({"x": feed(1, 2)}))


def test_internal_is_chosen_at_export(tmp_path):
    session(hidden_state("GRU")).export(tmp_path / "m.rnn")
    with pytest.raises(webrnn.ModelError, match="chosen when a plan is exported"):
        webrnn.InferenceSession(tmp_path / "m.rnn").stream(carry="internal")


@pytest.mark.parametrize("backend", KERNELS)
def test_plan_files_with_hidden_states(backend, tmp_path):
    s = session(hidden_state("LSTM"), backend)
    s.export(tmp_path / "m.rnn", carry="internal")
    stream = webrnn.InferenceSession(tmp_path / "m.rnn", backend=backend).stream()
    x = feed(9, 2)
    y = np.concatenate([stream.step({"x": part})[0] for part in chunks(x, [1, 5, 3])])
    assert bits([y]) == bits(s.run(None, {"x": x}))


@pytest.mark.parametrize("name", ["riann", "dtln_1"])
def test_real_models_as_plan_files(name, tmp_path):
    s = webrnn.InferenceSession(model_path(name), backend=MAIN)
    s.export(tmp_path / "m.rnn")
    stream, expected = webrnn.InferenceSession(tmp_path / "m.rnn").stream(), s.stream()
    shape = [dim if isinstance(dim, int) else 1 for dim in s.get_inputs()[0].shape]
    rng = np.random.default_rng(0)
    for _ in range(4):
        x = {s.get_inputs()[0].name: rng.standard_normal(shape).astype(np.float32)}
        for ours, theirs in zip(stream.step(x), expected.step(x), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-6)
