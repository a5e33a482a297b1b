"""Plan files with their states: what is chosen at export is what streams of the file carry."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import webrnn
from tests.backends import KERNELS
from tests.engine.stream_models import CARRY, HIDDEN, INPUTS, feed, hidden_state, stateful
from tests.engine.streams.test_stream import assert_same_state, bits, chunks, session
from tests.onnx.models import floats, initializer, model
from webrnn.plan.file import PlanFile

START = np.linspace(-1, 1, HIDDEN, dtype=np.float32).reshape(1, 1, HIDDEN)


def unlike_names(op="GRU"):
    """A model whose states no name gives away."""
    proto = stateful(op)
    renamed = {"h_in": "a", "h_out": "b"}
    for part in (proto.graph.input, proto.graph.output):
        for value in part:
            value.name = renamed.get(value.name, value.name)
    node = proto.graph.node[0]
    for names in (node.input, node.output):
        names[:] = [renamed.get(name, name) for name in names]
    return proto


def started(start=START):
    """A GRU with a hidden state that starts from constants, for any batch."""
    proto = hidden_state("GRU")
    nodes = [
        helper.make_node("Shape", ["x"], ["batch"], start=1, end=2),
        helper.make_node("Concat", ["one", "batch", "one"], ["shape"], axis=0),
        helper.make_node("Expand", ["start", "shape"], ["h0"]),
    ]
    cell = proto.graph.node[0]
    cell.input.extend(["", "h0"])
    initializers = [*proto.graph.initializer, initializer("start", start), initializer("one", np.int64([1]))]
    return model([*nodes, cell], list(proto.graph.input), list(proto.graph.output), initializers)


def exported(s, path, **options):
    s.export(path, **options)
    return webrnn.InferenceSession(path, backend=s.backend)


@pytest.mark.parametrize("backend", KERNELS)
def test_a_plan_file_carries_its_states(backend, tmp_path):
    s = session(unlike_names(), backend)
    loaded = exported(s, tmp_path / "m.rnn", carry={"a": "b"})
    stream, expected = loaded.stream(), s.stream(carry={"a": "b"})
    assert stream.carry == {"a": "b"}
    for steps in (1, 4):
        x = {"x": feed(steps, 2, steps)}
        assert bits(stream.step(x)) == bits(expected.step(x))
    assert_same_state(stream.state, expected.state)
    without = exported(s, tmp_path / "n.rnn")
    with pytest.raises(webrnn.ModelError, match='carry="auto"'):
        without.stream()
    assert without.stream(carry={"a": "b"}).carry == {"a": "b"}


def test_auto_stores_the_pairs_that_it_finds(tmp_path):
    session(stateful("LSTM")).export(tmp_path / "m.rnn", carry="auto")
    states = PlanFile((tmp_path / "m.rnn").read_bytes()).states
    assert {state.input: state.output for state in states} == CARRY["LSTM"]
    assert all(state.start is None for state in states)


def test_other_pairs_than_the_stored_ones(tmp_path):
    loaded = exported(session(stateful("LSTM")), tmp_path / "m.rnn", carry="auto")
    assert loaded.stream(carry={"h_in": "c_out", "c_in": "h_out"}).carry == {"h_in": "c_out", "c_in": "h_out"}


def test_about_is_read_back(tmp_path):
    about = {"audio": {"sample_rate": 16000, "hop": 128}, "name": "ü", "list": [1, 2.5, None, True]}
    s = session(stateful("GRU"))
    loaded = exported(s, tmp_path / "m.rnn", about=about, carry="auto")
    assert loaded.about == about
    assert s.about == {}
    again = exported(loaded, tmp_path / "n.rnn")
    assert (again.about, again.stream().carry) == (about, CARRY["GRU"])
    assert exported(loaded, tmp_path / "o.rnn", about={"a": 1}).about == {"a": 1}


@pytest.mark.parametrize("about", [[1], "text", {"x": np.float32(1)}, {"x": float("nan")}, {"x": {1, 2}}])
def test_about_that_is_no_json_object_raises(about, tmp_path):
    (tmp_path / "m.rnn").write_text("as it was")
    with pytest.raises(webrnn.PlanError, match="about"):
        session(stateful("GRU")).export(tmp_path / "m.rnn", about=about)
    assert (tmp_path / "m.rnn").read_text() == "as it was"


@pytest.mark.parametrize("backend", KERNELS)
def test_a_state_starts_from_what_the_model_says(backend, tmp_path):
    s = session(started(), backend)
    loaded = exported(s, tmp_path / "m.rnn", carry="internal")
    np.testing.assert_array_equal(PlanFile((tmp_path / "m.rnn").read_bytes()).states[0].start, START[0])
    for batch in (1, 3):
        x = feed(6, batch)
        stream = loaded.stream()
        for _ in range(2):
            y = np.concatenate([stream.step({"x": part})[0] for part in chunks(x, [1, 5])])
            assert bits([y]) == bits(s.run(None, {"x": x}))
            stream.reset()
    again = exported(loaded, tmp_path / "n.rnn", carry="auto")
    assert bits(again.stream().step({"x": feed(2, 1)})) == bits(loaded.stream().step({"x": feed(2, 1)}))


@pytest.mark.parametrize("shapes", [{"x": [1, 2, INPUTS]}, {"x": [4, 1, INPUTS]}])
def test_states_of_a_plan_for_given_shapes(shapes, tmp_path):
    s = session(started())
    loaded = exported(s, tmp_path / "m.rnn", carry="internal", shapes=shapes)
    assert PlanFile((tmp_path / "m.rnn").read_bytes()).symbols == []
    x = feed(*shapes["x"][:2])
    assert bits(loaded.stream().step({"x": x})) == bits(s.run(None, {"x": x}))


def range_start():
    """A state that starts from 0, 1, 2 ... along the batch."""
    proto = hidden_state("GRU")
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "one"], ["batch"]),
        helper.make_node("Range", ["zero", "batch", "one"], ["numbers"]),
        helper.make_node("Cast", ["numbers"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["floats", "axes"], ["column"]),
        helper.make_node("Add", ["column", "start"], ["h0"]),
    ]
    cell = proto.graph.node[0]
    cell.input.extend(["", "h0"])
    numbers = {"zero": np.int64(0), "one": np.int64(1), "axes": np.int64([0, 2]), "start": START}
    initializers = [*proto.graph.initializer, *(initializer(k, np.asarray(v)) for k, v in numbers.items())]
    return model([*nodes, cell], list(proto.graph.input), list(proto.graph.output), initializers)


def test_a_start_that_depends_on_a_size_needs_the_size(tmp_path):
    s = session(range_start())
    with pytest.raises(webrnn.PlanError, match="depends on a size: give shapes"):
        s.export(tmp_path / "m.rnn", carry="internal")
    x = feed(3, 2)
    loaded = exported(s, tmp_path / "m.rnn", carry="internal", shapes={"x": x.shape})
    assert bits(loaded.stream().step({"x": x})) == bits(s.stream(carry="internal").step({"x": x}))


def test_integers_and_flags_start_from_values_as_well(tmp_path):
    """A loop that counts down and turns a flag over, from constants."""
    body = helper.make_graph(
        [
            helper.make_node("Sub", ["n", "one"], ["n_next"]),
            helper.make_node("Not", ["flag"], ["flag_next"]),
            helper.make_node("Cast", ["n"], ["n_float"], to=TensorProto.FLOAT),
            helper.make_node("Cast", ["flag"], ["flag_float"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["x_t", "n_float"], ["scaled"]),
            helper.make_node("Add", ["scaled", "flag_float"], ["y_t"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("n", TensorProto.INT64, [2]),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, [2]),
            floats("x_t", [2]),
        ],
        [
            helper.make_tensor_value_info("n_next", TensorProto.INT64, [2]),
            helper.make_tensor_value_info("flag_next", TensorProto.BOOL, [2]),
            floats("y_t", [2]),
        ],
    )
    node = helper.make_node("Scan", ["n0", "flag0", "x"], ["", "", "y"], num_scan_inputs=1, body=body, name="loop")
    constants = {"n0": np.int64([100, 2**40]), "flag0": np.array([True, False]), "one": np.int64([1, 1])}
    proto = model(
        [node],
        [floats("x", ["steps", 2])],
        [floats("y", ["steps", 2])],
        [initializer(k, v) for k, v in constants.items()],
    )
    s = session(proto)
    x = np.random.default_rng(0).standard_normal((5, 2)).astype(np.float32)
    stream = exported(s, tmp_path / "m.rnn", carry="internal").stream()
    y = np.concatenate([stream.step({"x": part})[0] for part in chunks(x, [2, 3])])
    np.testing.assert_array_equal(y, s.run(None, {"x": x})[0])
