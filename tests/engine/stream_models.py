"""Small models with states for the tests of streams and pools, and what these share."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

import webrnn
from tests.backends import MAIN
from tests.onnx.models import N_GATES, floats, graph, initializer, integers, model

INPUTS, HIDDEN = 4, 5
CARRY = {
    "RNN": {"h_in": "h_out"},
    "GRU": {"h_in": "h_out"},
    "LSTM": {"h_in": "h_out", "c_in": "c_out"},
    "Scan": {"h_in": "h_out"},
}


def stateful(op: str, steps: int | str = "steps", batch: int | str = "batch", hidden: int = HIDDEN) -> ModelProto:
    """x, h_in (and c_in) -> y, h_out (and c_out)."""
    if op == "Scan":
        return _scan(steps, hidden)
    weights = _weights(op, hidden)
    states = ["h", "c"] if op == "LSTM" else ["h"]
    node = helper.make_node(
        op,
        ["x", "W", "R", "B", "", *(f"{name}_in" for name in states)],
        ["y", *(f"{name}_out" for name in states)],
        name="cell",
        hidden_size=hidden,
    )
    inputs = [floats("x", [steps, batch, INPUTS]), *(floats(f"{name}_in", [1, batch, hidden]) for name in states)]
    outputs = [floats("y", [steps, 1, batch, hidden]), *(floats(f"{name}_out", [1, batch, hidden]) for name in states)]
    return model([node], inputs, outputs, weights)


def hidden_state(op: str, hidden: int = HIDDEN, with_final: bool = False) -> ModelProto:
    """x -> y (and y_h): the state is nowhere to be seen."""
    outputs = ["y", "y_h"] if with_final else ["y"]
    node = helper.make_node(op, ["x", "W", "R", "B"], outputs, name="cell", hidden_size=hidden)
    shapes: dict[str, list[Any]] = {"y": ["steps", 1, "batch", hidden], "y_h": [1, "batch", hidden]}
    return model(
        [node],
        [floats("x", ["steps", "batch", INPUTS])],
        [floats(name, shapes[name]) for name in outputs],
        _weights(op, hidden),
    )


def _weights(op: str, hidden: int) -> list[TensorProto]:
    rng = np.random.default_rng(3)
    gates = N_GATES[op] * hidden
    shapes = {"W": (1, gates, INPUTS), "R": (1, gates, hidden), "B": (1, 2 * gates)}
    return [initializer(name, rng.normal(0, 0.5, shape).astype(np.float32)) for name, shape in shapes.items()]


def _scan(steps: int | str, hidden: int) -> ModelProto:
    """A gated sum in plain ops; one state of [batch, hidden]."""
    rng = np.random.default_rng(4)
    body = graph(
        [
            helper.make_node("MatMul", ["x_t", "W"], ["drive"]),
            helper.make_node("Tanh", ["drive"], ["new"]),
            helper.make_node("Sigmoid", ["h"], ["gate"]),
            helper.make_node("Mul", ["gate", "h"], ["kept"]),
            helper.make_node("Add", ["kept", "new"], ["h_next"]),
            helper.make_node("Exp", ["h_next"], ["y_t"]),
        ],
        [floats("h", None), floats("x_t", None)],
        [floats("h_next", None), floats("y_t", None)],
    )
    node = helper.make_node("Scan", ["h_in", "x"], ["h_out", "y"], num_scan_inputs=1, body=body, name="loop")
    return model(
        [node],
        [floats("x", [steps, "batch", INPUTS]), floats("h_in", ["batch", hidden])],
        [floats("y", [steps, "batch", hidden]), floats("h_out", ["batch", hidden])],
        [initializer("W", rng.normal(0, 0.5, (INPUTS, hidden)).astype(np.float32))],
    )


def counter() -> ModelProto:
    """A state of int64, and one of float that has another name for its axis."""
    one = initializer("one", np.array([1], np.int64))
    return model(
        [
            helper.make_node("Add", ["count_in", "one"], ["count_out"]),
            helper.make_node("Add", ["sum_in", "x"], ["sum_out"]),
            helper.make_node("Mul", ["sum_out", "x"], ["y"]),
        ],
        [floats("x", ["n", 2]), integers("count_in", [1]), floats("sum_in", ["n", 2])],
        [floats("y", ["n", 2]), integers("count_out", [1]), floats("sum_out", ["n", 2])],
        [one],
    )


def lookup() -> ModelProto:
    """A row of a table, found by the feed when it runs, is added to the state."""
    table = initializer("table", np.arange(12, dtype=np.float32).reshape(4, 3))
    return model(
        [
            helper.make_node("Gather", ["table", "index"], ["row"], name="pick"),
            helper.make_node("Add", ["sum_in", "row"], ["sum_out"]),
            helper.make_node("Neg", ["sum_out"], ["y"]),
        ],
        [integers("index", [1]), floats("sum_in", [1, 3])],
        [floats("y", [1, 3]), floats("sum_out", [1, 3])],
        [table],
    )


def growing() -> ModelProto:
    """A state that is one row longer after each step."""
    return model(
        [
            helper.make_node("Concat", ["past_in", "x"], ["past_out"], axis=0),
            helper.make_node("ReduceSum", ["past_out"], ["y"], keepdims=0),
        ],
        [floats("x", [1, 2]), floats("past_in", ["past", 2])],
        [floats("y", []), floats("past_out", ["longer", 2])],
    )


def feed(steps: int, batch: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((steps, batch, INPUTS)).astype(np.float32)


def session(proto, backend=MAIN, **options):
    return webrnn.InferenceSession(proto.SerializeToString(), backend=backend, **options)


def gru(backend=MAIN, **options):
    return session(stateful("GRU"), backend).stream(**options)


def bits(arrays):
    return [np.asarray(array).tobytes() for array in arrays]


def assert_same_state(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype
        np.testing.assert_array_equal(a[name], b[name])
