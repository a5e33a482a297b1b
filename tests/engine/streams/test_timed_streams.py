"""Streams with a delay and a stride: all steps and the flush are the whole run."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import webrnn
from tests.backends import BACKENDS, MAIN, UNFUSED
from tests.engine.stream_models import CARRY, stateful
from webrnn.engine.streams.stream import Stream
from webrnn.ir.timing import TimedOutput, Timing

from .timed_models import CHANNELS, NEVER, Averages

KINDS = [
    Averages(),
    Averages(stride=2),
    Averages(left=0, right=0),
    Averages(left=2, right=0),
    Averages(left=2, right=2),
    Averages(width=5, left=1, right=3, stride=3, axis=2),
    Averages(left=0, right=2, axis=2),
]
GAIN = np.float32([1, 2, 3])


def feeds(kind: Averages, x: np.ndarray, first: int, end: int) -> dict[str, np.ndarray]:
    found = {"x": kind.frames(x, first, end)}
    return {**found, "gain": GAIN} if kind.gain else found


def by_steps(kind: Averages, stream: Stream, x: np.ndarray, cuts: list[int]) -> list[np.ndarray]:
    """y of each step between these strides, and of the flush."""
    pairs = zip([0, *cuts], cuts, strict=False)
    return [*(stream.step(feeds(kind, x, a, b))[0] for a, b in pairs), stream.flush()[0]]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_all_steps_and_the_flush_are_the_whole_run(kind, backend):
    stream, x = kind.stream(backend), kind.feed(9, batch=2)
    for cuts in ([1, 3, 4, 9], [9], list(range(1, 10)), [7, 9]):
        parts = by_steps(kind, stream, x, cuts)
        assert np.array_equal(np.concatenate(parts, kind.axis), kind.whole(x))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_cut(data):
    width = data.draw(st.integers(2, 6))
    left, right = (data.draw(st.integers(0, width - 1)) for _ in "lr")
    kind = Averages(width, left, right, data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2)))
    n = data.draw(st.integers(1, 8))
    cuts = [*sorted(data.draw(st.sets(st.integers(1, n - 1)))), n] if n > 1 else [1]
    x = kind.feed(n)
    parts = by_steps(kind, kind.stream(), x, cuts)
    assert np.array_equal(np.concatenate(parts, kind.axis), kind.whole(x))


def test_it_says_how_late_it_is():
    stream = Averages(width=5, left=1, right=3, stride=3).stream()
    assert (stream.delay, stream.stride, stream.timing.flush_strides) == (9, 3, 3)
    plain = webrnn.InferenceSession(stateful("GRU").SerializeToString()).stream(CARRY["GRU"])
    assert (plain.delay, plain.stride, plain.timing) == (0, 1, None)
    with pytest.raises(webrnn.ModelError, match="not known that this stream has frames"):
        plain.flush()


def test_an_input_and_an_output_without_frames():
    kind = Averages(gain=True, total=True)
    x = kind.feed(6)
    stream = kind.stream()
    mine = GAIN.copy()
    steps = [stream.step({"x": x[:, t : t + 1], "gain": mine}) for t in range(6)]
    mine[:] = np.nan  # the caller's own array
    y, total = stream.flush()
    assert np.array_equal(np.concatenate([*(step[0] for step in steps), y], 1), kind.whole(x, GAIN))
    assert np.array_equal(total, steps[-1][1])
    assert np.allclose(total, x.sum(1), atol=1e-5)


def test_what_has_no_frames_is_that_of_the_last_step_where_nothing_is_left():
    kind = Averages(left=2, right=0, total=True)
    stream, x = kind.stream(), kind.feed(4)
    last = stream.step({"x": x})
    twin = stream.fork()
    for each in (stream, twin):
        y, total = each.flush()
        assert y.shape == (1, 0, CHANNELS)
        assert np.array_equal(total, last[1])
    stream.step({"x": x})
    stream.load(stream.state)
    with pytest.raises(webrnn.ModelError, match=r"load\(\) came after it"):
        stream.flush()
    assert np.array_equal(stream.step({"x": x})[0], kind.whole(np.concatenate([x, x], 1))[:, 4:])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_steps_of_other_sizes_are_refused(kind):
    stream, x = kind.stream(), kind.feed(4)
    stream.step({"x": kind.frames(x, 0, 2)})
    state = stream.state
    for n in (*([0] if kind.delay or kind.has_end else []), *range(kind.stride + 1, 2 * kind.stride)):
        part = x[:, :n] if kind.axis == 1 else x[:, :, :n]
        with pytest.raises(
            webrnn.ShapeError,
            match=f"'x' has {n} frames along axis {kind.axis}; a step takes a positive multiple of {kind.stride}",
        ):
            stream.step({"x": part})
    assert all(np.array_equal(state[name], array) for name, array in stream.state.items())
    assert np.array_equal(
        np.concatenate([stream.step({"x": kind.frames(x, 2, 4)})[0], stream.flush()[0]], kind.axis),
        kind.whole(x)[(slice(None),) * kind.axis + (slice(max(0, 2 - kind.delay), None),)],
    )


def test_inputs_of_different_lengths_are_refused():
    kind = Averages(second=True)
    graph = kind.graph()
    graph.inputs[1].shape = (graph.inputs[1].shape[0], None, CHANNELS)
    session = webrnn.InferenceSession(graph)
    session._streaming(kind.carry).timing = kind.timing
    x = kind.feed(4)
    with pytest.raises(webrnn.ShapeError, match="'x2' has 3 frames along axis 1; a step takes as many of each input"):
        session.stream(kind.carry).step({"x": x, "x2": x[:, :3]})


def test_warm_up_in_arrays_of_the_caller_and_in_borrowed_ones():
    kind = Averages(width=4, left=1, right=2)
    stream, x = kind.stream(), kind.feed(9)
    whole = kind.whole(x)
    assert stream.step({"x": x[:, :1]}, borrow=True)[0].shape == (1, 0, CHANNELS)
    with pytest.raises(
        webrnn.ShapeError, match=r"out for 'y' is float32\[1, 2, 3\], the step gives float32\[1, 1, 3\]"
    ):
        stream.step({"x": x[:, 1:3]}, out=[np.empty((1, 2, 3), np.float32)])
    mine = np.empty((1, 1, 3), np.float32)
    assert stream.step({"x": x[:, 1:3]}, out=[mine])[0] is mine
    assert np.array_equal(mine, whole[:, :1])
    assert np.array_equal(stream.step({"x": x[:, 3:5]}, borrow=True)[0], whole[:, 1:3])


def test_nothing_is_cut_and_nothing_is_looked_at_once_the_warm_up_is_over():
    stream = Averages().stream()
    x = Averages().feed(3)
    looked = []
    fed = stream._frames.fed
    stream._frames.fed = lambda states: looked.append(1) or fed(states)
    for t in range(3):
        stream.step({"x": x[:, t : t + 1]})
    assert len(looked) == 2


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("at", [0, 1, 2, 5])
def test_a_snapshot_is_enough_to_go_on_elsewhere(kind, at):
    x = kind.feed(8)
    stream = kind.stream()
    begun = [stream.step({"x": kind.frames(x, t, t + 1)})[0] for t in range(at)]
    elsewhere = kind.stream(UNFUSED if at == 2 else MAIN)
    elsewhere.load(stream.state)
    for each in (elsewhere, stream.fork(), stream):
        parts = [*begun, *(each.step({"x": kind.frames(x, t, t + 1)})[0] for t in range(at, 8)), each.flush()[0]]
        assert np.array_equal(np.concatenate(parts, kind.axis), kind.whole(x))


def test_a_snapshot_can_be_flushed_where_sizes_are_known():
    kind = Averages(named=False)
    stream, x = kind.stream(), kind.feed(4)
    begun = stream.step({"x": x})[0]
    elsewhere = kind.stream()
    elsewhere.load(stream.state)
    assert np.array_equal(np.concatenate([begun, elsewhere.flush()[0]], 1), kind.whole(x))
    unknown = Averages().stream()
    unknown.load(stream.state)
    with pytest.raises(webrnn.ModelError, match="how large 'x' is has to be known"):
        unknown.flush()
    assert unknown.state.keys() == stream.state.keys()
    assert np.array_equal(unknown.step({"x": x})[0], kind.whole(np.concatenate([x, x], 1))[:, 3:7])


def test_a_flush_ends_the_sequence():
    kind = Averages(stride=2)
    stream, x = kind.stream(), kind.feed(5)
    with pytest.raises(webrnn.ModelError, match="nothing was fed yet"):
        stream.flush()
    for _ in range(2):
        assert np.array_equal(np.concatenate(by_steps(kind, stream, x, [2, 5]), 1), kind.whole(x))
        assert stream.state == {}
        with pytest.raises(webrnn.ModelError, match="nothing was fed yet"):
            stream.flush()
    stream.step({"x": x})
    stream.reset()
    with pytest.raises(webrnn.ModelError, match="nothing was fed yet"):
        stream.flush()


def test_reset_in_the_middle_of_the_warm_up():
    kind = Averages(width=6, left=0, right=5)
    stream, x = kind.stream(), kind.feed(7)
    stream.step({"x": x[:, :3]})
    stream.reset()
    assert np.array_equal(np.concatenate(by_steps(kind, stream, x, [1, 7]), 1), kind.whole(x))


def test_a_step_and_a_flush_that_raise_leave_the_stream_as_it_was(monkeypatch):
    kind = Averages(width=4, left=1, right=2)
    stream, x = kind.stream("numpy"), kind.feed(6)
    whole = kind.whole(x)
    parts = [stream.step({"x": x[:, :1]})[0]]
    carrier = stream._carriers[0]

    def fails(*arguments):
        raise webrnn.ModelError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(carrier, "step", fails)
        for act in (lambda: stream.step({"x": x[:, 1:2]}), stream.flush):
            with pytest.raises(webrnn.ModelError, match="broken"):
                act()
    assert stream.state["time.position"] == [1]
    parts += [stream.step({"x": x[:, 1:6]})[0]]
    with monkeypatch.context() as patch:
        patch.setattr(carrier, "step", fails)
        with pytest.raises(webrnn.ModelError, match="broken"):
            stream.flush()
    assert np.array_equal(np.concatenate([*parts, stream.flush()[0]], 1), whole)


def test_finite_results_are_asked_of_what_is_shown():
    kind = Averages()
    x = kind.feed(4)
    stream = kind.stream(check_finite=True)
    stream.step({"x": x[:, :2]})
    x[:, 2] = np.nan
    with pytest.raises(webrnn.ModelError, match="output 'y' is not finite"):
        stream.step({"x": x[:, 2:]})
    assert stream.state["time.position"] == [2]
    history = {**stream.state, "history": np.full((1, 2, CHANNELS), -np.inf, np.float32)}
    late = Averages(width=4, left=0, right=0).stream(check_finite=True)  # all that it shows first is behind the history
    late.load({"history": np.full((1, 3, CHANNELS), -np.inf, np.float32), "time.position": np.array([0], np.int64)})
    assert late.step({"x": kind.feed(2)})[0].shape[1] == 0
    assert np.isfinite(late.step({"x": kind.feed(2)})[0]).all()
    stream.load(history)
    with pytest.raises(webrnn.ModelError, match="output 'y' is not finite"):
        stream.step({"x": kind.feed(2)})


def test_a_position_that_the_stream_does_not_have_is_an_error_of_who_made_it():
    kind = Averages(left=2, right=0)
    session = kind.session()
    session._streaming(kind.carry).timing = Timing(1, {"x": 1}, {"y": TimedOutput(1, 1, 1)})
    with pytest.raises(webrnn.ModelError, match="needs the state 'time"):
        session.stream(kind.carry)


def test_the_end_is_far_away():
    stream = Averages().stream()
    stream.step({"x": Averages().feed(1)})
    assert stream.state["time.end"] == [NEVER]
