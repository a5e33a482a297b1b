"""Weights that become inputs."""

import numpy as np

import webrnn
from webrnn import build
from webrnn.gradients.parameters import open_model

from .arrays import given
from .models import onnx_model


def _built():
    rng = np.random.default_rng(0)
    shapes = {
        "gru.weight_ih_l0": (12, 3), "gru.weight_hh_l0": (12, 4), "gru.bias_ih_l0": (12,), "gru.bias_hh_l0": (12,),
        "out.weight": (1, 4), "out.bias": (1,), "cell.weight": (3, 3), "cell.bias": (3,),
    }  # fmt: skip
    net = build.torch({name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()})

    def step(x, state):
        y = net.tanh(net.linear("cell", x) + state)
        return y, y

    h, _ = net.loop(step, net.input("x", ("time", 1, 3)), [net.constant(np.zeros((1, 3), np.float32))])
    net.output("y", net.linear("out", net.gru("gru", h)[0]))
    return net.graph()


def test_initializers_of_a_model():
    case = "scan", 1, 7
    opened = open_model(onnx_model(*case), None, None)
    assert set(opened.weights) == set(given(*case)) - {"x"}
    assert {value.name for value in opened.graph.inputs} == set(given(*case))


def test_weights_of_a_graph_and_of_the_loops_in_it():
    """The states that loops start from are none."""
    opened = open_model(_built(), None, None)
    assert set(opened.weights) == {"gru_WT", "gru_RT", "gru_B_1", "gru_B_2", "cell_WT", "cell_B", "out_WT", "out_B"}


def test_gradients_of_a_graph_beside_differences():
    graph = _built()
    opened = open_model(graph, None, None)
    made = webrnn.gradient(graph, "mse")
    rng = np.random.default_rng(1)
    feeds = {
        "x": rng.normal(size=(6, 1, 3)).astype(np.float32),
        "target": rng.normal(size=(6, 1, 1)).astype(np.float32),
    }
    names = [value.name for value in made.outputs]
    found = dict(zip(names, webrnn.InferenceSession(made, backend="numpy").run(None, feeds), strict=True))
    run = webrnn.InferenceSession(opened.graph, backend="numpy").run
    for name, weight in opened.weights.items():
        direction = rng.normal(size=weight.shape).astype(np.float32)
        ends = []
        for sign in (1, -1):
            moved = {**opened.weights, name: weight + np.float32(sign * 1e-2) * direction}
            (y,) = run(None, {"x": feeds["x"], **moved})
            ends.append(float(((y - feeds["target"]) ** 2).mean(dtype=np.float64)))
        slope = (ends[0] - ends[1]) / 2e-2
        np.testing.assert_allclose((found[f"{name}_grad"] * direction).sum(), slope, rtol=2e-2, atol=2e-3, err_msg=name)


def test_a_weight_in_both_branches_of_an_if():
    from onnx import helper

    from tests.onnx.models import bools, floats, graph, initializer, model

    branches = [graph([helper.make_node(op, ["x", "w"], ["r"])], [], [floats("r", None)]) for op in ("Mul", "Add")]
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("ReduceSum", ["y"], ["loss"], keepdims=0),
    ]
    proto = model(
        nodes, [floats("x", [2]), bools("c", [])], [floats("loss", [])], [initializer("w", np.float32([5, 6]))]
    ).SerializeToString()
    session = webrnn.InferenceSession(webrnn.gradient(proto, "loss", ["x", "w"]), backend="numpy")
    x = np.float32([2, 3])
    yes = session.run(None, {"x": x, "c": np.array(True)})
    no = session.run(None, {"x": x, "c": np.array(False)})
    assert [item.tolist() for item in yes] == [28, [5, 6], [2, 3]]
    assert [item.tolist() for item in no] == [16, [1, 1], [1, 1]]
