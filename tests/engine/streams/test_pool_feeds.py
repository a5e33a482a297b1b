"""Handles and feeds of many streams: what is taken, and what is refused without a trace."""

import numpy as np
import pytest

import webrnn
from tests.engine.stream_models import INPUTS, bits, feed, session, stateful
from tests.engine.streams.timed_models import CHANNELS, Averages

N = 5


@pytest.fixture(scope="module")
def gru():
    return session(stateful("GRU"))


def expected(gru, steps):
    return [bits(gru.stream().step({"x": feed(steps, 1, seed)})) for seed in range(N)]


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("form", ["stacked", "by hand", "list", "strided", "unsorted"])
def test_layouts(gru, form, steps):
    pool = gru.pool(8)
    handles = pool.open_many(N)
    each = [feed(steps, 1, seed) for seed in range(N)]
    order = [3, 0, 4, 1, 2] if form == "unsorted" else list(range(N))
    arrays = {
        "stacked": np.stack(each),
        "by hand": np.concatenate(each, 1),
        "list": np.stack(each).tolist(),
        "strided": np.repeat(np.stack(each), 2, axis=0)[::2],
        "unsorted": np.stack([each[i] for i in order]),
    }
    for _ in range(3):  # in any order, in the same one, and in that of rows
        pool.submit_many(handles[order].tolist() if form == "list" else handles[order], {"x": arrays[form]})
        results = pool.tick_many()
        assert results.handles.tolist() == handles[order].tolist()
        found = [bits([array[row] for array in results.arrays]) for row in range(N)]
        assert found == [expected(gru, steps)[i] for i in order]
        for handle in handles:
            pool.load(int(handle), {})


def test_results_are_the_callers_own(gru):
    pool = gru.pool(8)
    handles, x = pool.open_many(N), np.concatenate([feed(1, 1, seed) for seed in range(N)], 1)
    pool.submit_many(handles, {"x": x})
    x[...] = 0  # feeds were copied
    first = pool.tick_many().arrays
    kept = bits(first)
    pool.submit_many(handles, {"x": x})
    pool.tick_many().arrays[0][...] = 7
    assert bits(first) == kept
    assert [bits([first[0][i]]) for i in range(N)] == expected(gru, 1)


@pytest.mark.parametrize(
    ("feeds", "error"),
    [
        ({}, "input 'x' is missing"),
        ({"x": np.zeros((1, N, INPUTS), np.float32), "z": 1}, "'z' is not fed"),
        ({"x": np.zeros((1, N, INPUTS), np.float64)}, "is float64"),
        ({"x": np.zeros((1, N + 1, INPUTS), np.float32)}, rf"{N} streams take \[steps, {N}, {INPUTS}\], or one array"),
        ({"x": np.zeros((N, 1, 2, INPUTS), np.float32)}, "a submission is of one stream"),
        ({"x": np.zeros((N - 1, 1, 1, INPUTS), np.float32)}, "streams take"),
        ({"x": np.zeros((1, N, INPUTS + 1), np.float32)}, "the model declares"),
        ({"x": np.float32(3)}, "streams take"),
    ],
)
def test_wrong_feeds(gru, feeds, error):
    pool = gru.pool(8)
    handles = pool.open_many(N)
    for _ in range(2):  # also if right ones were there before
        with pytest.raises(webrnn.ShapeError, match=error):
            pool.submit_many(handles, feeds)
        assert pool.tick() == {}
        pool.submit_many(handles, {"x": np.zeros((1, N, INPUTS), np.float32)})
        assert len(pool.tick()) == N


def test_wrong_handles(gru):
    pool = gru.pool(8)
    handles, x = pool.open_many(3), np.zeros((1, 3, INPUTS), np.float32)
    for wrong, error in (
        ([0, 1, 9], "no stream 9 is open"),
        ([0, 1, -1], "no stream -1 is open"),
        ([0, 1, 0], "stream 0 is there twice"),
        ([0.0, 1.0, 2.0], "handles are a list or an array of numbers"),
        (np.zeros((3, 1), int), "handles are a list or an array of numbers"),
        ([0, [1], 2], "handles are a list or an array of numbers"),
        ([0, 1, 2**70], "handles are a list or an array of numbers"),
    ):
        with pytest.raises(webrnn.Error, match=error):
            pool.submit_many(wrong, {"x": x})
    assert pool.tick() == {}
    pool.submit(1, {"x": x[:, :1]})
    with pytest.raises(webrnn.ShapeError, match="stream 1 has feeds for this tick already"):
        pool.submit_many(handles, {"x": x})
    assert list(pool.tick()) == [1]
    pool.submit_many(handles, {"x": x})
    with pytest.raises(webrnn.ShapeError, match="stream 2 has feeds for this tick already"):
        pool.submit(2, {"x": x[:, :1]})
    pool.submit_many([], {})
    assert list(pool.tick()) == [0, 1, 2]


def test_handles_of_streams_that_are_gone(gru):
    pool = gru.pool(4)
    handles, x = pool.open_many(3), np.zeros((1, 3, INPUTS), np.float32)
    pool.submit_many(handles, {"x": x})
    pool.tick()
    pool.close(int(handles[1]))
    with pytest.raises(webrnn.ModelError, match=f"no stream {handles[1]} is open"):
        pool.submit_many(handles, {"x": x})
    pool.open()  # in its place
    with pytest.raises(webrnn.ModelError, match=f"no stream {handles[1]} is open"):
        pool.submit_many(handles, {"x": x})


def test_streams_that_run_alone_are_stacked():
    pool = session(stateful("GRU"), "numpy").pool(4)
    assert pool.stream_axes is None
    handles, each = pool.open_many(2), [feed(1, 1, seed) for seed in range(2)]
    pool.submit_many(handles, {"x": np.stack(each)})
    assert pool.tick_many().arrays[0].shape[0] == 2
    with pytest.raises(webrnn.ShapeError, match=rf"2 streams take \[2, steps, batch, {INPUTS}\]"):
        pool.submit_many(handles, {"x": np.concatenate(each, 1)})


def test_whole_strides():
    kind = Averages(stride=2)
    pool = kind.session().pool(4, kind.carry)
    handles = pool.open_many(2)
    with pytest.raises(webrnn.ShapeError, match="'x' has 3 frames along axis 1; a step takes a positive multiple of 2"):
        pool.submit_many(handles, {"x": np.zeros((2, 3, CHANNELS), np.float32)})


def test_opening_and_closing_many(gru):
    pool = gru.pool(4)
    handles = pool.open_many(3)
    for count in (2, -1):
        with pytest.raises(webrnn.ModelError, match=f"no {count} streams can be opened: 3 of 4 are open already"):
            pool.open_many(count)
    assert len(pool) == 3
    with pytest.raises(webrnn.ModelError, match="no stream 77 is open"):
        pool.close_many([int(handles[0]), 77])
    assert len(pool) == 3
    pool.submit_many(handles, {"x": np.zeros((1, 3, INPUTS), np.float32)})
    pool.close_many(handles[:2])
    assert list(pool.tick()) == [handles[2]]
    assert len(pool.open_many(0)) == 0
    assert not set(pool.open_many(3).tolist()) & set(handles.tolist())
