"""Feeds and results of JavaScript."""

import numpy as np
import pytest
from pyodide.code import run_js
from pyodide.ffi import to_js

import webrnn
from tests.engine.stream_models import CARRY, HIDDEN, INPUTS, feed, lookup, stateful

FIXED = stateful("GRU", steps=2, batch=1).SerializeToString()
OPEN = stateful("GRU").SerializeToString()


def values(js_array):
    return np.asarray(js_array.to_py())


def test_an_object_of_typed_arrays():
    session = webrnn.InferenceSession(FIXED)
    x = feed(2, 1)
    feeds = run_js("(x, n) => ({x, h_in: new Float32Array(n)})")(to_js(x.reshape(-1)), HIDDEN)
    expected = session.run(None, {"x": x, "h_in": np.zeros((1, 1, HIDDEN), np.float32)})
    for _ in range(2):
        for ours, theirs in zip(session.run(None, feeds), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_map_and_tensors_with_dims():
    session = webrnn.InferenceSession(OPEN)
    x = feed(3, 2)
    make = run_js("(x, n) => new Map([['x', {data: x, dims: [3, 2, 4]}], ['h_in', {data: n, dims: [1, 2, 5]}]])")
    h = np.zeros((1, 2, HIDDEN), np.float32)
    results = session.run(None, make(to_js(x.reshape(-1)), to_js(h.reshape(-1))))
    for ours, theirs in zip(results, session.run(None, {"x": x, "h_in": h}), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_steps_and_typed_arrays_to_fill():
    session = webrnn.InferenceSession(FIXED)
    stream, other = session.stream(carry=CARRY["GRU"]), session.stream(carry=CARRY["GRU"])
    out = run_js("n => [new Float32Array(n)]")(2 * HIDDEN)
    for step in range(3):
        x = feed(2, 1, step)
        (expected,) = other.step({"x": x})
        stream.step(run_js("x => ({x})")(to_js(x.reshape(-1))), out=out)
        np.testing.assert_array_equal(values(out[0]), expected.reshape(-1))
    np.testing.assert_array_equal(stream.state["h_in"], other.state["h_in"])


def test_a_step_with_typed_arrays_does_not_bind_again(monkeypatch):
    stream = webrnn.InferenceSession(FIXED).stream(carry=CARRY["GRU"])
    stream.step({"x": feed(2, 1)})
    started = []
    monkeypatch.setattr(stream._carriers[0], "start", lambda *arguments: started.append(arguments))
    stream.step(run_js("x => ({x})")(to_js(feed(2, 1).reshape(-1))))
    assert not started


def test_called_from_javascript():
    """As a page does: the results are read where Python has them, with getBuffer."""
    stream = webrnn.InferenceSession(FIXED).stream(carry=CARRY["GRU"])
    expected = stream.step({"x": np.ones((2, 1, INPUTS), np.float32)})[0].copy()
    stream.reset()
    read = run_js("""(stream, n) => {
        const results = stream.step.callKwargs({x: new Float32Array(n).fill(1)}, {borrow: true});
        const first = results.get(0), view = first.getBuffer("f32");
        const copy = view.data.slice();
        view.release(); first.destroy(); results.destroy();
        return copy;
    }""")
    np.testing.assert_array_equal(values(read(stream, 2 * INPUTS)), expected.reshape(-1))


def test_pools():
    session = webrnn.InferenceSession(stateful("GRU", steps=1).SerializeToString())
    pool, stream = session.pool(2, carry=CARRY["GRU"]), session.stream(carry=CARRY["GRU"])
    handle = pool.open()
    for step in range(3):
        x = feed(1, 1, step)
        pool.submit(handle, run_js("x => ({x: {data: x, dims: [1, 1, 4]}})")(to_js(x.reshape(-1))))
        np.testing.assert_array_equal(pool.tick()[handle][0], stream.step({"x": x})[0])


def test_integers():
    session = webrnn.InferenceSession(lookup().SerializeToString())
    (y, _) = session.run(None, run_js("({index: new BigInt64Array([2n]), sum_in: new Float32Array(3)})"))
    np.testing.assert_array_equal(y, [[-6, -7, -8]])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("new Float32Array(7)", "7 elements are not"),
        ("new Float64Array(8)", "'x' is float64"),
        ("({data: new Float32Array(8), dims: [2, 1, 3]})", "8 elements are not"),
        ("({length: 8})", "neither an array, a typed array, nor"),
        ("'eight'", "'x'"),
    ],
)
def test_wrong_feeds(code, message):
    stream = webrnn.InferenceSession(FIXED).stream(carry=CARRY["GRU"])
    with pytest.raises(webrnn.ShapeError, match=message):
        stream.step(run_js(f"({{x: {code}}})"))
    assert stream.state == {}


def test_which_size_a_typed_array_has_may_be_unclear():
    stream = webrnn.InferenceSession(OPEN).stream(carry=CARRY["GRU"])
    with pytest.raises(webrnn.ShapeError, match="does not say which of"):
        stream.step(run_js("({x: new Float32Array(8)})"))


@pytest.mark.parametrize("code", ["[new Float32Array(9)]", "[new Int32Array(10)]", "[]", "[{}]"])
def test_wrong_out(code):
    stream = webrnn.InferenceSession(FIXED).stream(carry=CARRY["GRU"])
    with pytest.raises(webrnn.ShapeError, match="out"):
        stream.step({"x": feed(2, 1)}, out=run_js(code))
    assert stream.state == {}
