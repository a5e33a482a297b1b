"""Models whose gradients torch.autograd has written down: `in_torch.py` has each of them in PyTorch.

Each model has the input x [steps, batch, 3] and the output "loss", the mean of the squares of what its layers give.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from .arrays import HIDDEN, INPUTS, N_GATES, given

Made = tuple[list[NodeProto], list[tuple[str, Any]]]
"""Nodes that make y, and integers that they read."""


def onnx_model(name: str, batch: int, steps: int) -> bytes:
    nodes, integers = MODELS[name](batch)
    weights = [numpy_helper.from_array(array, key) for key, array in given(name, batch, steps).items() if key != "x"]
    weights += [numpy_helper.from_array(np.array(numbers, np.int64), key) for key, numbers in integers]
    nodes = [*nodes, helper.make_node("Mul", ["y", "y"], ["square"])]
    nodes.append(helper.make_node("ReduceMean", ["square"], ["loss"], keepdims=0))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["steps", "batch", INPUTS])]
    outputs = [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model.SerializeToString()


def _layer(op: str, x: str, y: str, prefix: str = "", **attrs: object) -> list[NodeProto]:
    """y is [steps, batch, directions * hidden]."""
    if op == "GRU":
        attrs["linear_before_reset"] = 1  # as PyTorch has it
    names = [x, f"{prefix}W", f"{prefix}R", f"{prefix}B"]
    return [
        helper.make_node(op, names, [f"{prefix}Y"], f"{prefix}cell", hidden_size=HIDDEN, **attrs),
        helper.make_node("Transpose", [f"{prefix}Y"], [f"{prefix}T"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", [f"{prefix}T", "keep"], [y]),
    ]


_KEEP = [("keep", [0, 0, -1])]


def _conv_gru_linear(batch: int) -> Made:
    return [
        helper.make_node("Transpose", ["x"], ["channels"], perm=[1, 2, 0]),
        helper.make_node("Conv", ["channels", "filters", "offsets"], ["seen"], pads=[1, 1], kernel_shape=[3]),
        helper.make_node("Relu", ["seen"], ["rectified"]),
        helper.make_node("Transpose", ["rectified"], ["frames"], perm=[2, 0, 1]),
        *_layer("GRU", "frames", "h"),
        helper.make_node("MatMul", ["h", "out"], ["product"]),
        helper.make_node("Add", ["product", "out_bias"], ["y"]),
    ], _KEEP


def _float(name: str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


def _step(x: str, before: str, after: str) -> list[NodeProto]:
    """A cell that ONNX does not have: after = gain * sigmoid(x u) * before + tanh(before v) * x u."""
    return [
        helper.make_node("MatMul", [x, "u"], ["xu"]),
        helper.make_node("MatMul", [before, "v"], ["hv"]),
        helper.make_node("Sigmoid", ["xu"], ["gate"]),
        helper.make_node("Mul", ["gate", before], ["kept"]),
        helper.make_node("Mul", ["kept", "gain"], ["weighed"]),
        helper.make_node("Tanh", ["hv"], ["bent"]),
        helper.make_node("Mul", ["bent", "xu"], ["new"]),
        helper.make_node("Add", ["weighed", "new"], [after]),
    ]


def _scan(batch: int) -> Made:
    body = helper.make_graph(
        [*_step("x_t", "h", "h_next"), helper.make_node("Identity", ["h_next"], ["h_out"])],
        "body",
        [_float("h"), _float("x_t")],
        [_float("h_next"), _float("h_out")],
    )
    return [
        helper.make_node("Expand", ["start", "sizes"], ["first"]),
        helper.make_node("Scan", ["first", "x"], ["last", "y"], "cell", num_scan_inputs=1, body=body),
    ], [("sizes", [batch, HIDDEN])]


def _loop(batch: int) -> Made:
    """A Loop of five steps, which reads frame 0 in each, and whose last state is the result."""
    body = helper.make_graph(
        [
            *_step("frame", "h", "h_next"),
            helper.make_node("Identity", ["goes_on"], ["still"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            _float("h"),
        ],
        [helper.make_tensor_value_info("still", TensorProto.BOOL, []), _float("h_next")],
    )
    return [
        helper.make_node("ReduceMean", ["x", "axes"], ["frame"], keepdims=0),
        helper.make_node("MatMul", ["frame", "u"], ["first"]),
        helper.make_node("Loop", ["count", "", "first"], ["y"], "cell", body=body),
    ], [("count", 5), ("axes", [0])]


MODELS = {
    **{op: lambda batch, op=op: (_layer(op, "x", "y"), _KEEP) for op in N_GATES},
    "bidirectional": lambda batch: (_layer("LSTM", "x", "y", direction="bidirectional"), _KEEP),
    "stacked": lambda batch: ([*_layer("GRU", "x", "h", "a_"), *_layer("GRU", "h", "y", "b_")], _KEEP),
    "conv_gru_linear": _conv_gru_linear,
    "scan": _scan,
    "loop": _loop,
}
