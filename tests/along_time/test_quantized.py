"""Convolutions and pooling of bytes along time: what is padded is a zero point, or the least number of the type."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import webrnn
from tests.backends import MAIN

RNG = np.random.default_rng(0)
CONSTANTS = {
    "x_scale": np.float32(0.1), "x_zero": np.uint8(3), "w_scale": np.float32(0.2), "w_zero": np.int8(0),
    "y_scale": np.float32(0.3), "y_zero": np.uint8(100), "w": RNG.integers(-9, 9, (5, 4, 3)).astype(np.int8),
}  # fmt: skip


def model(*nodes, made, inputs=(), shape=("batch", 4, "time")):
    infos = [helper.make_tensor_value_info("x", TensorProto.UINT8, list(shape)), *inputs]
    fed = {info.name for info in inputs}
    constants = [numpy_helper.from_array(array, name) for name, array in CONSTANTS.items() if name not in fed]
    outputs = [helper.make_tensor_value_info("y", made, None)]
    graph = helper.make_graph(list(nodes), "bytes", infos, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()


def qlinear(**attributes):
    operands = ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"]
    node = helper.make_node("QLinearConv", operands, ["c"], name="conv", **attributes)
    pool = helper.make_node("MaxPool", ["c"], ["y"], kernel_shape=[3], pads=[1, 1], name="pool")
    return model(node, pool, made=TensorProto.UINT8)


def integers(**attributes):
    node = helper.make_node("ConvInteger", ["x", "w", "x_zero"], ["y"], name="conv", **attributes)
    return model(node, made=TensorProto.INT32)


@pytest.mark.parametrize("make", [qlinear, integers])
@pytest.mark.parametrize("attributes", [{"pads": [2, 0]}, {"pads": [1, 1]}, {"pads": [4, 4], "dilations": [4]}])
@pytest.mark.parametrize("cut", [1, 2, 7, 19])
def test_bytes_by_frames_are_those_of_the_whole_run(make, attributes, cut):
    session = webrnn.InferenceSession(make(**attributes), backend=MAIN)
    x = RNG.integers(0, 256, (2, 4, 19)).astype(np.uint8)
    stream = session.stream(carry="internal")
    parts = [stream.step({"x": x[:, :, at : at + cut]})[0] for at in range(0, 19, cut)]
    made = np.concatenate([*parts, *stream.flush()], axis=2)
    assert np.array_equal(made, session.run(None, {"x": x})[0])


def test_a_zero_point_that_is_fed_is_refused():
    node = helper.make_node("ConvInteger", ["x", "w", "x_zero"], ["y"], name="conv", pads=[2, 0])
    fed = helper.make_tensor_value_info("x_zero", TensorProto.UINT8, [])
    session = webrnn.InferenceSession(model(node, made=TensorProto.INT32, inputs=[fed]), backend=MAIN)
    with pytest.raises(webrnn.ModelError, match=r"node 'conv'.*zero point") as raised:
        session.stream(carry="internal")
    assert raised.value.node == "conv"
