"""Streams under random use, against a plain run of all feeds from the start."""

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import webrnn
from tests.backends import BACKENDS, MAIN
from tests.engine.stream_models import INPUTS, feed, stateful
from webrnn.engine.streams.stream import Stream

SEEDS = st.integers(0, 7)
BAD_FEEDS = (
    {},
    {"z": feed(1, 1)},
    {"x": feed(1, 1).astype(np.float64)},
    {"x": feed(1, 1)[0]},
    {"x": feed(1, 7)},
    {"x": np.full((3, 1, INPUTS), np.nan, np.float32)},
    {"x": np.full((1, 1, INPUTS), np.nan, np.float32)},
)


@cache
def session(backend: str, op: str) -> webrnn.InferenceSession:
    return webrnn.InferenceSession(stateful(op).SerializeToString(), backend=backend)


class Streams(RuleBasedStateMachine):
    """Each stream has a list of all that it was fed: what it gives is what the whole list gives."""

    backend, op = MAIN, "GRU"
    streams = Bundle("streams")
    snapshots = Bundle("snapshots")

    @initialize(target=streams)
    def first(self) -> tuple[Stream, list[np.ndarray]]:
        self.model = session(self.backend, self.op)
        return self.model.stream(check_finite=True), []

    @rule(
        stream=streams,
        seed=SEEDS,
        steps=st.sampled_from([1, 1, 1, 2, 5]),
        way=st.sampled_from(["own", "out", "borrow"]),
    )
    def step(self, stream, seed, steps, way):
        real, history = stream
        x = feed(steps, 1, seed)
        expected = self.expected([*history, x])
        options = {"own": {}, "borrow": {"borrow": True}, "out": {"out": [np.empty_like(expected)]}}[way]
        (y,) = real.step({"x": x}, **options)
        assert y.tobytes() == expected.tobytes()
        history.append(x)

    @rule(stream=streams, bad=st.sampled_from(range(len(BAD_FEEDS))))
    def failing_step(self, stream, bad):
        real, history = stream
        if bad == 4 and not history:
            return  # a stream begins with any batch
        with pytest.raises(webrnn.Error):
            real.step(BAD_FEEDS[bad])
        self.check_state(stream)

    @rule(target=streams, stream=streams)
    def fork(self, stream):
        real, history = stream
        return real.fork(), list(history)

    @rule(target=snapshots, stream=streams)
    def snapshot(self, stream):
        real, history = stream
        return real.state, list(history)

    @rule(stream=streams, snapshot=snapshots)
    def load(self, stream, snapshot):
        real, history = stream
        state, past = snapshot
        real.load(state)
        history[:] = past
        self.check_state(stream)

    @rule(stream=streams)
    def reset(self, stream):
        real, history = stream
        real.reset()
        history.clear()

    @rule(stream=streams)
    def check_state(self, stream):
        real, history = stream
        state = real.state
        if not history:
            assert state == {}
            return
        for before, after in real.carry.items():
            assert state[before].tobytes() == self.run(history, after).tobytes()

    @precondition(lambda self: hasattr(self, "model"))
    @rule(seed=SEEDS)
    def run_of_the_session(self, seed):
        """A plain run in between concerns no stream."""
        self.run([feed(2, 3, seed)], "y")

    def expected(self, history):
        return self.run(history, "y")[-len(history[-1]) :]

    def run(self, history, output):
        x = np.concatenate(history)
        inputs = self.model.get_inputs()[1:]
        states = {
            item.name: np.zeros([x.shape[1] if d == "batch" else d for d in item.shape], np.float32) for item in inputs
        }
        return self.model.run([output], {"x": x, **states})[0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", ["GRU", "LSTM", "Scan"])
def test_never_a_difference_from_a_plain_run(op, backend):
    machine = type("Machine", (Streams,), {"backend": backend, "op": op})
    n = 10 if backend == "numpy" else 50
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=n, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
