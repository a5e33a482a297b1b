"""Graphs of which streams once gave something else than whole runs, without a word: exact now, or refused by name."""

import numpy as np
import pytest

import webrnn
from tests.backends import BACKENDS, KERNELS, MAIN

from .loop_texts import BATCH, ENDS, EXACT, REFUSED, WIDTH, proto_of

FRAMES = 14
MASKED = ", bool[time,2] mask"


def session_of(text, backend, **options):
    proto = proto_of(text, MASKED if "mask" in text else "", **options)
    return webrnn.InferenceSession(proto.SerializeToString(), backend=backend)


def feeds_of(session, frames=FRAMES):
    rng = np.random.default_rng(8)
    feeds = {"x": rng.standard_normal((frames, BATCH, WIDTH)).astype(np.float32)}
    if len(session.get_inputs()) > 1:
        feeds["mask"] = rng.random((frames, BATCH)) < 0.6
    return feeds


def streamed(session, feeds, length, **options):
    """What steps of so many frames give, and the flush behind them, as one."""
    stream = session.stream(carry="internal", **options)
    parts = []
    for start in range(0, len(feeds["x"]), length):
        parts.append(stream.step({name: array[start : start + length] for name, array in feeds.items()}))
    if stream.timing is not None:
        parts.append(stream.flush())
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


def assert_same(results, expected, backend=MAIN):
    for result, whole in zip(results, expected, strict=True):
        assert result.shape == whole.shape
        if backend == "numpy":  # whose products depend on the number of rows
            np.testing.assert_allclose(result, whole, atol=1e-5)
            continue
        np.testing.assert_array_equal(result.view(np.uint8), whole.view(np.uint8))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", EXACT)
def test_exact_by_steps_of_any_length(name, backend):
    session = session_of(EXACT[name], backend)
    feeds = feeds_of(session)
    whole = session.run(None, feeds)
    for length in (1, 2, 7, FRAMES):
        assert_same(streamed(session, feeds, length), whole, backend)


@pytest.mark.parametrize("name", EXACT)
def test_exact_if_the_model_is_for_a_fixed_number_of_frames(name):
    """`time=` opens the axis."""
    proto = proto_of(EXACT[name], MASKED if "mask" in EXACT[name] else "")
    for value in proto.graph.input:
        value.type.tensor_type.shape.dim[0].dim_value = FRAMES
    session = webrnn.InferenceSession(proto.SerializeToString())
    feeds = feeds_of(session)
    time = dict.fromkeys(feeds, 0)
    assert_same(streamed(session, feeds, 2, time=time), session.run(None, feeds))


def test_frames_are_no_streams_of_a_pool():
    """Its state has an axis of size 1 that could count streams; the first axis of x counts frames."""
    session = session_of(EXACT["convolution in each step"], MAIN)
    feeds, pool = feeds_of(session), session.pool(max_streams=2, carry="internal")
    stream, parts = pool.open(), []
    for start in range(0, FRAMES, 2):
        pool.submit(stream, {"x": feeds["x"][start : start + 2]})
        parts.append(pool.tick()[stream][0])
    assert_same([np.concatenate(parts)], session.run(None, feeds))


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name):
    text, node, reason = REFUSED[name]
    session = session_of(text, MAIN)
    assert session.run(None, feeds_of(session))[0].size
    with pytest.raises(webrnn.ModelError) as raised:
        session.stream(carry="internal")
    assert raised.value.node
    assert node in raised.value.node
    assert reason in str(raised.value)


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("name", ENDS)
def test_last_states_behind_a_delay_are_those_of_the_whole_run_after_the_flush(name, backend):
    session = session_of(ENDS[name], backend, y=f"float[frames,{BATCH},{WIDTH}] y, float[{BATCH},{WIDTH}] z")
    feeds = feeds_of(session)
    whole, last = session.run(None, feeds)
    for length in (1, 2, 7, FRAMES):
        stream = session.stream(carry="internal")
        starts = range(0, FRAMES, length)
        parts = [*(stream.step({"x": feeds["x"][start : start + length]}) for start in starts), stream.flush()]
        assert_same([np.concatenate([part[0] for part in parts]), parts[-1][1]], [whole, last])
