import random

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.backends import BACKENDS, KERNELS
from tests.engine.stream_models import (
    CARRY,
    bits,
    feed,
    hidden_state,
    lookup,
    session,
    stateful,
)
from tests.engine.streams.pool_oracle import Oracle, same_state
from tests.models.fetch import model_path
from tests.onnx.models import floats, model


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", CARRY)
def test_a_stream_gets_what_it_gets_alone(op, backend):
    both = Oracle(session(stateful(op), backend), max_streams=16)
    assert both.pool.batched == (backend != "numpy")
    handles = [both.open() for _ in range(9)]
    for tick in range(12):
        chosen = handles if tick % 3 else handles[tick % 5 :: 2]
        both.tick({handle: {"x": feed(2, 1, 100 * tick + handle)} for handle in chosen})
        both.check_states()


@pytest.mark.parametrize("backend", KERNELS)
def test_the_bits_of_a_stream_whatever_else_is_in_the_batch(backend):
    s = session(stateful("LSTM"), backend)
    x = [feed(1, 1, seed) for seed in range(6)]
    seen = set()
    for n_others in (0, 1, 2, 3, 6, 7, 8, 15, 16, 31):
        pool = s.pool(max_streams=32)
        others = [pool.open() for _ in range(n_others // 2)]
        mine = pool.open()
        others += [pool.open() for _ in range(n_others - n_others // 2)]
        found = []
        for tick, frame in enumerate(x):
            pool.submit(mine, {"x": frame})
            for other in others:
                pool.submit(other, {"x": np.float32(1e3) * feed(1, 1, 7 * tick + other)})
            found += bits(pool.tick()[mine])
        seen.add((*found, *bits(pool.state(mine).values())))
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("name", "fixed", "carry", "shape"),
    [
        ("riann", None, "auto", (1, 1, 7)),
        ("riann", None, "auto", (1, 5, 7)),
        ("dtln_1", None, "auto", (1, 1, 257)),
        ("dtln_2", None, "auto", (1, 1, 512)),
        ("silero_v6", {"sr": 16000}, "auto", (1, 576)),
        ("silero_v6_op18_ifless", {"sr": 16000}, "auto", (1, 576)),
        ("nsnet2_16k", None, "internal", (1, 2, 161)),
    ],
)
@pytest.mark.parametrize("backend", KERNELS)
def test_real_models_are_batched(name, fixed, carry, shape, backend):
    s = webrnn.InferenceSession(model_path(name), backend=backend, fixed=fixed)
    both = Oracle(s, carry, max_streams=8)
    handles = [both.open() for _ in range(5)]
    rng = np.random.default_rng(0)
    for tick in range(4):
        feeds = {h: {s.get_inputs()[0].name: rng.standard_normal(shape).astype(np.float32)} for h in handles}
        both.tick(feeds if tick != 2 else {h: feeds[h] for h in handles[1::2]})
        both.check_states()
    assert both.pool.batched, both.pool.reason


def test_a_model_of_one_step_and_one_stream():
    both = Oracle(session(stateful("GRU", steps=1, batch=1)), max_streams=8)
    handles = [both.open() for _ in range(7)]
    for tick in range(5):
        both.tick({handle: {"x": feed(1, 1, 50 * tick + handle)} for handle in handles})
    both.check_states()
    assert both.pool.batched


@pytest.mark.parametrize("backend", BACKENDS)
def test_hidden_states_are_pooled(backend):
    both = Oracle(session(hidden_state("GRU", with_final=True), backend), "internal", max_streams=4)
    handles = [both.open() for _ in range(3)]
    for tick in range(4):
        both.tick({handle: {"x": feed(1 + tick, 1, handle)} for handle in handles})
    both.check_states()


# Coming and going


@pytest.mark.parametrize(("max_batch", "ticks"), [(None, 10_000), (3, 2_000)])
def test_streams_open_and_close_at_random(max_batch, ticks):
    rng = random.Random(1)
    both = Oracle(session(stateful("GRU")), max_streams=8, max_batch=max_batch)
    frames = [feed(steps, 1, seed) for steps in (1, 2) for seed in range(16)]
    most = 0
    for tick in range(ticks):
        if len(both.streams) < 8 and rng.random() < 0.15:
            both.open()
        if both.streams and rng.random() < 0.12:
            both.close(rng.choice(list(both.streams)))
        chosen = list(both.streams)
        if rng.random() < 0.3:  # else the same ones tick again and again
            chosen = [handle for handle in chosen if rng.random() < 0.6]
            rng.shuffle(chosen)
        short = rng.random() < 0.9
        both.tick({h: {"x": rng.choice(frames[:16] if short else frames)} for h in chosen})
        most = max(most, len(chosen))
        if tick % 50 == 0:
            both.check_states()
    both.check_states()
    assert both.pool.batched
    assert most == 8


def test_handles_are_not_used_again():
    pool = session(stateful("GRU")).pool(2)
    first = pool.open()
    pool.close(first)
    assert pool.open() != first
    with pytest.raises(webrnn.ModelError, match=f"no stream {first} is open"):
        pool.submit(first, {"x": feed(1, 1)})
    with pytest.raises(webrnn.ModelError, match=f"no stream {first} is open"):
        pool.close(first)
    with pytest.raises(webrnn.ModelError, match=f"no stream {first} is open"):
        pool.state(first)


def test_a_new_stream_in_an_old_place_starts_anew():
    pool = session(stateful("GRU")).pool(1)
    first = pool.open()
    pool.submit(first, {"x": feed(1, 1)})
    expected = bits(pool.tick()[first])
    pool.close(first)
    second = pool.open()
    assert pool.state(second) == {}
    pool.submit(second, {"x": feed(1, 1)})
    assert bits(pool.tick()[second]) == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_full_pool(backend):
    pool = session(stateful("GRU"), backend).pool(2)
    handles = [pool.open(), pool.open()]
    assert len(pool) == 2
    with pytest.raises(webrnn.ModelError, match="the pool is full: 2 streams are open"):
        pool.open()
    pool.close(handles[0])
    assert len(pool) == 1
    pool.open()


@pytest.mark.parametrize("options", [{"max_streams": 0}, {"max_streams": 2, "max_batch": 0}])
def test_sizes_of_pools_are_positive(options):
    with pytest.raises(webrnn.ModelError):
        session(stateful("GRU")).pool(**options)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_closed_stream_does_not_tick(backend):
    pool = session(stateful("GRU"), backend).pool(2)
    gone, stays = pool.open(), pool.open()
    for handle in (gone, stays):
        pool.submit(handle, {"x": feed(1, 1)})
    pool.close(gone)
    assert list(pool.tick()) == [stays]
    assert pool.tick() == {}


@pytest.mark.parametrize("max_batch", [1, 2, 3, 5])
def test_more_streams_than_a_batch_takes(max_batch):
    both = Oracle(session(stateful("GRU")), max_streams=7, max_batch=max_batch)
    handles = [both.open() for _ in range(7)]
    for tick in range(6):
        both.tick({handle: {"x": feed(1, 1, 9 * tick + handle)} for handle in handles[tick % 2 :]})
        both.check_states()


def test_different_lengths_in_one_tick():
    both = Oracle(session(stateful("LSTM")), max_streams=6)
    handles = [both.open() for _ in range(6)]
    for tick in range(8):
        both.tick({handle: {"x": feed(1 + (handle + tick) % 3, 1, 9 * tick + handle)} for handle in handles})
        both.check_states()


@pytest.mark.parametrize("n_groups", [2, 3, 12])
def test_groups_that_take_turns(n_groups):
    """Those of a few groups stay where the kernels have them, those of many are moved."""
    both = Oracle(session(stateful("GRU")), max_streams=24)
    groups = [(both.open(), both.open()) for _ in range(n_groups)]
    for tick in range(4):
        for group in groups:
            both.tick({handle: {"x": feed(1, 1, 30 * tick + handle)} for handle in group})
    both.check_states()
    assert len(both.pool._states.batches) == min(n_groups, 8)


def test_more_groups_than_batches_are_kept():
    both = Oracle(session(stateful("GRU")), max_streams=12)
    handles = [both.open() for _ in range(12)]
    for tick in range(4):
        both.tick({handle: {"x": feed(1 + (handle + tick) % 12, 1, handle)} for handle in handles})
        both.check_states()
    both.tick({handle: {"x": feed(1, 1, handle)} for handle in handles})
    both.check_states()


def test_wasm_memory_does_not_grow_with_ticks():
    s = session(stateful("GRU"), "wasm:relaxed")
    pool = s.pool(6)
    handles = [pool.open() for _ in range(6)]
    tops = []
    for tick in range(200):
        for handle in handles[: 1 + tick % 6]:
            pool.submit(handle, {"x": feed(1 + tick % 2, 1)})
        pool.tick()
        tops.append(pool._batched.program.kernels._top)
    assert tops[-1] == tops[100]


def test_a_new_stream_after_a_tick_that_failed():
    pool = session(lookup()).pool(4, carry={"sum_in": "sum_out"})
    old, new = pool.open(), pool.open()
    pool.submit(old, {"index": np.int64([1])})
    pool.tick()
    for indices in ([1, 9], [9, 1]):
        for handle, index in zip((old, new), indices, strict=True):
            pool.submit(handle, {"index": np.int64([index])})
        with pytest.raises(webrnn.ShapeError):
            pool.tick()
        assert pool.state(new) == {}
    for handle in (old, new):
        pool.submit(handle, {"index": np.int64([2])})
    pool.tick()
    np.testing.assert_array_equal(pool.state(new)["sum_in"], [[6, 7, 8]])
    np.testing.assert_array_equal(pool.state(old)["sum_in"], [[9, 11, 13]])


# Feeds and results


@pytest.mark.parametrize("backend", BACKENDS)
def test_feeds_are_copied_and_results_are_the_callers(backend):
    pool = session(stateful("GRU"), backend).pool(2)
    handles = [pool.open(), pool.open()]
    x = feed(1, 1).copy()
    kept = []
    for _ in range(2):
        for handle in handles:
            pool.submit(handle, {"x": x})
        x[...] = 77
        results = pool.tick()
        kept.append((results, {handle: bits(results[handle]) for handle in handles}))
        x[...] = feed(1, 1)
    assert bits(kept[0][0][handles[0]]) == kept[0][1][handles[0]]
    (y,) = kept[0][0][handles[0]]
    assert y.flags.c_contiguous
    y[...] = 5
    assert bits(kept[0][0][handles[1]]) == kept[0][1][handles[1]]
    stream = session(stateful("GRU"), backend).stream()
    assert bits(stream.step({"x": feed(1, 1)})) == kept[0][1][handles[1]]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "input 'x' is missing"),
        ({"x": feed(1, 1), "h_in": feed(1, 1)}, "'h_in' is not fed"),
        ({"z": feed(1, 1)}, "'z' is not fed"),
        ({"x": feed(1, 1).astype(np.float64)}, "float64"),
        ({"x": feed(1, 1)[0]}, "has shape"),
        ({"x": feed(1, 1)[:, :, :2]}, "axis 2 is 2"),
    ],
)
def test_wrong_feeds(feeds, message, backend):
    pool = session(stateful("GRU"), backend).pool(2)
    handle = pool.open()
    pool.submit(handle, {"x": feed(1, 1)})
    pool.tick()
    before = pool.state(handle)
    with pytest.raises(webrnn.ShapeError, match=message):
        pool.submit(handle, feeds)
    assert pool.tick() == {}
    assert same_state(pool.state(handle), before)


