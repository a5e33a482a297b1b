"""onnxruntime's C API: every element type goes in and comes out, and outputs of shapes that the file does not say."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from webrnn.bench.case import Case
from webrnn.bench.onnxruntime_c import ELEMENT_TYPES, OnnxruntimeRunner
from webrnn.errors import BackendError

pytest.importorskip("onnxruntime")


def model(op, kind, shape, out_shape=None, **attributes):
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], **attributes)],
        "m",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, shape if out_shape is None else out_shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


@pytest.mark.parametrize("name", ELEMENT_TYPES)
def test_all_element_types(name):
    x = np.arange(6).astype(name).reshape(2, 3)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    assert ELEMENT_TYPES[name] == kind
    runner = OnnxruntimeRunner(Case("m", model("Transpose", kind, [2, 3], [3, 2]), {"x": x}, [x.T], ["y"]))
    [y] = runner.results()
    np.testing.assert_array_equal(y, x.T)
    assert y.dtype == x.dtype
    assert runner.note == ""
    assert runner.seconds(2) >= 0
    runner.close()


def test_outputs_whose_shape_the_file_does_not_say():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    declared = model("Relu", TensorProto.FLOAT, ["n", "m"], ["n", 7])
    runner = OnnxruntimeRunner(Case("m", declared, {"x": x}, [x], ["y"]))
    for _ in range(3):
        [y] = runner.results()
        np.testing.assert_array_equal(y, x)
    assert "made anew" in runner.note
    assert runner.seconds(2) >= 0
    runner.close()


def test_what_it_refuses_is_told():
    x = np.zeros((2, 3), np.complex64)
    data = model("Relu", TensorProto.FLOAT, [2, 3])
    with pytest.raises(BackendError, match="complex64"):
        OnnxruntimeRunner(Case("m", data, {"x": x}, [x], ["y"]))
    with pytest.raises(BackendError, match="onnxruntime: "):
        OnnxruntimeRunner(Case("m", data, {"x": np.zeros((4, 3), np.float32)}, [np.zeros((4, 3), np.float32)], ["y"]))
