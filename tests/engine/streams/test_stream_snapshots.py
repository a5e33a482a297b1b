"""Snapshots of streams: state, load, reset and fork."""

import gc

import numpy as np
import pytest

import webrnn
from tests.backends import BACKENDS
from tests.engine.stream_models import (
    CARRY,
    HIDDEN,
    INPUTS,
    assert_same_state,
    bits,
    feed,
    gru,
    session,
    stateful,
)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", CARRY)
def test_a_snapshot_is_what_the_outputs_were(op, backend):
    s = session(stateful(op), backend)
    stream = s.stream()
    assert stream.state == {}
    shape = (2, HIDDEN) if op == "Scan" else (1, 2, HIDDEN)
    states = {name: np.zeros(shape, np.float32) for name in CARRY[op]}
    for seed in range(3):
        x = feed(2, 2, seed)
        stream.step({"x": x})
        after = s.run(list(CARRY[op].values()), {"x": x, **states})
        states = dict(zip(CARRY[op], after, strict=True))
        assert_same_state(stream.state, states)


@pytest.mark.parametrize("backend", BACKENDS)
def test_snapshots_do_not_change(backend):
    stream = gru(backend)
    stream.step({"x": feed(1, 1)})
    snapshot = stream.state
    kept = {name: array.copy() for name, array in snapshot.items()}
    stream.step({"x": feed(1, 1)})
    assert_same_state(snapshot, kept)
    stream.load(snapshot)
    snapshot["h_in"][...] = 9
    assert_same_state(stream.state, kept)


@pytest.mark.parametrize("backend", BACKENDS)
def test_load_goes_back(backend):
    stream = gru(backend)
    stream.step({"x": feed(1, 1)})
    snapshot = stream.state
    expected = [stream.step({"x": feed(n, 1, n)})[0] for n in (1, 1, 3)]
    stream.load(snapshot)
    assert bits(stream.step({"x": feed(n, 1, n)})[0] for n in (1, 1, 3)) == bits(expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_load_before_the_first_step(backend):
    stream = gru(backend)
    stream.step({"x": feed(3, 2)})
    late = gru(backend)
    late.load(stream.state)
    assert_same_state(late.state, stream.state)
    assert bits(late.step({"x": feed(1, 2)})) == bits(stream.step({"x": feed(1, 2)}))


@pytest.mark.parametrize("backend", BACKENDS)
def test_load_of_a_snapshot_of_another_batch(backend):
    many, one = gru(backend), gru(backend)
    many.step({"x": feed(2, 3)})
    one.step({"x": feed(2, 1)})
    one.load(many.state)
    with pytest.raises(webrnn.ShapeError):
        one.step({"x": feed(2, 1)})
    assert_same_state(one.state, many.state)
    assert bits(one.step({"x": feed(2, 3)})) == bits(many.step({"x": feed(2, 3)}))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("snapshot", "message"),
    [
        ({"h": np.zeros((1, 1, HIDDEN), np.float32)}, r"a snapshot has \['h_in'\], this one has \['h'\]"),
        ({"h_in": np.zeros((1, 1, HIDDEN))}, "float64"),
        ({"h_in": np.zeros((1, 1, 9), np.float32)}, "axis 2 is 9"),
        ({"h_in": np.zeros(HIDDEN, np.float32)}, "has shape"),
    ],
)
def test_load_of_what_is_no_snapshot(snapshot, message, backend):
    stream = gru(backend)
    stream.step({"x": feed(1, 1)})
    before = stream.state
    with pytest.raises(webrnn.ShapeError, match=message):
        stream.load(snapshot)
    assert_same_state(stream.state, before)


def test_the_states_of_a_snapshot_agree():
    stream = session(stateful("LSTM")).stream()
    with pytest.raises(webrnn.ShapeError, match="axis 1 is 2, not 1"):
        stream.load({"h_in": np.zeros((1, 1, HIDDEN), np.float32), "c_in": np.zeros((1, 2, HIDDEN), np.float32)})


@pytest.mark.parametrize("backend", BACKENDS)
def test_reset_starts_anew(backend):
    stream = gru(backend)
    first = [stream.step({"x": feed(2, 1)})[0] for _ in range(3)]
    stream.reset()
    assert stream.state == {}
    assert stream.fork().state == {}
    assert bits(stream.step({"x": feed(2, 1)})[0] for _ in range(3)) == bits(first)


@pytest.mark.parametrize("backend", BACKENDS)
def test_forks_go_their_own_way(backend):
    stream = gru(backend)
    stream.step({"x": feed(2, 1)})
    fork = stream.fork()
    expected = gru(backend)
    expected.step({"x": feed(2, 1)})
    fork.step({"x": feed(5, 1, seed=9)})
    assert bits(stream.step({"x": feed(1, 1)})) == bits(expected.step({"x": feed(1, 1)}))
    assert not np.array_equal(fork.state["h_in"], stream.state["h_in"])
    assert fork.carry == stream.carry


def test_a_fork_checks_as_its_stream_does():
    fork = gru(check_finite=True).fork()
    with pytest.raises(webrnn.ModelError, match="not finite"):
        fork.step({"x": np.full((1, 1, INPUTS), np.nan, np.float32)})


def test_many_forks_do_not_fill_wasm_memory():
    stream = gru("wasm:relaxed")
    stream.step({"x": feed(1, 1)})
    kernels = stream._carriers[0]._program.kernels
    stream.fork().step({"x": feed(1, 1)})
    gc.collect()
    top = kernels._top
    for _ in range(50):
        stream.fork().step({"x": feed(1, 1)})
    gc.collect()
    assert kernels._top == top