def test_a_submission_is_of_one_stream():
    pool = session(stateful("GRU")).pool(2)
    with pytest.raises(webrnn.ShapeError, match="a submission is of one stream"):
        pool.submit(pool.open(), {"x": feed(1, 2)})


@pytest.mark.parametrize("backend", BACKENDS)
def test_submitting_twice(backend):
    pool = session(stateful("GRU"), backend).pool(2)
    handle = pool.open()
    pool.submit(handle, {"x": feed(1, 1)})
    with pytest.raises(webrnn.ShapeError, match=f"stream {handle} has feeds for this tick already"):
        pool.submit(handle, {"x": feed(1, 1)})
    assert list(pool.tick()) == [handle]
    pool.submit(handle, {"x": feed(1, 1)})


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("max_batch", [None, 2])
def test_a_tick_that_fails_changes_no_state(max_batch, backend):
    pool = session(lookup(), backend).pool(6, carry={"sum_in": "sum_out"}, max_batch=max_batch)
    handles = [pool.open() for _ in range(5)]
    for tick in range(4):
        some = handles[:4] if tick < 2 else handles
        for handle in some:
            pool.submit(handle, {"index": np.int64([(tick + handle) % 4])})
        pool.tick()
        before = {handle: pool.state(handle) for handle in handles}
        for handle in handles:
            pool.submit(handle, {"index": np.int64([9 if handle == handles[3] else 1])})
        with pytest.raises(webrnn.ShapeError, match="pick"):
            pool.tick()
        assert pool.tick() == {}
        assert all(same_state(pool.state(handle), before[handle]) for handle in handles)
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    expected = sum(rows[(tick + handles[1]) % 4] for tick in range(4))
    np.testing.assert_array_equal(pool.state(handles[1])["sum_in"], [expected])


