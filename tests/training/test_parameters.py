"""Which constants of a model become parameters, wherever they are in it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import helper
from onnx.parser import parse_model

import webrnn
from tests.onnx.models import floats, initializer, model, recurrent
from tests.training import models
from webrnn.build import torch
from webrnn.ir import Graph
from webrnn.training.parameters import open_model, redrawn


def same_results(graph: Graph, parameters: dict[str, np.ndarray], source: webrnn.InferenceSession) -> None:
    """An open model with its own parameters is the model."""
    rng = np.random.default_rng(0)
    feeds = {
        value.name: rng.standard_normal([2 if not isinstance(size, int) else size for size in value.shape]).astype("f")
        for value in source.inputs
    }
    found = webrnn.InferenceSession(graph).run(None, {**feeds, **parameters})
    for ours, theirs in zip(found, source.run(None, feeds), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_initializers_of_recurrent_layers(op: str) -> None:
    data = recurrent(op, direction="bidirectional").SerializeToString()
    found = open_model(data)
    assert list(found.parameters) == ["W", "R", "B"]
    assert found.source == data
    same_results(found.graph, found.parameters, webrnn.InferenceSession(data))


def scan_model() -> bytes:
    """A loop whose body has a weight of its own, and one from outside."""
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["h", "inner"], ["scaled"]),
            helper.make_node("Mul", ["x_t", "outer"], ["given"]),
            helper.make_node("Add", ["scaled", "given"], ["h_next"]),
            helper.make_node("Identity", ["h_next"], ["y_t"]),
        ],
        "step",
        [floats("h", [2]), floats("x_t", [2])],
        [floats("h_next", [2]), floats("y_t", [2])],
        [initializer("inner", np.float32([0.5, 0.6]))],
    )
    node = helper.make_node("Scan", ["h0", "x"], ["last", "y"], body=body, num_scan_inputs=1)
    constants = [initializer("outer", np.float32([2, 3])), initializer("h0", np.float32([1, 1]))]
    return model([node], [floats("x", ["n", 2])], [floats("y", ["n", 2])], constants).SerializeToString()


def test_initializers_of_sub_graphs() -> None:
    found = open_model(scan_model(), ["inner", "outer"])
    assert sorted(found.parameters) == ["inner", "outer"]
    same_results(found.graph, found.parameters, webrnn.InferenceSession(scan_model()))
    trainer = webrnn.trainer(scan_model(), "mse", wrt=["inner"], lr=0.01)
    x = np.ones((3, 2), np.float32)
    losses = [trainer.step({"x": x, "target": np.full((3, 2), 2, np.float32)}) for _ in range(40)]
    assert losses[-1] < losses[0]
    saved = webrnn.InferenceSession(trainer.onnx()).run(None, {"x": x})[0]
    np.testing.assert_allclose(saved, trainer.predict({"x": x})[0], rtol=1e-6)


def test_constants_of_nets_that_were_built() -> None:
    """Bodies of loops have copies of constants: one array is one parameter. What loops start from is none."""
    rng = np.random.default_rng(1)
    shared = rng.standard_normal((4, 4)).astype(np.float32)
    net = torch({"cell.weight_ih": rng.standard_normal((4, 4)), "cell.weight_hh": rng.standard_normal((4, 4))})
    factor = net.constant(shared, name="factor")

    def step(x, h):
        h = net.rnn_cell("cell", x @ factor, h)
        return h @ factor, h

    y, _ = net.loop(step, net.input("x", ("time", 1, 4)) @ factor, [net.constant(np.zeros((1, 4), np.float32))])
    net.output("y", y)
    found = open_model(net)
    assert sum(array.shape == (4, 4) and np.array_equal(array, shared) for array in found.parameters.values()) == 1
    assert not any(array.shape == (1, 4) for array in found.parameters.values())
    same_results(found.graph, found.parameters, net.session())
    assert open_model(net, ["const"]).parameters["const"].shape == (1, 4)  # unless somebody names it


def test_constants_in_branches() -> None:
    data = parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[2] x, bool c) => (float[2] y) <float[2] w = {2, 3}> {
            y = If (c) <
                then_branch = a () => (float[2] p) { p = Mul(x, w) },
                else_branch = b () => (float[2] q) { q = Add(x, w) }
            >
        }""").SerializeToString()
    from webrnn.onnx.reader import read_model

    graph = read_model(data)
    for found in (open_model(data), open_model(graph)):
        assert list(found.parameters) == ["w"]
        session = webrnn.InferenceSession(found.graph)
        x, w = np.float32([1, 1]), np.float32([5, 7])
        for condition, expected in ((True, [5, 7]), (False, [6, 8])):
            assert np.array_equal(session.run(None, {"x": x, "c": np.array(condition), "w": w})[0], expected)


def test_files_of_effects_learn_too() -> None:
    layers = [
        {"type": "dense", "activation": "tanh", "shape": [None, None, 2], "weights": [[[0.5, 0.25]], [0.0, 0.1]]},
        {"type": "dense", "activation": "", "shape": [None, None, 1], "weights": [[[1.0], [0.5]], [0.0]]},
    ]
    data = json.dumps({"in_shape": [None, None, 1], "layers": layers}).encode()
    trainer = webrnn.trainer(data, "mse", "adam", lr=0.02)
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    name = next(iter(trainer.inputs))
    losses = [trainer.step({name: x, "target": np.tanh(2 * x)}) for _ in range(60)]
    assert losses[-1] < losses[0] / 3
    with pytest.raises(webrnn.OptionError, match="not from an ONNX file"):
        trainer.onnx()


def test_names_and_patterns() -> None:
    data = models.classifier().SerializeToString()
    assert list(open_model(data, ["V"]).parameters) == ["V"]
    assert sorted(open_model(data, ["[A-Z]"]).parameters) == ["B", "R", "V", "W"]
    with pytest.raises(webrnn.OptionError, match="no float constant 'X\\*'; it has"):
        open_model(data, ["X*"])
    with pytest.raises(webrnn.OptionError, match="'axes' is of type int64; float32 and float64 learn"):
        open_model(data, ["axes"])


def test_halves_stay_as_they_are() -> None:
    weights = [initializer("h", np.float16([1, 2])), initializer("w", np.float32([1, 2]))]
    nodes = [
        helper.make_node("Cast", ["h"], ["f"], to=1),
        helper.make_node("Mul", ["f", "w"], ["fw"]),
        helper.make_node("Mul", ["x", "fw"], ["y"]),
    ]
    data = model(nodes, [floats("x", [2])], [floats("y", [2])], weights).SerializeToString()
    assert list(open_model(data).parameters) == ["w"]
    with pytest.raises(webrnn.OptionError, match="'h' is of type float16"):
        open_model(data, ["h"])


def test_a_closed_parameter_is_a_constant_again() -> None:
    data = models.linear()
    found = open_model(data)
    found.close(["b"])
    assert list(found.parameters) == ["W"]
    same_results(found.graph, found.parameters, webrnn.InferenceSession(data))


def test_parameters_are_drawn_anew() -> None:
    given = {"w": np.float32([[1, 2], [3, 6]]), "ones": np.ones(3, np.float32), "none": np.zeros((0, 2), np.float32)}
    found = redrawn(given, 5)
    assert not np.array_equal(found["w"], given["w"])
    assert found["w"].dtype == np.float32
    assert np.array_equal(found["ones"], given["ones"])
    assert found["none"].shape == (0, 2)
