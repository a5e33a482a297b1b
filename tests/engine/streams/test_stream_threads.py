"""Streams, pools and sessions from several threads."""

from threading import Barrier, Thread

import numpy as np
import pytest

import webrnn
from tests.backends import BACKENDS, KERNELS
from tests.engine.stream_models import feed, stateful

STEPS = 60


def in_threads(*works):
    """Run functions at the same time; raises what one of them raised."""
    barrier, errors = Barrier(len(works)), []

    def run(work):
        try:
            barrier.wait()
            work()
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def session(backend, op="GRU"):
    return webrnn.InferenceSession(stateful(op, hidden=48).SerializeToString(), backend=backend)


def outputs_of(stream, seed, steps=3):
    return [stream.step({"x": feed(steps, 1, seed + step)})[0] for step in range(STEPS)]


def same(found, expected):
    return len(found) == len(expected) and all(a.tobytes() == b.tobytes() for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("is_shared", [False, True], ids=["two sessions", "one session"])
def test_streams_in_two_threads(is_shared, backend):
    first = session(backend)
    sessions = [first, first if is_shared else session(backend)]
    expected = [outputs_of(first.stream(), 1000 * i) for i in range(2)]
    found = [[], []]

    def work(i):
        found[i] = outputs_of(sessions[i].stream(), 1000 * i)

    in_threads(lambda: work(0), lambda: work(1))
    assert same(found[0], expected[0])
    assert same(found[1], expected[1])


def test_long_steps_in_one_wasm_memory():
    """Which is for one thread at a time: it has one stack."""
    s = session("wasm:relaxed", "LSTM")
    expected = outputs_of(s.stream(), 7, steps=200)
    found = [[] for _ in range(4)]

    def work(i):
        found[i] = outputs_of(s.stream(), 7, steps=200)

    in_threads(*[lambda i=i: work(i) for i in range(4)])
    assert all(same(each, expected) for each in found)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("is_shared", [False, True], ids=["two sessions", "one session"])
def test_runs_in_two_threads(is_shared, backend):
    first = session(backend)
    sessions = [first, first if is_shared else session(backend)]

    def feeds(i, step):
        steps = 1 + (step + i) % 4  # shapes change while the other runs
        return {"x": feed(steps, 1 + i, step), "h_in": np.zeros((1, 1 + i, 48), np.float32)}

    expected = [[first.run(["y"], feeds(i, step))[0] for step in range(STEPS)] for i in range(2)]
    found = [[], []]

    def work(i):
        found[i] = [sessions[i].run(["y"] if step % 2 else None, feeds(i, step))[0] for step in range(STEPS)]

    in_threads(lambda: work(0), lambda: work(1))
    assert same(found[0], expected[0])
    assert same(found[1], expected[1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_stream_in_two_threads_takes_whole_steps(backend):
    """In which order is open; the same feed in all steps makes the order not matter."""
    s = session(backend)
    x = feed(2, 1)
    alone, shared = s.stream(), s.stream()
    for _ in range(2 * STEPS):
        alone.step({"x": x})

    def work():
        for _ in range(STEPS):
            shared.step({"x": x})

    in_threads(work, work)
    assert shared.state["h_in"].tobytes() == alone.state["h_in"].tobytes()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stream_is_read_while_it_runs(backend):
    s = session(backend)
    stream, alone = s.stream(), s.stream()
    states = [{}]
    for step in range(STEPS):
        alone.step({"x": feed(1, 1, step)})
        states.append(alone.state)
    known = {state["h_in"].tobytes() for state in states if state} | {b""}
    seen = []

    def read():
        for _ in range(STEPS):
            seen.append(stream.state.get("h_in", np.empty(0)).tobytes())
            seen.append(stream.fork().state.get("h_in", np.empty(0)).tobytes())

    in_threads(lambda: [stream.step({"x": feed(1, 1, step)}) for step in range(STEPS)], read)
    assert set(seen) <= known


@pytest.mark.parametrize("backend", KERNELS)
def test_streams_beside_a_pool(backend):
    s = session(backend)
    expected = outputs_of(s.stream(), 5)
    pool = s.pool(4)
    handles = [pool.open() for _ in range(3)]
    found = {"stream": [], "pool": []}

    def ticks():
        for step in range(STEPS):
            for handle in handles:
                pool.submit(handle, {"x": feed(3, 1, 5 + step)})
            results = pool.tick()
            found["pool"].append([results[handle][0] for handle in handles])

    in_threads(lambda: found["stream"].extend(outputs_of(s.stream(), 5)), ticks)
    assert same(found["stream"], expected)
    for row in range(3):
        assert same([results[row] for results in found["pool"]], expected)
