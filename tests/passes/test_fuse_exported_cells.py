import numpy as np
import pytest

from tests.passes import written_cells as cells
from tests.passes.differential import apply, assert_same_results, floats, ops, reasons
from webrnn.engine.executor.executor import Executor
from webrnn.ir import DType, GraphBuilder, is_scan
from webrnn.passes import run_passes

NAME = "fuse_exported_cells"

WRITTEN = {
    "gru of PyTorch": (cells.torch_gru, 1, {}, "GruCell"),
    "its products as Gemm, cut by Slice": (cells.torch_gru, 1, {"gemm": True, "by_slice": True}, "GruCell"),
    "n - z (n - h)": (cells.torch_gru, 1, {"form": "subtracted"}, "GruCell"),
    "(1 - z) n + z h": (cells.torch_gru, 1, {"form": "ones"}, "GruCell"),
    "(-z + 1) n + z h": (cells.torch_gru, 1, {"form": "negated"}, "GruCell"),
    "biases everywhere": (cells.gru_with_late_biases, 1, {}, "GruCell"),
    "lstm of PyTorch": (cells.torch_lstm, 2, {}, "LstmCell"),
    "cut by Slice": (cells.torch_lstm, 2, {"by_slice": True}, "LstmCell"),
    "lstm of Keras": (cells.keras_lstm, 2, {}, "LstmCell"),
    "a product for each gate": (cells.separate_lstm, 2, {}, "LstmCell"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_outside_a_loop(name):
    step, n_states, options, op = WRITTEN[name]
    before = cells.outside(step, n_states, **options)
    after = before.copy()
    outcome = run_passes(after, check=True)
    assert outcome.rewrites[NAME] == 1
    assert ops(after) == {"Linear": 2, op: 1}
    assert_same_results(before, after, cells.arguments(before), bits=False)
    assert not sum(run_passes(after).rewrites.values())


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("name", [name for name in WRITTEN if name != "biases everywhere"])
def test_in_a_loop_with_the_product_of_the_input_before_it(name, steps):
    step, n_states, options, op = WRITTEN[name]
    before = cells.in_loop(step, n_states, **options)
    after = before.copy()
    run_passes(after, check=True)
    assert [node.op for node in after.nodes] == ["Linear", "Scan"]
    assert [node.op for node in after.nodes[1].attrs["body"].nodes] == ["Linear", op]
    assert_same_results(before, after, cells.arguments(before, steps), bits=False)


@pytest.mark.parametrize("place", [cells.outside, cells.in_loop])
def test_a_gru_that_resets_before_its_product(place):
    before = place(cells.keras_gru, 1)
    after = before.copy()
    run_passes(after, check=True)
    graph = after if place is cells.outside else after.nodes[-1].attrs["body"]
    wanted = {"Linear": 3 - (graph is not after), "GruReset": 1, "GruUpdate": 1}
    assert {op: count for op, count in ops(graph).items() if count} == wanted
    assert_same_results(before, after, cells.arguments(before), bits=False)


def test_an_rnn_with_a_late_bias():
    before = cells.in_loop(cells.elman_with_late_bias, 1)
    after = before.copy()
    run_passes(after, check=True)
    assert [node.op for node in after.nodes[-1].attrs["body"].nodes] == ["Linear", "RnnCell"]
    assert_same_results(before, after, cells.arguments(before), bits=False)


def test_without_linear_the_bias_is_added_before():
    """The products are fed: nothing can be put into their weights."""
    b = GraphBuilder("g")
    xw, hw, c = (b.input(name, DType.FLOAT, (2, width)) for name, width in (("xw", 16), ("hw", 16), ("c", 4)))
    total = b.op("Add", b.op("Add", xw, hw), b.constant(floats(16)))
    i, o, f, n = cells.chunks(b, total, 4)
    b.graph.outputs = cells._lstm(
        b, *(b.op("Sigmoid", gate) for gate in (i, f)), b.op("Tanh", n), b.op("Sigmoid", o), c
    )
    before = b.graph.copy()
    apply(b.graph, NAME)
    assert ops(b.graph) == {"Add": 1, "LstmCell": 1}
    assert_same_results(before, b.graph, cells.arguments(before), bits=False)


def fed_weights():
    def step(b, x, h, w, r):
        gx, gh = b.op("MatMul", x, w), b.op("MatMul", h, r)
        (xr, xz, xn), (hr, hz, hn) = cells.chunks(b, gx, 3), cells.chunks(b, gh, 3)
        rr, z = b.op("Sigmoid", b.op("Add", xr, hr)), b.op("Sigmoid", b.op("Add", hz, xz))
        n = b.op("Tanh", b.op("Add", xn, b.op("Mul", rr, hn)))
        return [cells.mixed(b, z, n, h, "difference")]

    b = GraphBuilder("g")
    shapes = {"x": (2, 3), "h": (2, 4), "w": (3, 12), "r": (4, 12)}
    b.graph.outputs = step(b, *(b.input(name, DType.FLOAT, shape) for name, shape in shapes.items()))
    return b.graph


def read_elsewhere():
    graph = cells.outside(cells.torch_lstm, 2)
    split = next(node for node in graph.nodes if node.op == "Split")
    b = GraphBuilder("more")
    b.graph = graph
    graph.outputs.append(b.op("Neg", split.inputs[0], output=b.value("more")))
    return graph


def other_products():
    """Two gates of one input, two of another."""
    b = GraphBuilder("g")
    x, y, h, c = (b.input(name, DType.FLOAT, (2, 4)) for name in "xyhc")
    xw = [b.op("MatMul", source, b.constant(floats(4, 4, seed=i))) for i, source in enumerate((x, y, x, y))]
    hw = b.op("MatMul", h, b.constant(floats(4, 16)))
    i, f, g, o = (b.op("Add", *pair) for pair in zip(xw, cells.chunks(b, hw, 4), strict=True))
    b.graph.outputs = cells._lstm(b, b.op("Sigmoid", i), b.op("Sigmoid", f), b.op("Tanh", g), b.op("Sigmoid", o), c)
    return b.graph


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (fed_weights(), "the weights are not constants, so gates cannot be put into ONNX's order"),
        (read_elsewhere(), "a gate is read elsewhere"),
    ],
    ids=["weights", "read"],
)
def test_declines(graph, reason):
    before = graph.copy()
    outcome = run_passes(graph, check=True)
    assert reason in reasons(outcome, NAME)
    assert not {"GruCell", "LstmCell"} & ops(graph).keys()
    assert_same_results(before, graph, cells.arguments(before), bits=False)


