"""Plan files for pools: streams of a file run together, and give what in-process pools and streams give."""

import numpy as np
import pytest

import webrnn
from tests.backends import KERNELS, MAIN
from tests.engine.stream_models import CARRY, bits, feed, growing, hidden_state, session, stateful
from tests.engine.streams.pool_oracle import Oracle, same_state
from tests.engine.streams.test_pool_alone import deciding, doubling, mixing
from tests.engine.streams.timed_models import Averages
from tests.models.fetch import model_path
from webrnn.plan.file import PlanFile

STRIDED = Averages(width=5, left=1, right=3, stride=2, axis=2)


def exported(s, path, carry="auto", **options):
    assert s.export(path, carry=carry, pool=True, **options) == []
    return webrnn.InferenceSession(path, backend=s.backend)


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("op", CARRY)
def test_a_pool_of_a_file_has_the_bits_of_its_model(op, backend, tmp_path):
    s = session(stateful(op), backend)
    loaded = exported(s, tmp_path / "m.rnn")
    assert "a plan for a pool of streams" in loaded.report()
    both = Oracle(s, max_streams=8)
    both.pool = loaded.pool(8)
    handles = [both.open() for _ in range(5)]
    for tick in range(6):
        chosen = handles if tick % 3 else handles[tick % 2 :: 2]
        both.tick({handle: {"x": feed(1 + tick % 2, 1, 100 * tick + handle)} for handle in chosen})
        both.check_states()
    assert both.pool.batched, both.pool.reason


@pytest.mark.parametrize(
    ("name", "carry", "shape"), [("riann", "auto", (1, 2, 7)), ("nsnet2_16k", "internal", (1, 2, 161))]
)
def test_real_models(name, carry, shape, tmp_path):
    s = webrnn.InferenceSession(model_path(name), backend=MAIN)
    both = Oracle(s, carry, max_streams=4)
    both.pool = exported(s, tmp_path / "m.rnn", carry).pool(4)
    handles = [both.open() for _ in range(3)]
    rng = np.random.default_rng(0)
    for _ in range(3):
        both.tick({h: {s.inputs[0].name: rng.standard_normal(shape).astype(np.float32)} for h in handles})
        both.check_states()
    assert both.pool.batched, both.pool.reason


def test_frames_delay_and_flush(tmp_path):
    s = STRIDED.session()
    loaded = exported(s, tmp_path / "m.rnn", STRIDED.carry)
    assert PlanFile((tmp_path / "m.rnn").read_bytes()).timing == STRIDED.timing
    pool, alone = loaded.pool(3), loaded.stream()
    assert (alone.delay, alone.stride) == (6, 2)
    handles = [pool.open() for _ in range(3)]
    xs = [STRIDED.feed(6, seed=seed) for seed in range(3)]
    parts = [[] for _ in handles]
    for first, end in ((0, 1), (1, 3), (3, 6)):
        for handle, x in zip(handles, xs, strict=True):
            pool.submit(handle, {"x": STRIDED.frames(x, first, end)})
        for part, result in zip(parts, pool.tick().values(), strict=True):
            part.append(result[0])
    for part, handle, x in zip(parts, handles, xs, strict=True):
        whole = np.concatenate([*part, pool.flush(handle)[0]], STRIDED.axis)
        assert np.array_equal(whole, STRIDED.whole(x))
    assert pool.batched
    single = [alone.step({"x": STRIDED.frames(xs[0], 0, 6)})[0], alone.flush()[0]]
    assert np.array_equal(np.concatenate(single, STRIDED.axis), STRIDED.whole(xs[0]))


@pytest.mark.parametrize("backend", KERNELS)
def test_a_single_stream_of_a_file_for_pools(backend, tmp_path):
    s = session(stateful("LSTM"), backend)
    loaded = exported(s, tmp_path / "m.rnn")
    stream, expected = loaded.stream(), s.stream()
    for steps in (1, 3):
        assert bits(stream.step({"x": feed(steps, 1, steps)})) == bits(expected.step({"x": feed(steps, 1, steps)}))
    assert same_state(stream.state, expected.state)


