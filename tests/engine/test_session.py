import subprocess
import sys

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.onnx.models import floats, initializer, integers, model, recurrent

X = np.ones((3, 2, 4), np.float32)


def session(proto, **options):
    return webrnn.InferenceSession(proto.SerializeToString(), **options)


def sum_model():
    node = helper.make_node("Add", ["a", "b"], ["y"], name="sum")
    return model([node], [floats("a", ["n", 2]), floats("b", ["n", 2])], [floats("y", ["n", 2])])


def test_signature_is_that_of_onnxruntime():
    proto = model([helper.make_node("Shape", ["x"], ["y"])], [floats("x", ["n", 2, None])], [integers("y", [3])])
    item = session(proto).get_inputs()[0]
    assert (item.name, item.shape, item.type) == ("x", ["n", 2, None], "tensor(float)")
    assert session(proto).get_outputs()[0].type == "tensor(int64)"


@pytest.mark.parametrize("source", [bytes, bytearray, "path", "text"])
def test_model_from_bytes_or_path(source, tmp_path):
    data = recurrent("GRU").SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data)
    given = {"path": tmp_path / "m.onnx", "text": str(tmp_path / "m.onnx")}.get(source) or source(data)
    y, y_h = webrnn.InferenceSession(given, providers=["CPUExecutionProvider"]).run(None, {"X": X})
    assert y.shape == (3, 1, 2, 5)
    np.testing.assert_array_equal(y[-1], y_h)


def test_outputs_by_name():
    s = session(recurrent("LSTM"))
    y_c, y = s.run(["Y_c", "Y"], {"X": X})
    assert y_c.shape == (1, 2, 5)
    np.testing.assert_array_equal(y, s.run(["Y"], {"X": X})[0])


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "input 'X' is missing"),
        ({"X": X, "Z": X}, "no input 'Z'"),
        ({"X": X.astype(np.float64)}, "input 'X' is float64"),
        ({"X": X[0]}, r"input 'X' has shape \(2, 4\)"),
        ({"X": X[:, :, :3]}, "axis 2 is 3, not 4"),
        ({"X": "hello"}, "input 'X'"),
        ({"X": None}, "input 'X'"),
        ({"X": [[1.0], [2.0, 3.0]]}, "input 'X'"),
    ],
)
def test_wrong_feeds(feeds, message):
    with pytest.raises(webrnn.ShapeError, match=message):
        session(recurrent("RNN")).run(None, feeds)


def test_named_sizes_agree_between_inputs():
    with pytest.raises(webrnn.ShapeError, match=r"input 'b'.*axis 0 is 3, not 1"):
        session(sum_model()).run(None, {"a": np.ones((1, 2), np.float32), "b": np.ones((3, 2), np.float32)})


def test_unknown_output():
    with pytest.raises(webrnn.ShapeError, match="no output 'Z'"):
        session(recurrent("RNN")).run(["Z"], {"X": X})


def test_fixed_input_is_a_constant():
    s = session(sum_model(), fixed={"b": np.full((1, 2), 5, np.float32)})
    assert [item.name for item in s.get_inputs()] == ["a"]
    np.testing.assert_array_equal(s.run(None, {"a": np.ones((1, 2), np.float32)})[0], [[6, 6]])


@pytest.mark.parametrize("fixed", [{"z": X}, {"b": np.ones((1, 2))}, {"b": np.ones(2, np.float32)}])
def test_wrong_fixed_inputs(fixed):
    with pytest.raises(webrnn.ShapeError, match="fixed"):
        session(sum_model(), fixed=fixed)


def test_backends_that_are_not_there():
    with pytest.raises(webrnn.BackendError, match="'quantum' is not one of auto"):
        session(sum_model(), backend="quantum")


@pytest.mark.parametrize("op", ["Identity", "Transpose", "Reshape", "Flatten"])
def test_results_are_the_callers_own(op):
    inputs = ["x", "shape"] if op == "Reshape" else ["x"]
    nodes = [helper.make_node(op, inputs, ["y"]), helper.make_node("Identity", ["y"], ["z"])]
    constants = [initializer("shape", np.array([2, 2], np.int64)), initializer("w", np.ones(2, np.float32))]
    outputs = [floats("y", None), floats("z", None), floats("x", None), floats("w", None)]
    s = session(model(nodes, [floats("x", [2, 2])], outputs, constants))
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    results = s.run(None, {"x": x})
    for index, result in enumerate(results):
        assert result.flags.writeable
        assert not np.shares_memory(result, x)
        assert not any(np.shares_memory(result, other) for other in results[:index])
        result += 100
    for changed, again in zip(results, s.run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(changed - 100, again)


def test_runs_do_not_share_state():
    s = session(recurrent("GRU"))
    np.testing.assert_array_equal(s.run(None, {"X": X})[0], s.run(None, {"X": X})[0])


def test_import_is_light():
    """`import webrnn` reads neither numpy nor onnx."""
    code = "import sys, webrnn; print({'numpy', 'onnx', 'ml_dtypes'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
