import os
import subprocess
import sys

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.onnx.models import bools, floats, graph, initializer, integers, model, recurrent

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
    with pytest.raises(webrnn.ShapeError, match=r"input 'b'.*axis 0 is 3, not 2"):
        session(sum_model()).run(None, {"a": np.ones((2, 2), np.float32), "b": np.ones((3, 2), np.float32)})


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


@pytest.mark.parametrize(
    ("declared", "given", "expected"),
    [
        (integers("b", []), 3, np.int64(3)),
        (integers("b", [1]), 3, np.int64([3])),
        (integers("b", [2]), [3, 4], np.int64([3, 4])),
        (floats("b", [1, 2]), 2, np.float32([[2, 2]])),
        (floats("b", []), 0.1, np.float32(0.1)),
        (bools("b", [1]), True, np.array([True])),
        (integers("b", None), 3, np.int64(3)),
    ],
)
def test_numbers_as_fixed_inputs(declared, given, expected):
    proto = model([helper.make_node("Identity", ["b"], ["y"])], [declared], [integers("y", None)])
    (y,) = session(proto, fixed={"b": given}).run(None, {})
    assert y.dtype == expected.dtype
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("declared", "given", "message"),
    [
        (integers("b", []), 0.5, "is 0.5, which is no int64"),
        (integers("b", []), "fast", "is 'fast', which is no int64"),
        (integers("b", []), 1 << 70, "which is no int64"),
        (integers("b", []), True, "is True, which is no int64"),
        (floats("b", []), 1e300, "is 1e[+]300, which is no float"),
        (bools("b", []), 1, "is 1, which is no bool"),
        (integers("b", ["n"]), 3, r"is one number, the model declares \['n'\]"),
        (integers("b", [3]), [1, 2], "axis 0 is 2, not 3"),
        (integers("b", []), [3], "has 1 axes, the model declares 0"),
        (integers("b", []), [[1], [2, 3]], "not an array"),
        (integers("b", []), None, "not an array|which is no int64"),
    ],
)
def test_numbers_that_do_not_fit_a_fixed_input(declared, given, message):
    proto = model([helper.make_node("Identity", ["b"], ["y"])], [declared], [integers("y", None)])
    with pytest.raises(webrnn.ShapeError, match=f"fixed input 'b' .*({message})"):
        session(proto, fixed={"b": given})


def test_a_fixed_array_is_the_sessions_own():
    b = np.full((1, 2), 5, np.float32)
    s = session(sum_model(), fixed={"b": b})
    b += 1
    np.testing.assert_array_equal(s.run(None, {"a": np.zeros((1, 2), np.float32)})[0], [[5, 5]])


def transposed_twice():
    nodes = [helper.make_node("Transpose", [old], [new], perm=[1, 0]) for old, new in (("x", "a"), ("a", "b"))]
    nodes.append(helper.make_node("Softmax", ["b"], ["y"]))
    return model(nodes, [floats("x", [None, 2])], [floats("y", ["rows", "columns"])])


def test_passes_run_once_when_a_model_is_opened():
    assert [node.op for node in session(transposed_twice()).graph.nodes] == ["Softmax"]
    untouched = session(transposed_twice(), disable=["merge_layout"])
    assert [node.op for node in untouched.graph.nodes] == ["Transpose", "Transpose", "Softmax"]


def test_no_pass_at_all():
    s = session(transposed_twice(), disable=["all"])
    assert [node.op for node in s.graph.nodes] == ["Transpose", "Transpose", "Softmax"]
    assert s.graph.nodes[0].outputs[0].shape is None


@pytest.mark.parametrize(
    ("disable", "message"), [(["merge_comon"], "no pass merge_comon; there are .*merge_common"), ("all", "list of")]
)
def test_passes_that_there_are_not(disable, message):
    with pytest.raises(webrnn.OptionError, match=message):
        session(transposed_twice(), disable=disable)


@pytest.mark.parametrize("disable", [[], ["all"]])
def test_passes_do_not_change_what_the_model_declares(disable):
    s = session(transposed_twice(), disable=disable)
    assert s.get_inputs()[0].shape == [None, 2]
    assert s.get_outputs()[0].shape == ["rows", 2]
    assert s.run(None, {"x": np.zeros((3, 2), np.float32)})[0].shape == (3, 2)
    with pytest.raises(webrnn.ShapeError, match=r"the model declares \[None, 2\]"):
        s.run(None, {"x": np.zeros((3, 4), np.float32)})


def test_environment_switches_passes_off(tmp_path):
    (tmp_path / "m.onnx").write_bytes(transposed_twice().SerializeToString())
    code = f"import webrnn; print(len(webrnn.InferenceSession({str(tmp_path / 'm.onnx')!r}).graph.nodes))"
    counts = []
    for names in ("", "merge_layout", "all"):
        environment = {**os.environ, "WEBRNN_DISABLE": names}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        counts.append(int(done.stdout))
    assert counts == [1, 3, 3]


def test_an_error_in_what_left_a_loop_names_the_node():
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"], name="project"),
        helper.make_node("Add", ["xw", "h"], ["n"]),
    ]
    body = graph(nodes, [floats("h", [2]), floats("x", [3])], [floats("n", [2])])
    loop = helper.make_node("Scan", ["h0", "xs"], ["h_n"], body=body, num_scan_inputs=1, name="loop")
    inputs = [floats("h0", [2]), floats("xs", ["steps", 3]), floats("w", [None, 2])]
    proto = model([loop], inputs, [floats("h_n", [2])])
    feeds = {"h0": np.zeros(2, np.float32), "xs": np.ones((4, 3), np.float32), "w": np.ones((5, 2), np.float32)}
    for disable in ([], ["all"]):
        with pytest.raises(webrnn.ShapeError, match=r"node 'loop/project' .*inner dimension"):
            session(proto, disable=disable).run(None, feeds)


def test_a_constant_result_is_the_callers_own():
    nodes = [helper.make_node("Shape", ["x"], ["y"])]
    s = session(model(nodes, [floats("x", [2, 3])], [integers("y", [2])]))
    assert not s.graph.nodes
    (y,) = s.run(None, {"x": np.zeros((2, 3), np.float32)})
    y += 100
    np.testing.assert_array_equal(s.run(None, {"x": np.zeros((2, 3), np.float32)})[0], [2, 3])


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
