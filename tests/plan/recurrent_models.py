"""Small recurrent ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def recurrent(
    op: str,
    hidden: int,
    inputs: int,
    outputs: list[str],
    seed: int = 0,
    direction: str = "forward",
    steps: int | str = "time",
) -> bytes:
    """x[steps, batch, inputs] through one recurrent op with random weights; `outputs` are some of Y, Y_h, Y_c."""
    rng = np.random.default_rng(seed)
    rows = GATES[op] * hidden
    weights = {"W": (1, rows, inputs), "R": (1, rows, hidden), "B": (1, 2 * rows)}
    arrays = [
        numpy_helper.from_array((rng.standard_normal(shape) / np.sqrt(hidden)).astype(np.float32), name)
        for name, shape in weights.items()
    ]
    made = ["Y", "Y_h", *(["Y_c"] if op == "LSTM" else [])]
    attributes: dict[str, Any] = {"linear_before_reset": 1} if op == "GRU" else {}
    names = [name if name in outputs else "" for name in made]
    node = helper.make_node(
        op, ["x", "W", "R", "B"], names, name="rnn", hidden_size=hidden, direction=direction, **attributes
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, "batch", inputs])
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph([node], op.lower(), [x], given, arrays)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()
