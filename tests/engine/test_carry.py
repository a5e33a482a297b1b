import pytest

import webrnn
from tests.backends import MAIN
from tests.engine.stream_models import CARRY, counter, feed, growing, hidden_state, stateful
from tests.models.fetch import model_path
from tests.onnx.models import floats, model, recurrent
from webrnn.engine.carry import guess, resolve
from webrnn.ir import DType, Symbol, Value


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
        ({"z": "h2"}, r"no input 'z'; it has \['x', 'h', 'g'\]"),
        ({"h": "z"}, r"no output 'z'; it has \['h2', 'y', 'i'\]"),
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


def test_auto_with_names_that_fit_crosswise():
    inputs = [value("h_in", 1, 4), value("c_in", 1, 4)]
    assert guess(inputs, [value("c_out", 1, 4), value("h_out", 1, 4)]) == {"h_in": "h_out", "c_in": "c_out"}


def test_auto_names_the_candidates_when_it_is_not_sure():
    inputs = [value("state", 1, 4)]
    with pytest.raises(webrnn.ModelError, match=r"not sure.*state: state_a or state_b\. Name the pairs"):
        guess(inputs, [value("state_a", 1, 4), value("state_b", 1, 4)])


def test_auto_does_not_give_one_output_to_two_inputs():
    inputs = [value("state_a", 1, 4), value("state_a2", 1, 4)]
    with pytest.raises(webrnn.ModelError, match="not sure"):
        guess(inputs, [value("state_a_out", 1, 4)])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (value("h_in", 1, 4), value("h_out", 1, 5)),
        (value("h_in", 1, 4), value("h_out", 1, 4, dtype=DType.DOUBLE)),
        (value("h_in", 1, 4), value("h_out", 4)),
        (value("x", 1, 4), value("y", 1, 4)),
    ],
)
def test_auto_finds_nothing(before, after):
    with pytest.raises(webrnn.ModelError, match=r'finds no input that looks like a state.*carry="internal"'):
        guess([before], [after])


def test_auto_on_sizes_that_are_not_numbers():
    assert guess([value("h_in", Symbol("b"), 4)], [value("h_out", None, 4)]) == {"h_in": "h_out"}


@pytest.mark.parametrize(
    ("name", "fixed", "expected"),
    [
        ("riann", None, {"h0": "hn"}),
        ("dtln_1", None, {"input_3": "tf_op_layer_stack_2"}),
        ("dtln_2", None, {"input_5": "tf_op_layer_stack_5"}),
        ("silero_v6", {"sr": 16000}, {"state": "stateN"}),
        ("silero_v6_op18_ifless", {"sr": 16000}, {"state": "stateN"}),
    ],
)
def test_auto_on_real_models(name, fixed, expected):
    assert webrnn.InferenceSession(model_path(name), fixed=fixed).stream().carry == expected


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


def test_internal_needs_a_loop_that_starts_from_constants():
    with pytest.raises(webrnn.ModelError, match="no loop of the model starts from constants"):
        session(stateful("GRU")).stream(carry="internal")


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
