"""webrnn through `onnx.backend.base`, as other tools would use it."""

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from tests.conformance.suite import node_cases
from webrnn import onnx_backend


def test_run_model():
    case = node_cases()["test_gru_defaults"]
    ((inputs, expected),) = case.data_sets
    outputs = onnx_backend.run_model(case.model, inputs)
    np.testing.assert_allclose(outputs.Y_h, expected[0], rtol=1e-5)


def test_run_node():
    node = helper.make_node("Add", ["a", "b"], ["c"])
    (c,) = onnx_backend.run_node(node, [np.float32([1]), np.float32([2])])
    assert c == [3]


def test_types_that_numpy_lacks():
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)
    (y,) = onnx_backend.run_node(node, [np.float32([1.5, -2])])
    assert y.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(y.astype(np.float32), [1.5, -2])


def test_devices():
    assert onnx_backend.supports_device("CPU")
    assert not onnx_backend.supports_device("CUDA:0")
