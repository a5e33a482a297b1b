"""A stack of causal, dilated convolutions with residual connections, as exporters write it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper


def tcn(
    channels: int, dilations: Sequence[int], kernel: int = 3, *, group: int = 1, batch: int | str = "n", seed: int = 0
) -> ModelProto:
    """x[batch, channels, t] -> y"""
    rng = np.random.default_rng(seed)
    nodes, weights, value = [], [], "x"
    for layer, dilation in enumerate(dilations):
        shape = (channels, channels // group, kernel)
        for name, array in {"w": rng.standard_normal(shape) / 8, "b": rng.standard_normal(channels) / 8}.items():
            weights.append(numpy_helper.from_array(array.astype(np.float32), f"{name}{layer}"))
        made = "y" if layer == len(dilations) - 1 else f"y{layer}"
        steps = {"dilations": [dilation], "pads": [(kernel - 1) * dilation, 0], "group": group}
        nodes += [
            helper.make_node("Conv", [value, f"w{layer}", f"b{layer}"], [f"c{layer}"], f"conv{layer}", **steps),
            helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"]),
            helper.make_node("Add", [value, f"r{layer}"], [made]),
        ]
        value = made
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, channels, "t"]) for name in "xy"]
    graph = helper.make_graph(nodes, "tcn", ports[:1], ports[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
