import numpy as np
import pytest
from onnx.parser import parse_model

import webrnn
from tests.backends import BACKENDS, MAIN
from tests.engine.stream_models import CARRY, HIDDEN, counter, feed, growing, hidden_state, stateful
from tests.onnx.models import floats, model, recurrent
from webrnn.engine.streams.carry import resolve
from webrnn.ir import DType, Value


def session(proto, **options):
    return webrnn.InferenceSession(proto.SerializeToString(), **options)


def value(name, *shape, dtype=DType.FLOAT):
    return Value(name, dtype, shape)


def test_pairs_by_name_are_positions():
    inputs, outputs = [value("x", 1), value("h", 1, 2)], [value("h2", 1, 2), value("y", 1)]
    assert resolve({"h": "h2"}, inputs, outputs) == [(1, 0)]


@pytest.mark.parametrize(
    ("carry", "message"),
    [
        ({"z": "h2"}, r"no input 'z'; it has x, h, g"),
        ({"h": "z"}, r"no output 'z'; it has h2, y, i"),
        ({"h": "y"}, r"'h' is \[1, 2\], 'y' is \[1\]"),
        ({"g": "h2"}, r"'g' is \[1, 3\], 'h2' is \[1, 2\]"),
        ({"h": "i"}, "'h' and 'i' are of different types"),
        ({"h": "h2", "x": "h2"}, r"'x' is \[1\]|output 'h2' feeds two inputs"),
    ],
)
def test_pairs_that_cannot_be(carry, message):
    inputs = [value("x", 1), value("h", 1, 2), value("g", 1, 3)]
    outputs = [value("h2", 1, 2), value("y", 1), value("i", 1, 2, dtype=DType.INT64)]
    with pytest.raises(webrnn.ModelError, match=message):
        resolve(carry, inputs, outputs)


def test_one_output_for_two_inputs():
    with pytest.raises(webrnn.ModelError, match="output 'o' feeds two inputs"):
        resolve({"a": "o", "b": "o"}, [value("a", 1), value("b", 1)], [value("o", 1)])


@pytest.mark.parametrize("op", CARRY)
def test_auto_finds_the_states(op):
    assert session(stateful(op)).stream().carry == CARRY[op]


def test_a_word_that_is_no_carry():
    with pytest.raises(webrnn.ModelError, match="not 'manual'"):
        session(stateful("GRU")).stream(carry="manual")


def test_internal_names_the_loop():
    assert session(hidden_state("GRU")).stream(carry="internal").carry == {"cell.h": "cell.h.next"}


def test_internal_keeps_all_outputs_of_the_model():
    stream = session(hidden_state("GRU", with_final=True)).stream(carry="internal")
    assert stream.output_names == ["y", "y_h"]
    y, y_h = stream.step({"x": feed(3, 2)})
    assert (y[-1] == y_h).all()
    assert (stream.state["cell.h"].ravel() == y_h.ravel()).all()


def test_internal_takes_what_is_fed_for_a_state_in_the_first_step_only():
    s = session(stateful("LSTM"), backend=MAIN)
    x, h, c = feed(7, 2), *np.random.default_rng(3).standard_normal((2, 1, 2, HIDDEN)).astype(np.float32)
    whole = s.run(None, {"x": x, "h_in": h, "c_in": c})
    stream = s.stream(carry="internal")
    first = stream.step({"x": x[:3], "h_in": h, "c_in": c})
    second = stream.step({"x": x[3:], "h_in": 9 * h, "c_in": 9 * c})
    assert np.array_equal(np.concatenate([first[0], second[0]]), whole[0])
    assert all(np.array_equal(a, b) for a, b in zip(second[1:], whole[1:], strict=True))


def test_internal_refuses_loops_that_run_backwards():
    proto = recurrent("GRU", direction="bidirectional")
    with pytest.raises(webrnn.ModelError, match=r"cell.*runs backwards"):
        session(proto).stream(carry="internal")


def test_nothing_carried():
    stream = session(counter()).stream(carry={})
    assert stream.carry == {}
    assert stream.output_names == ["y", "count_out", "sum_out"]


def test_the_streams_of_a_session_share_its_weights():
    s = session(stateful("GRU"), backend=MAIN)
    plans = {id(s.stream()._carriers[0]._program._plan) for _ in range(3)}
    assert len(plans) == 1


def test_carry_by_name_may_change_shape():
    stream = session(growing()).stream(carry={"past_in": "past_out"})
    assert stream.carry == {"past_in": "past_out"}


def test_a_model_without_states():
    proto = model([], [floats("h", [1, 2])], [floats("h", [1, 2])])
    with pytest.raises(webrnn.Error):
        session(proto).stream(carry={"h": "nothing"})


TOTAL = """<ir_version: 8, opset_import: ["": 17]>
    total (float[2] x, float[2] sum_in, float[n] w_in) => (float[2] y, float[2] sum_out, float[n] w_out) {
        sum_out = Add(sum_in, x) y = Identity(sum_out) w_out = Identity(w_in)
    }"""
CARRIED = {"sum_in": "sum_out"}


@pytest.mark.parametrize("backend", BACKENDS)
def test_states_start_from_given_arrays(backend, tmp_path):
    model = parse_model(
        TOTAL.replace(", float[n] w_in", "").replace(", float[n] w_out", "").replace("w_out = Identity(w_in)", "")
    )
    session = webrnn.InferenceSession(model.SerializeToString(), backend=backend)
    start = np.float32([5, 6])
    stream = session.stream(carry=CARRIED, starts={"sum_in": start})
    start[:] = 0  # the caller's own
    x = np.float32([1, 1])
    assert np.array_equal(stream.step({"x": x})[0], [6, 7])
    assert np.array_equal(stream.step({"x": x})[0], [7, 8])
    stream.reset()
    assert np.array_equal(stream.step({"x": x})[0], [6, 7])
    assert np.array_equal(session.stream(carry=CARRIED).step({"x": x})[0], [1, 1])
    if backend == "numpy":
        return
    session.export(tmp_path / "total.rnn", carry=CARRIED, starts={"sum_in": np.float32([7, 8])})
    loaded = webrnn.InferenceSession(tmp_path / "total.rnn", backend=backend)
    assert np.array_equal(loaded.stream().step({"x": x})[0], [8, 9])
    with pytest.raises(webrnn.OptionError, match="what others, and plans, start from is in them"):
        loaded.stream(starts={"sum_in": np.float32([1, 1])})


@pytest.mark.parametrize(
    ("starts", "error", "message"),
    [
        ({"x": np.float32([1, 1])}, webrnn.OptionError, "no state 'x'; there are"),
        ({"sum_in": np.float64([1, 1])}, webrnn.ShapeError, "'sum_in' is float64, the state is float32"),
        ({"sum_in": np.float32([1])}, webrnn.ShapeError, r"'sum_in' is \[1\], the state is \['2'\]"),
        ({"w_in": np.float32([1, 2])}, webrnn.ShapeError, "along a size that is open it has to be 1"),
    ],
)
def test_starts_that_do_not_fit(starts, error, message):
    session = webrnn.InferenceSession(parse_model(TOTAL).SerializeToString())
    with pytest.raises(error, match=message):
        session.stream(carry={**CARRIED, "w_in": "w_out"}, starts=starts)
    with pytest.raises(webrnn.OptionError, match="say what they carry"):
        session.export("never.rnn", starts=starts)