# Snapshots


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stream_goes_on_from_a_snapshot(backend):
    both = Oracle(session(stateful("LSTM"), backend), max_streams=4)
    handles = [both.open() for _ in range(3)]
    feeds = {handle: {"x": feed(1, 1, handle)} for handle in handles}
    both.tick(feeds)
    snapshot = both.pool.state(handles[0])
    both.tick(feeds)
    for target in (handles[0], handles[2], both.open()):
        both.pool.load(target, snapshot)
        both.streams[target].load(snapshot)
    both.check_states()
    both.tick({handle: {"x": feed(1, 1, 5 + handle)} for handle in both.streams})
    both.check_states()
    both.pool.load(handles[1], {})
    both.streams[handles[1]].reset()
    assert both.pool.state(handles[1]) == {}
    both.tick({handle: {"x": feed(1, 1, 9 + handle)} for handle in both.streams})
    both.check_states()


@pytest.mark.parametrize("backend", BACKENDS)
def test_snapshots_that_are_refused(backend):
    pool = session(stateful("GRU"), backend).pool(3)
    first, second = pool.open(), pool.open()
    pool.submit(first, {"x": feed(1, 1)})
    with pytest.raises(webrnn.ModelError, match=r"stream 0 has feeds for the next tick: tick\(\) before load\(\)"):
        pool.load(first, {})
    pool.tick()
    state = pool.state(first)
    for wrong, error in (
        ({"h": state["h_in"]}, "a snapshot has"),
        ({"h_in": state["h_in"].astype(np.float64)}, "is float64"),
        ({"h_in": state["h_in"][..., :2]}, "the model declares"),
    ):
        with pytest.raises(webrnn.ShapeError, match=error):
            pool.load(first, wrong)
        with pytest.raises(webrnn.ShapeError, match=error):
            pool.load(second, wrong)
    assert same_state(pool.state(first), state)
    assert pool.state(second) == {}
    with pytest.raises(webrnn.ModelError, match="no stream 7 is open"):
        pool.load(7, state)


