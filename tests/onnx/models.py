"""Small models for the tests, built with the `onnx` package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

N_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def floats(name: str, shape: Sequence[int | str | None] | None) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def integers(name: str, shape: Sequence[int | str | None] | None) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.INT64, shape)


def bools(name: str, shape: Sequence[int | str | None] | None) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.BOOL, shape)


def initializer(name: str, array: np.ndarray) -> TensorProto:
    return numpy_helper.from_array(array, name)


def graph(
    nodes: Sequence[NodeProto], inputs: Any, outputs: Any, initializers: Sequence[TensorProto] = ()
) -> GraphProto:
    return helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(initializers))


def model(nodes: Sequence[NodeProto], inputs: Any, outputs: Any, initializers: Any = (), opset: int = 17) -> ModelProto:
    return model_of(graph(nodes, inputs, outputs, initializers), opset)


def model_of(main: GraphProto, opset: int = 17) -> ModelProto:
    return helper.make_model(main, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def recurrent(
    op: str,
    steps: int | str = 3,
    batch: int | str = 2,
    inputs: int = 4,
    hidden: int = 5,
    seed: int = 0,
    weight_shapes: dict[str, tuple[int, ...]] | None = None,
    **attrs: Any,
) -> ModelProto:
    """X -> op -> Y, Y_h (and Y_c) with bias, all weights constant."""
    rng = np.random.default_rng(seed)
    directions = 2 if attrs.get("direction") == "bidirectional" else 1
    gates = N_GATES[op] * hidden
    shapes = {
        "W": (directions, gates, inputs),
        "R": (directions, gates, hidden),
        "B": (directions, 2 * gates),
        **(weight_shapes or {}),
    }
    weights = [initializer(name, rng.normal(0, 0.5, shape).astype(np.float32)) for name, shape in shapes.items()]
    outputs = ["Y", "Y_h", "Y_c"][: 3 if op == "LSTM" else 2]
    node = helper.make_node(op, ["X", "W", "R", "B"], outputs, name="cell", hidden_size=hidden, **attrs)
    return model([node], [floats("X", [steps, batch, inputs])], [floats(name, None) for name in outputs], weights)
