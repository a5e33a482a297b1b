"""Models that tests train."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from tests.onnx.models import floats, initializer, model
from tests.training.cases import FEATURES, HIDDEN, KINDS, task_weights
from webrnn.build import torch
from webrnn.build.net import Net


def built_classifier() -> Net:
    """The task's model from its weights: x [batch, time, features] to scores [batch, kinds]."""
    net = torch(task_weights())
    y, _ = net.gru("gru", net.input("x", ("batch", "time", FEATURES)), batch_first=True)
    net.output("scores", net.linear("out", y[:, -1]))
    return net


def _onnx_gates(array: np.ndarray) -> np.ndarray:
    """PyTorch's order of gates, r z n, to ONNX's, z r n."""
    r, z, n = np.split(array, 3)
    return np.concatenate([z, r, n])


def torch_gates(array: np.ndarray) -> np.ndarray:
    z, r, n = np.split(array, 3)
    return np.concatenate([r, z, n])


def classifier() -> onnx.ModelProto:
    """The same as ONNX."""
    weights = task_weights()
    w, r, w_bias, r_bias = (
        _onnx_gates(weights[f"gru.{name}_l0"]) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    nodes = [
        helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
        helper.make_node("GRU", ["steps", "W", "R", "B"], ["", "h"], hidden_size=HIDDEN, linear_before_reset=1),
        helper.make_node("Squeeze", ["h", "axes"], ["last"]),
        helper.make_node("Gemm", ["last", "V", "c"], ["scores"], transB=1),
    ]
    constants = {
        "W": w[None], "R": r[None], "B": np.concatenate([w_bias, r_bias])[None], "axes": np.int64([0]),
        "V": weights["out.weight"], "c": weights["out.bias"],
    }  # fmt: skip
    return model(
        nodes,
        [floats("x", ["batch", "time", FEATURES])],
        [floats("scores", ["batch", KINDS])],
        [initializer(name, array) for name, array in constants.items()],
    )


def torch_weights(parameters: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Parameters of the ONNX model under PyTorch's names."""
    w_bias, r_bias = np.split(parameters["B"][0], 2)
    gates = {"weight_ih": parameters["W"][0], "weight_hh": parameters["R"][0], "bias_ih": w_bias, "bias_hh": r_bias}
    found = {f"gru.{name}_l0": torch_gates(array) for name, array in gates.items()}
    return {**found, "out.weight": parameters["V"], "out.bias": parameters["c"]}


def linear(n_inputs: int = 3, n_outputs: int = 2) -> bytes:
    """y = x W + b, both initializers."""
    rng = np.random.default_rng(0)
    constants = [
        initializer("W", rng.standard_normal((n_inputs, n_outputs)).astype(np.float32)),
        initializer("b", np.zeros(n_outputs, np.float32)),
    ]
    nodes = [helper.make_node("MatMul", ["x", "W"], ["xw"]), helper.make_node("Add", ["xw", "b"], ["y"])]
    ends = [floats("x", ["batch", n_inputs])], [floats("y", ["batch", n_outputs])]
    return model(nodes, *ends, constants).SerializeToString()


def tagger(n_inputs: int = 3, hidden: int = 6, n_labels: int = 4) -> bytes:
    """x [time, batch, inputs] to scores of labels for each frame, [time, batch, labels], by an LSTM."""
    rng = np.random.default_rng(3)
    shapes = {
        "W": (1, 4 * hidden, n_inputs),
        "R": (1, 4 * hidden, hidden),
        "B": (1, 8 * hidden),
        "V": (hidden, n_labels),
    }
    constants = [initializer(name, rng.uniform(-0.4, 0.4, shape).astype(np.float32)) for name, shape in shapes.items()]
    nodes = [
        helper.make_node("LSTM", ["x", "W", "R", "B"], ["y"], hidden_size=hidden),
        helper.make_node("Squeeze", ["y", "axes"], ["frames"]),
        helper.make_node("MatMul", ["frames", "V"], ["scores"]),
    ]
    ends = [floats("x", ["time", "batch", n_inputs])], [floats("scores", ["time", "batch", n_labels])]
    return model(nodes, *ends, [*constants, initializer("axes", np.int64([1]))]).SerializeToString()