def test_gates_of_different_inputs_are_no_cell():
    before = other_products()
    after = before.copy()
    run_passes(after, check=True)
    assert "LstmCell" not in ops(after)
    assert_same_results(before, after, cells.arguments(before), bits=False)


def test_cells_in_order_are_left_to_fuse_cells():
    graph = cells.in_loop(cells.elman, 1)
    assert apply(graph, "fuse_linear", NAME).rewrites[NAME] == 0
    assert apply(graph, "fuse_linear", "fuse_cells").rewrites["fuse_cells"] == 1
    assert any(is_scan(node) for node in graph.nodes)


@pytest.mark.parametrize("form", ["difference", "subtracted"])
def test_gates_in_order_that_are_mixed_in_another_way(form):
    """The fused cell rounds otherwise, so that it is none for fuse_cells."""

    def step(b, x, h):
        (xz, xr, xn), (hz, hr, hn) = (
            cells.chunks(b, cells.linear(b, *given), 3) for given in ((x, 3, 12, 1), (h, 4, 12, 2))
        )
        z, r = b.op("Sigmoid", b.op("Add", xz, hz)), b.op("Sigmoid", b.op("Add", xr, hr))
        return [cells.mixed(b, z, b.op("Tanh", b.op("Add", xn, b.op("Mul", r, hn))), h, form)]

    graph = cells.outside(step, 1)
    assert not apply(graph, "fuse_linear", "fuse_cells").rewrites["fuse_cells"]
    assert apply(graph, NAME).rewrites[NAME] == 1
    assert ops(graph)["GruCell"] == 1


def test_columns_are_moved_with_their_biases():
    """Gate by gate: the fused LSTM of PyTorch against a plain computation."""
    graph = cells.outside(cells.torch_lstm, 2)
    run_passes(graph)
    x, h, c = cells.arguments(graph)
    w, wb = floats(16, 3, seed=2) * np.float32(0.5), floats(16, seed=102)
    r, rb = floats(16, 4, seed=1) * np.float32(0.5), floats(16, seed=101)
    i, f, g, o = np.split(x @ w.T + wb + h @ r.T + rb, 4, axis=1)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    c_next = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    results = Executor(graph).run([x, h, c])
    np.testing.assert_allclose(results[0], sigmoid(o) * np.tanh(c_next), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results[1], c_next, rtol=1e-5, atol=1e-6)
