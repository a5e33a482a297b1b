"""A child process that was forked while threads were at work."""

from __future__ import annotations

import os
import threading
import time
import traceback

import numpy as np
import pytest

import webrnn
from tests.engine.stream_models import feed, stateful

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def in_child(work, seconds: float = 60.0) -> None:
    """Run a function in a child; AssertionError if it raises there, or does not come to its end."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            assert status == 0, f"the child ended with {status}"
            return
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError("the child is stuck")


class AtWork:
    """A thread that does something again and again."""

    def __init__(self, work):
        self.work, self.is_over, self.rounds = work, False, 0
        self.thread = threading.Thread(target=self._loop)

    def _loop(self):
        while not self.is_over:
            self.work()
            self.rounds += 1

    def __enter__(self):
        self.thread.start()
        while self.rounds < 2:
            time.sleep(0.001)
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()


def session(backend="native"):
    return webrnn.InferenceSession(stateful("GRU", hidden=64).SerializeToString(), backend=backend)


LONG = feed(400, 1)
X = feed(3, 1)
H = np.zeros((1, 1, 64), np.float32)


def test_a_stream_that_another_thread_steps():
    """The child's stream is as before a step or behind one: it goes on from its own state, bit for bit."""
    s = session()
    stream, twin = s.stream(), s.stream()
    stream.step({"x": X})

    def child():
        state = stream.state
        assert np.isfinite(state["h_in"]).all()
        twin.load(state)
        for _ in range(3):
            np.testing.assert_array_equal(stream.step({"x": LONG})[0], twin.step({"x": LONG})[0])
        np.testing.assert_array_equal(stream.state["h_in"], twin.state["h_in"])
        np.testing.assert_array_equal(stream.step({"x": X})[0], twin.step({"x": X})[0])

    with AtWork(lambda: stream.step({"x": LONG})):
        for _ in range(10):
            in_child(child)


def test_a_session_that_another_thread_runs():
    s = session()
    expected = s.run(None, {"x": X, "h_in": H})

    def child():
        for _ in range(2):
            for found, want in zip(s.run(None, {"x": X, "h_in": H}), expected, strict=True):
                np.testing.assert_array_equal(found, want)

    with AtWork(lambda: s.run(None, {"x": LONG, "h_in": H})):
        for _ in range(10):
            in_child(child)


def test_a_pool_that_another_thread_ticks():
    """It either goes on or says that it cannot; a new one works."""
    s = session()
    pool = s.pool(4)
    handles = [pool.open() for _ in range(2)]

    def tick(pool, handles):
        for handle in handles:
            pool.submit(handle, {"x": LONG})
        return pool.tick()

    def child():
        try:
            handle = pool.open()
            pool.submit(handle, {"x": X})
        except webrnn.ModelError as error:
            assert "forked" in str(error)  # noqa: PT017
        fresh = s.pool(4)
        assert len(tick(fresh, [fresh.open()])) == 1

    with AtWork(lambda: tick(pool, handles)):
        for _ in range(5):
            in_child(child)


def test_wasm_that_another_thread_runs():
    """The instance that was running cannot be used, which is said; another one can."""
    pytest.importorskip("wasmtime")
    s = session("wasm:relaxed")
    stream = s.stream()
    (expected,) = session("wasm:relaxed").stream().step({"x": X})

    def child():
        try:
            stream.step({"x": X})
        except webrnn.BackendError as error:
            assert "forked" in str(error)  # noqa: PT017
        np.testing.assert_array_equal(session("wasm:relaxed").stream().step({"x": X})[0], expected)

    with AtWork(lambda: stream.step({"x": LONG})):
        for _ in range(3):
            in_child(child)


def test_nothing_is_lost_where_no_thread_was_at_work():
    s = session()
    stream, pool = s.stream(), s.pool(2)
    stream.step({"x": X})
    handle = pool.open()
    pool.submit(handle, {"x": X})
    pool.tick()
    pool.submit(handle, {"x": X})
    twin = stream.fork()
    (expected,) = twin.step({"x": X})

    def child():
        np.testing.assert_array_equal(stream.step({"x": X})[0], expected)
        np.testing.assert_array_equal(pool.tick()[handle][0], expected)

    in_child(child)
    np.testing.assert_array_equal(stream.step({"x": X})[0], expected)