def test_states_start_as_those_of_one_stream(tmp_path):
    s = session(hidden_state("GRU", with_final=True))
    loaded = exported(s, tmp_path / "m.rnn", "internal")
    both = Oracle(s, "internal", max_streams=3)
    both.pool = loaded.pool(3)
    handles = [both.open() for _ in range(3)]
    for tick in range(2):
        both.tick({handle: {"x": feed(1, 1, 10 * tick + handle)} for handle in handles})
    both.check_states()


def test_shapes_are_those_of_one_stream(tmp_path):
    s = session(stateful("GRU"))
    loaded = exported(s, tmp_path / "m.rnn", shapes={"x": [2, 1, 4], "h_in": [1, 1, 5]})
    assert [item.shape for item in loaded.get_inputs()] == [[2, "streams", 4], [1, "streams", 5]]
    pool = loaded.pool(2)
    for seed in range(2):
        pool.submit(pool.open(), {"x": feed(2, 1, seed)})
    assert [bits(result) for result in pool.tick().values()] == [
        bits(s.stream().step({"x": feed(2, 1, seed)})) for seed in range(2)
    ]
    assert pool.batched
    with pytest.raises(webrnn.PlanError, match="cannot be put side by side"):
        s.export(tmp_path / "two.rnn", {"x": [2, 3, 4], "h_in": [1, 3, 5]}, "auto", pool=True)
    assert not (tmp_path / "two.rnn").exists()


def test_a_file_for_pools_is_exported_again(tmp_path):
    loaded = exported(session(stateful("GRU")), tmp_path / "m.rnn", about={"name": "gru"})
    for options in ({"carry": "auto", "pool": True}, {"carry": "auto"}, {}):
        loaded.export(tmp_path / "again.rnn", **options)
        again, before = (PlanFile((tmp_path / name).read_bytes()) for name in ("again.rnn", "m.rnn"))
        assert again.meta == before.meta
    timed = exported(STRIDED.session(), tmp_path / "t.rnn", STRIDED.carry)
    timed.export(tmp_path / "again.rnn", carry="auto")
    assert PlanFile((tmp_path / "again.rnn").read_bytes()).pool is not None


def test_other_states_than_those_of_the_file(tmp_path):
    loaded = exported(session(stateful("LSTM")), tmp_path / "m.rnn")
    pool = loaded.pool(2, carry={"h_in": "h_out"})
    assert not pool.batched
    assert "with the states that it was exported with" in pool.reason


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (mixing("mean"), "streams side by side do not give what they give alone"),
        (mixing("turned"), "streams side by side do not give what they give alone"),
        (deciding(), "a branch or the end of a loop is decided for all streams at once"),
        (doubling(), "a branch or the end of a loop is decided for all streams at once"),
        (growing(), "cannot be put side by side"),
    ],
    ids=["mean", "turned", "deciding", "doubling", "growing"],
)
def test_streams_that_depend_on_each_other_are_refused(model, reason, tmp_path):
    s = session(model)
    with pytest.raises(webrnn.PlanError, match="put side by side") as caught:
        s.export(tmp_path / "m.rnn", carry="auto", pool=True)
    assert reason in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_stream_or_no_plan(tmp_path):
    s = session(stateful("GRU"))
    with pytest.raises(webrnn.OptionError, match="pool=True is for streams"):
        s.export(tmp_path / "m.rnn", pool=True)
    with pytest.raises(webrnn.PlanError, match="put side by side"):
        session(stateful("GRU"), "numpy").export(tmp_path / "m.rnn", carry="auto", pool=True)
    s.export(tmp_path / "one.rnn", carry="auto")
    one = webrnn.InferenceSession(tmp_path / "one.rnn", backend=MAIN)
    with pytest.raises(webrnn.PlanError, match="exported for one stream"):
        one.export(tmp_path / "m.rnn", carry="auto", pool=True)
    assert not (tmp_path / "m.rnn").exists()
