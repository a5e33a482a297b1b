"""A signal's exception at each line of a step: it raises and the state is as before, or there are results."""

from __future__ import annotations

import linecache
import sys
from contextlib import contextmanager

import numpy as np
import pytest

import webrnn
from tests.engine.stream_models import feed, stateful


class Interrupt(KeyboardInterrupt):
    pass


@contextmanager
def interrupted_at(number: int):
    """Raise at so many lines of the engine from here on. Lines of `try`, and of `with`, which are seen a second time
    when the block is over, do not count: no signal comes in there."""
    lines = [0]

    def trace(frame, event, argument):
        if "webrnn/engine" not in frame.f_code.co_filename.replace("\\", "/"):
            return None
        if event == "line":
            text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            if not text.strip().startswith(("with ", "try:")):
                lines[0] += 1
                if lines[0] == number:
                    raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(before)


def lines_of(work) -> int:
    with interrupted_at(0) as lines:
        work()
    return lines[0]


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("kind", ["same shapes", "other shapes", "first"])
def test_a_step_is_whole(kind, backend):
    session = webrnn.InferenceSession(stateful("GRU").SerializeToString(), backend=backend)
    usual, other = feed(2, 1, 1), feed(3, 1, 2)
    x = other if kind == "other shapes" else usual

    def prepared():
        stream = session.stream()
        if kind != "first":
            for _ in range(2):
                stream.step({"x": usual})
        return stream

    (expected,) = prepared().step({"x": x})
    stream = prepared()
    n_lines = lines_of(lambda: stream.step({"x": x}))
    assert n_lines > 20
    raised = 0
    for number in range(1, n_lines + 1):
        stream = prepared()
        before = stream.state
        try:
            with interrupted_at(number):
                stream.step({"x": x})
        except Interrupt:
            raised += 1
            after = stream.state
            assert after.keys() == before.keys(), number
            assert all(after[name].tobytes() == before[name].tobytes() for name in before), number
            np.testing.assert_array_equal(stream.step({"x": x})[0], expected)
    assert raised > n_lines // 2


@pytest.mark.parametrize("n_batches", [1, 2])
def test_the_states_of_a_tick_change_together(n_batches):
    """Streams in two batches: an exception between them takes both back."""
    session = webrnn.InferenceSession(stateful("GRU").SerializeToString(), backend="native")

    def prepared():
        pool = session.pool(4, max_batch=2 if n_batches == 2 else None)
        handles = [pool.open() for _ in range(4)]
        for seed in range(2):
            submit(pool, handles, seed)
            pool.tick()
        return pool, handles

    def submit(pool, handles, seed):
        for handle in handles:
            pool.submit(handle, {"x": feed(2, 1, 10 * seed + handle)})

    pool, handles = prepared()
    submit(pool, handles, 5)
    expected = pool.tick()
    pool, handles = prepared()
    submit(pool, handles, 5)
    n_lines = lines_of(pool.tick)
    commit_lines = set()
    for number in range(1, n_lines + 1):
        pool, handles = prepared()
        submit(pool, handles, 5)
        before = {handle: pool.state(handle)["h_in"].tobytes() for handle in handles}
        try:
            with interrupted_at(number):
                pool.tick()
        except Interrupt:
            after = {handle: pool.state(handle)["h_in"].tobytes() for handle in handles}
            changed = {handle for handle in handles if after[handle] != before[handle]}
            assert changed in (set(), set(handles)), number
            if not changed:
                if not pool._waiting():  # else it had not begun
                    submit(pool, handles, 5)
                again = pool.tick()
                for handle in handles:
                    np.testing.assert_array_equal(again[handle][0], expected[handle][0])
            else:
                commit_lines.add(number)
    # what is left is the little that a tick does behind its last state
    assert len(commit_lines) <= 16
