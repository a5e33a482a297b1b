"""Which weights become small, and in which form."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import webrnn
from tests.backends import MAIN, UNFUSED
from tests.onnx.models import model
from webrnn.errors import OptionError, PlanError

RNG = np.random.default_rng(5)
FLOAT = TensorProto.FLOAT


def _weights(name, *shape):
    array = (RNG.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
    return helper.make_tensor(name, FLOAT, shape, array.tobytes(), raw=True)


def _network() -> bytes:
    """A lookup, a convolution, a GRU and two products, one of which is too small to take part."""
    nodes = [
        helper.make_node("Gather", ["table", "words"], ["found"], name="lookup"),
        helper.make_node("Transpose", ["found"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("Conv", ["turned", "kernels", "kernel_bias"], ["convolved"], name="conv", pads=[1, 1]),
        helper.make_node("Transpose", ["convolved"], ["sequence"], perm=[2, 0, 1]),
        helper.make_node("GRU", ["sequence", "w", "r", "b"], ["states", ""], hidden_size=32, name="gru"),
        helper.make_node("Squeeze", ["states", "one"], ["rows"]),
        helper.make_node("MatMul", ["rows", "dense"], ["product"], name="dense"),
        helper.make_node("Add", ["product", "dense_bias"], ["wide"], name="dense_add"),
        helper.make_node("MatMul", ["wide", "tiny"], ["y"], name="tiny"),
    ]
    constants = [
        _weights("table", 50, 24), _weights("kernels", 32, 24, 3), _weights("kernel_bias", 32),
        _weights("w", 1, 96, 32), _weights("r", 1, 96, 32), _weights("b", 1, 192), _weights("dense", 32, 40),
        _weights("dense_bias", 40), _weights("tiny", 40, 3),
        helper.make_tensor("one", TensorProto.INT64, [1], [1]),
    ]  # fmt: skip
    inputs = [helper.make_tensor_value_info("words", TensorProto.INT64, ["n", "t"])]
    outputs = [helper.make_tensor_value_info("y", FLOAT, None)]
    return model(nodes, inputs, outputs, constants).SerializeToString()


NETWORK = _network()
WORDS = {"words": RNG.integers(0, 50, (1, 12))}


def _forms(session):
    return {row.name: row.form for row in session.weight_report.rows}


@pytest.mark.parametrize(("form", "error"), [("int8", 0.1), ("int16", 0.002), ("f16", 0.01)])
def test_every_kind_of_node_takes_part(form, error):
    session = webrnn.InferenceSession(NETWORK, weights=form)
    forms = _forms(session)
    assert {name.split("/")[0] for name, each in forms.items() if each == form} == {
        "lookup",
        "conv",
        "gru",
        "dense_add",
    }
    assert forms["tiny"] == "f32"
    assert "tiny stays float32: it has 120 weights" in session.report()
    (y,), (wanted,) = session.run(None, WORDS), webrnn.InferenceSession(NETWORK).run(None, WORDS)
    assert 0 < np.abs(y - wanted).max() < error


def test_float32_is_the_default():
    session = webrnn.InferenceSession(NETWORK)
    assert session.weight_report is None
    assert "small" not in session.report()


def test_names_stay_or_have_forms_of_their_own():
    session = webrnn.InferenceSession(NETWORK, weights="int8", keep=["gru", "conv"])
    forms = _forms(session)
    assert {form for name, form in forms.items() if name.startswith(("gru", "conv"))} == {"f32"}
    assert forms["dense_add"] == "int8"
    assert "gru/from_x stays float32: asked for" in session.report()
    mixed = webrnn.InferenceSession(NETWORK, weights={"*": "int16", "gru/from_h": "int8", "dense_add": "f32"})
    forms = _forms(mixed)
    assert (forms["gru/from_h"], forms["gru/from_x"], forms["dense_add"]) == ("int8", "int16", "f32")
    only = webrnn.InferenceSession(NETWORK, weights={"conv": "f16"})
    assert {name for name, form in _forms(only).items() if form != "f32"} == {"conv"}


def test_a_wrong_option_says_what_there_is():
    with pytest.raises(OptionError, match="'int4', they can be f32, f16, int16, int8"):
        webrnn.InferenceSession(NETWORK, weights="int4")
    with pytest.raises(OptionError, match="weights of conv are 'int4'"):
        webrnn.InferenceSession(NETWORK, weights={"conv": "int4"})
    with pytest.raises(OptionError, match="no node 'lstm' with weights; there are lookup"):
        webrnn.InferenceSession(NETWORK, weights="int8", keep=["lstm"])
    with pytest.raises(OptionError, match="keep is a list of names"):
        webrnn.InferenceSession(NETWORK, weights="int8", keep="gru")


def test_a_plan_keeps_its_weights(tmp_path):
    path = tmp_path / "model.rnn"
    session = webrnn.InferenceSession(NETWORK, weights="int8")
    session.export(path)
    loaded = webrnn.InferenceSession(path)
    assert np.array_equal(loaded.run(None, WORDS)[0], session.run(None, WORDS)[0])
    with pytest.raises(PlanError, match="when a plan is exported"):
        webrnn.InferenceSession(path, weights="int8")


@pytest.mark.parametrize(("form", "most"), [("int8", 0.3), ("int16", 0.55)])
def test_no_copy_of_the_weights_is_kept(form, most, tmp_path):
    sizes = {}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    inputs, outputs = ([helper.make_tensor_value_info(name, FLOAT, None)] for name in "xy")
    inputs = [helper.make_tensor_value_info("x", FLOAT, ["n", 128])]
    data = model(nodes, inputs, outputs, [_weights("w", 128, 256)]).SerializeToString()
    for each in ("f32", form):
        webrnn.InferenceSession(data, weights=each).export(tmp_path / each)
        sizes[each] = (tmp_path / each).stat().st_size
    assert sizes[form] < most * sizes["f32"]


def test_weights_that_are_not_finite_stay():
    array = np.ones((64, 64), np.float32)
    array[3, 3] = np.inf
    constant = helper.make_tensor("w", FLOAT, array.shape, array.tobytes(), raw=True)
    inputs = [helper.make_tensor_value_info("x", FLOAT, ["n", 64])]
    outputs = [helper.make_tensor_value_info("y", FLOAT, None)]
    data = model([helper.make_node("MatMul", ["x", "w"], ["y"])], inputs, outputs, [constant]).SerializeToString()
    for form in ("int8", "f16"):
        session = webrnn.InferenceSession(data, weights=form)
        assert [row.reason for row in session.weight_report.rows] == ["a weight is not finite"]


def test_a_stream_gives_what_the_whole_sequence_gives():
    """Bit for bit, though the passes made other nodes of the model."""
    session = webrnn.InferenceSession(_stateful(), weights="int8")
    x = RNG.standard_normal((9, 1, 32)).astype(np.float32)
    whole, last = session.run(None, {"x": x, "h": np.zeros((1, 1, 32), np.float32)})
    stream = session.stream({"h": "h_next"})
    parts = [stream.step({"x": frame[None]})[0] for frame in x]
    assert np.array_equal(np.concatenate(parts), whole)
    chunks = session.stream({"h": "h_next"})
    assert np.array_equal(np.concatenate([chunks.step({"x": x[:4]})[0], chunks.step({"x": x[4:]})[0]]), whole)
    assert np.array_equal(stream.state["h"], last)


def _stateful() -> bytes:
    nodes = [helper.make_node("GRU", ["x", "w", "r", "b", "", "h"], ["y", "h_next"], hidden_size=32, name="gru")]
    constants = [_weights("w", 1, 96, 32), _weights("r", 1, 96, 32), _weights("b", 1, 192)]
    inputs = [
        helper.make_tensor_value_info("x", FLOAT, ["t", "n", 32]),
        helper.make_tensor_value_info("h", FLOAT, [1, "n", 32]),
    ]
    outputs = [helper.make_tensor_value_info(name, FLOAT, None) for name in ("y", "h_next")]
    return model(nodes, inputs, outputs, constants).SerializeToString()


def test_a_row_gives_the_same_with_any_other_rows():
    session = webrnn.InferenceSession(_stateful(), weights="int16")
    x = RNG.standard_normal((5, 30, 32)).astype(np.float32) * np.float32(10) ** RNG.integers(-3, 3, (5, 30, 1))
    h = np.zeros((1, 30, 32), np.float32)
    together = session.run(None, {"x": x.astype(np.float32), "h": h})[0]
    for row in (0, 7, 29):
        alone = session.run(None, {"x": x[:, row : row + 1].astype(np.float32), "h": h[:, :1]})[0]
        assert np.array_equal(alone[:, :, 0], together[:, :, row])


def _front_end(last: str, bank) -> bytes:
    """Windows times a basis, squared and added up to a power spectrum, times filters, and a function of that."""
    nodes = [
        helper.make_node("MatMul", ["x", "basis"], ["spectrum"], name="basis"),
        helper.make_node("Mul", ["spectrum", "spectrum"], ["squares"]),
        helper.make_node("Slice", ["squares", "zero", "half", "one"], ["real"]),
        helper.make_node("Slice", ["squares", "half", "all", "one"], ["imaginary"]),
        helper.make_node("Add", ["real", "imaginary"], ["power"]),
        helper.make_node("MatMul", ["power", "bank"], ["mel"], name="bank"),
        helper.make_node("Max", ["mel", "least"], ["raised"]),
        helper.make_node(last, ["raised"], ["features"]),
        helper.make_node("MatMul", ["features", "dense"], ["y"], name="dense"),
    ]
    ints = {"zero": 0, "half": 64, "all": 128, "one": 1}
    constants = [
        _weights("basis", 64, 128), _weights("dense", 32, 40),
        helper.make_tensor("bank", FLOAT, bank.shape, bank.astype(np.float32).tobytes(), raw=True),
        helper.make_tensor("least", FLOAT, [1], [1e-10]),
        *(helper.make_tensor(name, TensorProto.INT64, [1], [number]) for name, number in ints.items()),
    ]  # fmt: skip
    inputs = [helper.make_tensor_value_info("x", FLOAT, ["n", 64])]
    return model(nodes, inputs, [helper.make_tensor_value_info("y", FLOAT, None)], constants).SerializeToString()


def test_what_a_logarithm_is_taken_of_stays():
    full, banded = RNG.random((64, 32)), np.eye(64, 32) + np.eye(64, 32, 1)
    for form in ("int8", "int16"):
        rows = {
            row.name: row for row in webrnn.InferenceSession(_front_end("Log", full), weights=form).weight_report.rows
        }
        assert rows["basis"].reason == rows["bank"].reason == "a logarithm of its results is taken"
        assert rows["dense"].form == form
        rows = {
            row.name: row
            for row in webrnn.InferenceSession(_front_end("Sigmoid", full), weights=form).weight_report.rows
        }
        assert rows["basis"].form == rows["bank"].form == form
        rows = {
            row.name: row
            for row in webrnn.InferenceSession(_front_end("Relu", banded), weights=form).weight_report.rows
        }
        assert rows["bank"].reason == "most of its weights are zeros"
    halves = webrnn.InferenceSession(_front_end("Log", full), weights="f16").weight_report
    assert all(row.form == "f16" for row in halves.rows)


def test_bits_are_the_same_everywhere_even_where_nothing_became_small():
    inputs = [helper.make_tensor_value_info("x", FLOAT, ["n", 16])]
    outputs = [helper.make_tensor_value_info("y", FLOAT, None)]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"]), helper.make_node("Tanh", ["product"], ["y"])]
    data = model(nodes, inputs, outputs, [_weights("w", 16, 8)]).SerializeToString()
    x = RNG.standard_normal((50, 16)).astype(np.float32)
    results = {
        backend: webrnn.InferenceSession(data, backend, weights="int8").run(None, {"x": x})[0]
        for backend in (MAIN, UNFUSED)
    }
    assert np.array_equal(results[MAIN], results[UNFUSED])
    plain = {backend: webrnn.InferenceSession(data, backend).run(None, {"x": x})[0] for backend in (MAIN, UNFUSED)}
    assert not np.array_equal(plain[MAIN], plain[UNFUSED])
