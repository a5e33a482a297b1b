"""Pools of streams with a delay and a stride: what each gets is the whole run of its own sequence."""

import numpy as np
import pytest

import webrnn
from tests.engine.stream_models import CARRY, stateful

from .timed_models import CHANNELS, Averages

KINDS = [
    Averages(),
    Averages(stride=2),
    Averages(width=5, left=1, right=3, stride=3, axis=2),
    Averages(left=0, right=0),
    Averages(left=2, right=0, total=True),
    Averages(gain=True, total=True),
]
GAIN = np.float32([[1, 2, 3], [3, 2, 1], [1, 1, 1]])
TICKS = [(0,), (0, 1), (1,), (0, 1, 2), (2,), (0, 2), (2, 1), (0, 1, 2)]


def run(kind, pool, ticks=TICKS):
    """Streams that begin at different times; one of them has two strides in each tick. Returns y of each, and x."""
    handles = [pool.open() for _ in range(3)]
    xs = [kind.feed(9, seed=number) for number in range(3)]
    fed, parts = [0, 0, 0], [[], [], []]
    for tick in ticks:
        for number in tick:
            end = fed[number] + 1 + (number == 1)
            feeds = {"x": kind.frames(xs[number], fed[number], end)}
            pool.submit(handles[number], {**feeds, **({"gain": GAIN[number]} if kind.gain else {})})
            fed[number] = end
        results = pool.tick()
        assert sorted(results) == sorted(handles[number] for number in tick)
        for number in tick:
            parts[number].append(results[handles[number]])
    return handles, [kind.frames(x, 0, n) for x, n in zip(xs, fed, strict=True)], parts


def assert_whole(kind, x, parts, rest, number):
    y = np.concatenate([*(part[0] for part in parts), rest[0]], kind.axis)
    assert np.array_equal(y, kind.whole(x, GAIN[number] if kind.gain else None))
    if kind.total:
        assert np.array_equal(rest[1], parts[-1][1])


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("max_batch", [None, 2])
def test_each_stream_gets_its_own_whole_run(kind, max_batch):
    pool = kind.session().pool(4, kind.carry, max_batch)
    handles, xs, parts = run(kind, pool)
    assert pool.batched == (not kind.gain), pool.reason
    for number, handle in enumerate(handles):
        assert_whole(kind, xs[number], parts[number], pool.flush(handle), number)
        assert pool.state(handle) == {}
    assert len(pool) == 3


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_one_after_the_other(kind):
    pool = kind.session().pool(4, kind.carry)
    pool._part("for a test")
    handles, xs, parts = run(kind, pool)
    for number, handle in enumerate(handles):
        assert_whole(kind, xs[number], parts[number], pool.flush(handle), number)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_streams_that_part_can_still_be_flushed(kind):
    pool = kind.session().pool(4, kind.carry)
    handles, xs, parts = run(kind, pool)
    if pool.batched:
        pool._part("for a test")
    for number, handle in enumerate(handles):
        assert_whole(kind, xs[number], parts[number], pool.flush(handle), number)


def test_after_a_flush_a_new_sequence_begins():
    kind = KINDS[2]
    pool = kind.session().pool(4, kind.carry)
    handles, *_ = run(kind, pool)
    first, second = handles[:2]
    pool.flush(first)
    x = kind.feed(6, seed=9)
    parts = []
    for t in range(6):
        pool.submit(first, {"x": kind.frames(x, t, t + 1)})
        pool.submit(second, {"x": kind.frames(x, t, t + 1)})
        parts.append(pool.tick()[first])
    assert_whole(kind, x, parts, pool.flush(first), 0)
    pool.close(first)
    other = pool.open()  # in its place
    for t in range(3):
        pool.submit(other, {"x": kind.frames(x, t, t + 1)})
        assert pool.tick()[other][0].shape == (1, CHANNELS, 0)
    assert np.array_equal(pool.flush(other)[0], kind.whole(kind.frames(x, 0, 3)))


def test_what_is_refused():
    kind = Averages(stride=2)
    pool = kind.session().pool(2, kind.carry)
    handle = pool.open()
    with pytest.raises(webrnn.ShapeError, match="'x' has 3 frames along axis 1; a step takes a positive multiple of 2"):
        pool.submit(handle, {"x": np.zeros((1, 3, CHANNELS), np.float32)})
    assert pool.tick() == {}
    with pytest.raises(webrnn.ModelError, match="nothing was fed yet"):
        pool.flush(handle)
    with pytest.raises(webrnn.ModelError, match="no stream 7 is open"):
        pool.flush(7)
    pool.submit(handle, {"x": kind.feed(1)})
    with pytest.raises(webrnn.ModelError, match=r"stream 0 has feeds for the next tick: tick\(\) before flush\(\)"):
        pool.flush(handle)
    pool.tick()
    assert pool.flush(handle)[0].shape == (1, 1, CHANNELS)
    plain = webrnn.InferenceSession(stateful("GRU").SerializeToString()).pool(2, CARRY["GRU"])
    with pytest.raises(webrnn.ModelError, match="not known that this stream has frames"):
        plain.flush(plain.open())


def test_a_tick_that_raises_leaves_the_warm_up_as_it_was(monkeypatch):
    kind = Averages(width=4, left=1, right=2)
    pool = kind.session().pool(2, kind.carry)
    handle, x = pool.open(), kind.feed(4)
    pool.submit(handle, {"x": x[:, :1]})
    parts = [pool.tick()[handle]]
    pool.submit(handle, {"x": x[:, 1:2]})
    with monkeypatch.context() as patch:
        patch.setattr("webrnn.engine.streams.rows.RowPrograms.run", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            pool.tick()
    for t in range(1, 4):
        pool.submit(handle, {"x": x[:, t : t + 1]})
        parts.append(pool.tick()[handle])
    assert_whole(kind, x, parts, pool.flush(handle), 0)


def test_a_snapshot_of_a_pool_goes_on_in_a_stream():
    kind = Averages(width=4, left=1, right=2)
    session = kind.session()
    pool = session.pool(2, kind.carry)
    handle, x = pool.open(), kind.feed(5)
    pool.submit(handle, {"x": x[:, :1]})
    pool.tick()
    stream = session.stream(kind.carry)
    stream.load(pool.state(handle))
    assert np.array_equal(np.concatenate([stream.step({"x": x[:, 1:]})[0], stream.flush()[0]], 1), kind.whole(x))