def test_a_thousand_streams_at_once():
    s = session(stateful("GRU"))
    pool, n = s.pool(1000), 1000
    handles = pool.open_many(n)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 1, n, 4)).astype(np.float32)
    for frame in x:
        pool.submit_many(handles, {"x": frame})
        (y,) = pool.tick_many().arrays
    for number in (0, 63, 64, 255, 256, 999):
        stream = s.stream()
        outputs = [stream.step({"x": frame[:, number : number + 1]}) for frame in x]
        assert bits(outputs[-1]) == bits([y[number]])


def wide():
    """The state is as wide as x, and the sum of all x so far."""
    nodes = [helper.make_node("Add", ["s_in", "x"], ["s_out"]), helper.make_node("Neg", ["s_out"], ["y"])]
    names = [floats(name, ["batch", "width"]) for name in ("x", "s_in", "y", "s_out")]
    return model(nodes, names[:2], names[2:])


def test_states_of_other_shapes():
    """All streams of a pool have states of the same shapes; when nobody has any, the next ones may be others."""
    pool = session(wide()).pool(4, carry={"s_in": "s_out"})
    a, b = pool.open(), pool.open()
    pool.load(a, {"s_in": np.ones((1, 7), np.float32)})
    pool.submit(b, {"x": np.ones((1, 2), np.float32)})
    with pytest.raises(webrnn.ShapeError, match="state 's_in' of a new stream differs in shape"):
        pool.tick()
    with pytest.raises(webrnn.ShapeError, match="state 's_in' of a new stream differs in shape"):
        pool.load(b, {"s_in": np.ones((1, 3), np.float32)})
    pool.close(a)
    a = pool.open()
    for width in (2, 3):
        for handle in (a, b):
            pool.submit(handle, {"x": np.ones((1, width), np.float32)})
        assert [y.tolist() for (y,) in pool.tick().values()] == [[[-1] * width]] * 2
        for handle in (a, b):
            pool.load(handle, {})
    pool.submit(a, {"x": np.ones((1, 2), np.float32)})
    pool.submit(b, {"x": np.ones((1, 3), np.float32)})
    with pytest.raises(webrnn.ShapeError, match="state 's_in' of a new stream differs in shape"):
        pool.tick()
    assert pool.state(a) == pool.state(b) == {}
    pool.submit(a, {"x": np.ones((1, 2), np.float32)})
    assert pool.tick()[a][0].tolist() == [[-1, -1]]
    assert pool.batched, pool.reason


def test_models_without_states():
    proto = model([helper.make_node("Neg", ["x"], ["y"])], [floats("x", ["batch", 3])], [floats("y", ["batch", 3])])
    pool = session(proto).pool(4, carry={})
    handles = pool.open_many(3)
    for _ in range(3):
        pool.submit_many(handles, {"x": np.ones((3, 3), np.float32)})
        assert pool.tick_many().arrays[0].tolist() == [[[-1, -1, -1]]] * 3
    assert pool.state(int(handles[0])) == {}
