"""States of sizes that no input of the first step says."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.backends import BACKENDS, MAIN
from tests.engine.stream_models import HIDDEN, feed, growing, stateful
from tests.engine.streams.test_stream import bits, session
from tests.onnx.models import floats, model
from tests.plan.handmade import Handmade


def unnamed(op="GRU", name="another"):
    """A model whose states do not say that their batch is that of x; without a name if that is empty."""
    proto = stateful(op)
    for value in list(proto.graph.input)[1:]:
        dim = value.type.tensor_type.shape.dim[1]
        dim.Clear()
        if name:
            dim.dim_param = name
    return proto


@pytest.mark.parametrize("name", ["another", ""])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_state_is_as_large_as_it_will_be(backend, name):
    s = session(unnamed("LSTM", name), backend)
    for batch in (1, 3):
        stream = s.stream(carry={"h_in": "h_out", "c_in": "c_out"})
        x = feed(2, batch)
        states = {state: np.zeros((1, batch, HIDDEN), np.float32) for state in ("h_in", "c_in")}
        assert bits(stream.step({"x": x})) == bits(s.run(["y"], {"x": x, **states}))
        assert stream.state["h_in"].shape == (1, batch, HIDDEN)


@pytest.mark.parametrize("name", ["another", ""])
def test_the_same_from_a_plan_file(name, tmp_path):
    s = session(unnamed("GRU", name))
    s.export(tmp_path / "m.rnn", carry={"h_in": "h_out"})
    loaded = webrnn.InferenceSession(tmp_path / "m.rnn")
    for batch in (1, 3):
        x = {"x": feed(2, batch)}
        assert bits(loaded.stream().step(x)) == bits(s.stream(carry={"h_in": "h_out"}).step(x))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_state_that_grows_starts_empty(backend):
    stream = session(growing(), backend).stream(carry={"past_in": "past_out"})
    x = np.ones((1, 2), np.float32)
    assert [stream.step({"x": x})[0].item() for _ in range(3)] == [2, 4, 6]
    assert stream.state["past_in"].shape == (3, 2)


def test_what_nothing_says_is_one_stream():
    proto = model(
        [helper.make_node("Add", ["h_in", "x"], ["h_out"]), helper.make_node("Neg", ["h_out"], ["y"])],
        [floats("x", [1]), floats("h_in", ["rows", 1])],
        [floats("y", ["rows", 1]), floats("h_out", ["rows", 1])],
    )
    stream = session(proto).stream()
    assert stream.step({"x": np.float32([2])})[0].tolist() == [[-2]]
    assert stream.state["h_in"].shape == (1, 1)


def _plan_with_sizes(rows):
    """A plan whose state is as large as the last of these sizes."""
    plan = Handmade()
    plan.symbol("n")
    plan.size_rows += rows
    last = len(plan.size_rows) - 1
    for name, external in (("x", 0), ("y", 1)):
        port = {"name": name, "dtype": "f32", "shape": ["open"], "sizes": [last], "external": external}
        (plan.inputs if name == "x" else plan.outputs).append(port)
    plan.n_externals = 2
    return plan.data(states=[{"input": "x", "output": "y"}])


@pytest.mark.parametrize(
    "rows",
    [
        [(3, i, i) for i in range(60)],
        [(0, 1, 0), (2, 0, 1), *((3, i, i) for i in range(2, 60))],
        [row for i in range(60) for row in ((2, 2 * i, 0), (4, 2 * i + 1, 3))],
        [(0, 2**30, 0), *((3, i, i) for i in range(1, 60))],
    ],
    ids=["powers", "polynomials", "quotients", "numbers"],
)
def test_sizes_that_grow_without_end_are_refused(rows):
    stream = webrnn.InferenceSession(_plan_with_sizes(rows), backend=MAIN).stream()
    with pytest.raises(webrnn.Error):
        stream.step({})


def test_states_of_negative_size_are_refused():
    stream = webrnn.InferenceSession(_plan_with_sizes([(0, -1, 0), (3, 0, 1)]), backend=MAIN).stream()
    with pytest.raises(webrnn.Error):
        stream.step({})
