import random

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.backends import BACKENDS, KERNELS, MAIN
from tests.engine.stream_models import (
    CARRY,
    counter,
    feed,
    growing,
    hidden_state,
    lookup,
    stateful,
)
from tests.models.fetch import model_path
from tests.onnx.models import bools, floats, graph, initializer, model


def session(proto, backend=MAIN, **options):
    return webrnn.InferenceSession(proto.SerializeToString(), backend=backend, **options)


def bits(arrays):
    return [np.asarray(array).tobytes() for array in arrays]


def same_state(a, b):
    return a.keys() == b.keys() and bits(a.values()) == bits(b.values())


class Oracle:
    """A pool and a single stream for each of its streams, which have to agree."""

    def __init__(self, s, carry="auto", **options):
        self.session, self.carry = s, carry
        self.pool = s.pool(carry=carry, **options)
        self.streams = {}

    def open(self):
        handle = self.pool.open()
        self.streams[handle] = self.session.stream(self.carry)
        return handle

    def close(self, handle):
        self.pool.close(handle)
        del self.streams[handle]

    def tick(self, feeds):
        for handle, fed in feeds.items():
            self.pool.submit(handle, fed)
        results = self.pool.tick()
        assert list(results) == list(feeds)
        for handle, fed in feeds.items():
            assert bits(results[handle]) == bits(self.streams[handle].step(fed))
        return results

    def check_states(self):
        for handle, stream in self.streams.items():
            assert same_state(self.pool.state(handle), stream.state)


# Bits


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
    assert len(both.pool._batches) == min(n_groups, 8)


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
        tops.append(pool._batched.program._kernels._top)
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


# Models whose streams run one after the other


def mixing(op):
    """y is x without its mean over streams, or of each sequence turned around among them."""
    if op == "mean":
        nodes = [
            helper.make_node("ReduceMean", ["x"], ["m"], axes=[0], keepdims=1),
            helper.make_node("Sub", ["x", "m"], ["y"]),
        ]
    else:
        nodes = [
            helper.make_node("Transpose", ["x"], ["turned"], perm=[1, 0]),
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Reshape", ["turned", "shape"], ["y"]),
        ]
    nodes.append(helper.make_node("Add", ["h_in", "y"], ["h_out"]))
    shapes = [["batch", 3]] * 2
    return model(
        nodes,
        [floats(name, shape) for name, shape in zip(("x", "h_in"), shapes, strict=True)],
        [floats(name, shape) for name, shape in zip(("y", "h_out"), shapes, strict=True)],
    )


def deciding():
    """An If on the first element."""
    branch = [
        graph([helper.make_node(op, ["x"], [f"{op}_y"])], [], [floats(f"{op}_y", ["batch", 3])])
        for op in ("Neg", "Abs")
    ]
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "zero"], ["is_loud"]),
        helper.make_node("If", ["is_loud"], ["y"], then_branch=branch[0], else_branch=branch[1]),
        helper.make_node("Add", ["h_in", "y"], ["h_out"]),
    ]
    names = [floats(name, ["batch", 3]) for name in ("x", "h_in", "y", "h_out")]
    return model(nodes, names[:2], names[2:], [initializer("zero", np.float32(0))])


def doubling():
    """A loop that ends when the largest of all is large enough."""
    body = graph(
        [
            helper.make_node("Add", ["v", "v"], ["w"]),
            helper.make_node("ReduceMax", ["w"], ["most"], keepdims=0),
            helper.make_node("Less", ["most", "limit"], ["again"]),
        ],
        [floats("i", []), bools("c", []), floats("v", ["batch", 3])],
        [bools("again", []), floats("w", ["batch", 3])],
    )
    body.input[0].type.tensor_type.elem_type = 7
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Add", ["a", "one"], ["start"]),
        helper.make_node("Loop", ["trips", ""], ["y"], body=body),
        helper.make_node("Add", ["h_in", "y"], ["h_out"]),
    ]
    nodes[2].input.append("start")
    names = [floats(name, ["batch", 3]) for name in ("x", "h_in", "y", "h_out")]
    constants = [
        initializer("one", np.float32(1)),
        initializer("limit", np.float32(50)),
        initializer("trips", np.array(20, np.int64)),
    ]
    return model(nodes, names[:2], names[2:], constants)


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize(
    ("proto", "reason"),
    [
        (mixing("mean"), "do not give what they give alone"),
        (mixing("turn"), "do not give what they give alone"),
        (deciding(), "decided for all streams at once"),
        (doubling(), "decided for all streams at once"),
    ],
)
def test_streams_that_depend_on_each_other_run_alone(proto, reason, backend):
    both = Oracle(session(proto, backend), max_streams=4)
    handles = [both.open() for _ in range(3)]
    rng = np.random.default_rng(2)
    for tick in range(4):
        both.tick({h: {"x": rng.standard_normal((1, 3)).astype(np.float32)} for h in handles[: 1 + tick]})
        both.check_states()
    assert not both.pool.batched
    assert reason in both.pool.reason


def test_states_are_kept_when_streams_part():
    """One row for each stream is fine, three are not: what was carried together goes on alone."""
    both = Oracle(session(_turning_rows()), max_streams=4)
    handles = [both.open() for _ in range(3)]
    rng = np.random.default_rng(2)
    for rows in (1, 1, 3, 1, 3):
        both.tick({h: {"x": rng.standard_normal((rows, 1, 2)).astype(np.float32)} for h in handles})
        both.check_states()
        assert both.pool.batched == (rows == 1 and both.pool.reason == "")
    assert not both.pool.batched


def _turning_rows():
    """[steps, batch, 2] is read as [batch, steps, 2]; the state adds up the rows."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "order"], ["turned"], axis=0),
        helper.make_node("Reshape", ["x", "turned"], ["rows"]),
        helper.make_node("ReduceSum", ["rows", "one"], ["sum"], keepdims=0),
        helper.make_node("Add", ["h_in", "sum"], ["h_out"]),
        helper.make_node("Neg", ["h_out"], ["y"]),
    ]
    return model(
        nodes,
        [floats("x", ["steps", "batch", 2]), floats("h_in", ["batch", 2])],
        [floats("y", ["batch", 2]), floats("h_out", ["batch", 2])],
        [initializer("order", np.int64([1, 0, 2])), initializer("one", np.int64([1]))],
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("proto", "carry", "x"),
    [
        (counter(), {"count_in": "count_out", "sum_in": "sum_out"}, np.ones((1, 2), np.float32)),
        (growing(), {"past_in": "past_out"}, np.ones((1, 2), np.float32)),
    ],
)
def test_other_states(proto, carry, x, backend):
    both = Oracle(session(proto, backend), carry, max_streams=3)
    handles = [both.open() for _ in range(3)]
    for tick in range(5):
        both.tick({handle: {"x": x * handle} for handle in handles[: 1 + tick]})
        both.check_states()


def test_a_shape_for_one_stream_takes_many():
    """As exporters of fixed sizes write it: Reshape to [1, 4] and back."""
    nodes = [
        helper.make_node("Reshape", ["x", "flat"], ["rows"]),
        helper.make_node("Add", ["rows", "h_in"], ["h_out"]),
        helper.make_node("Reshape", ["h_out", "full"], ["y"]),
    ]
    proto = model(
        nodes,
        [floats("x", [1, 1, 4]), floats("h_in", [1, 4])],
        [floats("y", [1, 1, 4]), floats("h_out", [1, 4])],
        [initializer("flat", np.int64([1, 4])), initializer("full", np.int64([1, 1, 4]))],
    )
    both = Oracle(session(proto), max_streams=4)
    handles = [both.open() for _ in range(3)]
    for tick in range(3):
        both.tick({handle: {"x": feed(1, 1, tick + handle)} for handle in handles})
        both.check_states()
    assert both.pool.batched


def test_numpy_says_why_streams_run_alone():
    pool = session(stateful("GRU"), "numpy").pool(2)
    assert not pool.batched
    assert pool.reason == "there is no plan that takes any number of streams"


def test_plan_files_say_why_streams_run_alone(tmp_path):
    s = session(stateful("GRU"))
    s.export(tmp_path / "m.rnn")
    both = Oracle(webrnn.InferenceSession(tmp_path / "m.rnn", backend=MAIN), max_streams=3)
    handles = [both.open() for _ in range(3)]
    for tick in range(3):
        both.tick({handle: {"x": feed(1, 1, tick + handle)} for handle in handles})
        both.check_states()
    assert both.pool.reason == "a plan from a file takes the number of streams that it was exported for"


def test_pools_of_a_session_share_its_weights():
    s = session(stateful("GRU"))
    assert s.pool(2)._batched is s.pool(3)._batched
