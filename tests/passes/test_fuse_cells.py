"""Cells that are written as the fused ones compute: one op, and the same bits."""

from itertools import product

import numpy as np
import pytest

from tests.passes import written_cells as cells
from tests.passes.differential import BY_NAME, apply, assert_same_results, floats, ops, reasons
from tests.passes.plain_cells import written_plainly
from webrnn.ir import DType, Graph, GraphBuilder, is_scan
from webrnn.ir.activations import ACTIVATION_ROWS
from webrnn.onnx.reader import read_model
from webrnn.passes import FUSIONS, PASSES, run_passes

GATES, STATES = {"RNN": 1, "GRU": 3, "LSTM": 4}, {"RNN": 1, "GRU": 1, "LSTM": 2}
ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
BEFORE = [*PASSES, BY_NAME["fuse_linear"]]


def recurrent(*args, **attrs) -> Graph:
    """A model of one node, as the reader would make it of plain ops."""
    with written_plainly():
        return read_model(recurrent_model(*args, **attrs))


def recurrent_model(op, steps=3, constant=True, peepholes=False, lengths=False, bias=True, batch=2, **attrs) -> bytes:
    """A model of one node, in which all states are outputs; with weights that are constants or fed."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    gates, hidden, inputs = GATES[op], 4, 3
    directions = 2 if attrs.get("direction") == "bidirectional" else 1
    shapes = {"W": (directions, gates * hidden, inputs), "R": (directions, gates * hidden, hidden)}
    if bias:
        shapes["B"] = (directions, 2 * gates * hidden)
    if peepholes:
        shapes["P"] = (directions, 3 * hidden)
    fed = {"X": [steps, batch, inputs], "initial_h": [directions, batch, hidden]}
    if op == "LSTM":
        fed["initial_c"] = fed["initial_h"]
    arrays = {name: floats(*shape, seed=seed) * np.float32(0.6) for seed, (name, shape) in enumerate(shapes.items())}
    initializers = [numpy_helper.from_array(array, name) for name, array in arrays.items() if constant]
    if lengths:
        initializers.append(numpy_helper.from_array(np.array([steps, 1][:batch], np.int32), "lens"))
    if not constant:
        fed |= shapes
    names = ["X", "W", "R", "B" if bias else "", "lens" if lengths else "", "initial_h"]
    names += ["initial_c", "P"][: STATES[op] - 1 + peepholes]
    outputs = ["Y", "Y_h", "Y_c"][: 1 + STATES[op]]
    node = helper.make_node(op, names, outputs, "cell", hidden_size=hidden, **attrs)
    typed = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in fed.items()]
    given = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * (4 - bool(i))) for i, name in enumerate(outputs)
    ]
    model = helper.make_model(
        helper.make_graph([node], "g", typed, given, initializers),
        opset_imports=[helper.make_opsetid("", 21)],
        ir_version=10,
    )
    onnx.checker.check_model(model)
    return model.SerializeToString()


def bodies(graph):
    return [sorted(node.op for node in each.attrs["body"].nodes) for each in graph.nodes if is_scan(each)]


def fuse_and_compare(graph, bits=True):
    """Everything but fuse_cells first; then fuse_cells must keep every bit. The optimized graph."""
    run_passes(graph, BEFORE, check=True)
    fused = graph.copy()
    outcome = run_passes(fused, [*BEFORE, BY_NAME["fuse_cells"]], check=True)
    assert_same_results(graph, fused, cells.arguments(graph), bits=bits)
    return fused, outcome


def read_and_compare(*args, **attrs):
    """The node as the reader makes it, which keeps every bit of the plain ops. The optimized graph."""
    plain, read = recurrent(*args, **attrs), read_model(recurrent_model(*args, **attrs))
    run_passes(plain, BEFORE, check=True)
    run_passes(read, check=True)
    assert_same_results(plain, read, cells.arguments(plain), bits=True)
    return read


CASES = {
    "RNN": (["Linear", "RnnCell"], [{}]),
    "GRU": (["GruCell", "Linear"], [{"linear_before_reset": 1}]),
    "GRU that resets first": (["GruReset", "GruUpdate", "Linear", "Linear"], [{}]),
    "LSTM": (
        ["Linear", "LstmCell"],
        [{}, {"peepholes": True}, {"input_forget": 1}, {"peepholes": True, "input_forget": 1}],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "fed"])
@pytest.mark.parametrize("clip", [None, 0.4])
@pytest.mark.parametrize("bias", [True, False])
def test_all_forms(name, constant, clip, bias):
    wanted, variants = CASES[name]
    for options in variants:
        given = {"constant": constant, "bias": bias, **options, **({} if clip is None else {"clip": clip})}
        assert bodies(read_and_compare(name.split()[0], **given)) == [wanted], options
        if clip is None and "input_forget" not in options:
            fused, _ = fuse_and_compare(recurrent(name.split()[0], **given))
            assert bodies(fused) == [wanted], options


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("row", ACTIVATION_ROWS[1:], ids=lambda row: row.onnx)
def test_all_activations(op, row):
    """Of the default ones one is replaced at a time, with and without a clip before it."""
    for place, clip in product(range(len(ACTIVATIONS[op])), (None, 0.7)):
        names = [*ACTIVATIONS[op]]
        names[place] = row.onnx
        alpha, beta = row.alpha, row.beta
        attrs = {"activations": names, "linear_before_reset": 1} if op == "GRU" else {"activations": names}
        for numbers in ({}, {"activation_alpha": [0.3]}, {"activation_alpha": [0.3], "activation_beta": [0.6]}):
            if len(numbers) > (alpha is not None) + (beta is not None):
                continue
            given = {**attrs, **numbers, **({} if clip is None else {"clip": clip})}
            assert [len(body) for body in bodies(read_and_compare(op, **given))] == [2], (place, given)
            if clip is None and row.is_op:
                fused, _ = fuse_and_compare(recurrent(op, **given))
                assert [len(body) for body in bodies(fused)] == [2], (place, given)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("options", [{"direction": "reverse"}, {"direction": "bidirectional"}, {"layout": 0}])
def test_directions(op, options):
    fused, _ = fuse_and_compare(
        recurrent(op, linear_before_reset=1, **options) if op == "GRU" else recurrent(op, **options)
    )
    cells_in_it = sum(count for name, count in ops(fused).items() if name.endswith("Cell"))
    assert cells_in_it == (2 if options.get("direction") == "bidirectional" else 1)


@pytest.mark.parametrize("op", GATES)
def test_masks_of_sequence_lens_stay_around_the_cell(op):
    fused, _ = fuse_and_compare(recurrent(op, lengths=True, **({"linear_before_reset": 1} if op == "GRU" else {})))
    (body,) = bodies(fused)
    assert body == sorted(["Linear", f"{op.capitalize()}Cell" if op != "GRU" else "GruCell", *["Where"] * STATES[op]])


@pytest.mark.parametrize("op", ["GRU", "LSTM"])
def test_a_single_step_outside_a_loop(op):
    graph = recurrent(op, steps=1, **({"linear_before_reset": 1} if op == "GRU" else {}))
    fused, _ = fuse_and_compare(graph)
    assert "Scan" not in ops(fused)
    assert ops(fused)[f"{op[0]}{op[1:].lower()}Cell"] == 1


def test_a_gru_takes_its_gates_uncut():
    """hoist_sequences cut them outside the loop; nothing of that is left."""
    fused, _ = fuse_and_compare(recurrent("GRU", linear_before_reset=1))
    assert "Split" not in ops(fused)
    (node,) = [node for node in fused.nodes if is_scan(node)]
    assert len(node.attrs["spec"].sequences) == 1


def test_fixpoint():
    for op in GATES:
        graph = recurrent(op)
        run_passes(graph)
        assert not sum(run_passes(graph).rewrites.values())


def test_activations_and_params():
    graph = read_model(recurrent_model("LSTM", activations=["HardSigmoid", "ScaledTanh", "Affine"], clip=0.5))
    (node,) = [node for inner in graph.walk() for node in inner.nodes if node.op == "LstmCell"]
    assert node.attrs["activations"] == ("hard_sigmoid", "scaled_tanh", "affine")
    assert node.attrs["params"] == (0.5, 0.2, 0.5, 1.0, 1.0, 1.0, 0.0)
    assert node.attrs["couple"] == 0


def plain_lstm(b, xw, hw, c, gates=4):
    i, o, f, n = cells.chunks(b, b.op("Add", xw, hw), gates)
    return [b.op("Sigmoid", gate) for gate in (i, f)], b.op("Tanh", n), b.op("Sigmoid", o)


def lstm_of(shape=(2, 4), wide=(2, 16), other=None, dtype=DType.FLOAT, extra=None):
    b = GraphBuilder("g")
    xw, hw, c = b.input("xw", dtype, wide), b.input("hw", dtype, other or wide), b.input("c", dtype, shape)
    (i, f), n, o = plain_lstm(b, xw, hw, c)
    b.graph.outputs = cells._lstm(b, i, f, n, o, c)
    if extra == "gate":
        b.graph.outputs.append(b.op("Neg", i))
    if extra == "output":
        b.graph.outputs.append(n)
    if extra == "sum":
        b.graph.outputs.append(b.op("Relu", next(node for node in b.graph.nodes if node.op == "Split").inputs[0]))
    return b.graph


def test_an_lstm_without_products():
    graph = lstm_of()
    before = graph.copy()
    assert apply(graph, "fuse_cells").rewrites["fuse_cells"] == 1
    assert ops(graph) == {"LstmCell": 1}
    assert_same_results(before, graph, cells.arguments(before))


def test_more_leading_axes():
    graph = lstm_of((3, 2, 4), (3, 2, 16))
    before = graph.copy()
    apply(graph, "fuse_cells")
    assert ops(graph) == {"LstmCell": 1}
    assert_same_results(before, graph, cells.arguments(before))


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (lstm_of(extra="gate"), "a gate is read elsewhere"),
        (lstm_of(extra="output"), "a gate is read elsewhere"),
        (lstm_of(extra="sum"), "a gate is read elsewhere"),
        (lstm_of((None, 4), (2, 16)), "its operands are broadcast, or a size is not known"),
        (lstm_of((2, 4), (1, 16), (2, 16)), "its operands are broadcast, or a size is not known"),
        (lstm_of((1, 4), (2, 16)), "its operands are broadcast, or a size is not known"),
        (lstm_of((4,), (16,)), "its state has one axis"),
        (lstm_of(dtype=DType.DOUBLE), "its type is not float32"),
    ],
)
def test_declines(graph, reason):
    outcome = apply(graph, "fuse_cells")
    assert reasons(outcome, "fuse_cells") == {reason}
    assert "LstmCell" not in ops(graph)


def test_declines_a_size_that_is_not_known():
    b = GraphBuilder("g")
    xw, hw = (b.input(name, DType.FLOAT, (2, 16)) for name in ("xw", "hw"))
    c = b.op("NoSuchOp", xw)
    (i, f), n, o = plain_lstm(b, xw, hw, c)
    b.graph.outputs = cells._lstm(b, i, f, n, o, c)
    assert reasons(apply(b.graph, "fuse_cells"), "fuse_cells") == {"a size is not known"}


def test_declines_peepholes_of_some_gates():
    b = GraphBuilder("g")
    xw, hw, c = (b.input(name, DType.FLOAT, (2, size)) for name, size in (("xw", 16), ("hw", 16), ("c", 4)))
    i, o, f, n = cells.chunks(b, b.op("Add", xw, hw), 4)
    i = b.op("Sigmoid", b.op("Add", i, b.op("Mul", b.constant(floats(4)), c)))
    b.graph.outputs = cells._lstm(b, i, b.op("Sigmoid", f), b.op("Tanh", n), b.op("Sigmoid", o), c)
    assert reasons(apply(b.graph, "fuse_cells"), "fuse_cells") == {"some of its gates have no peephole"}


def test_gates_with_different_functions_are_no_cell():
    b = GraphBuilder("g")
    xw, hw, c = (b.input(name, DType.FLOAT, (2, size)) for name, size in (("xw", 16), ("hw", 16), ("c", 4)))
    i, o, f, n = cells.chunks(b, b.op("Add", xw, hw), 4)
    b.graph.outputs = cells._lstm(b, b.op("Sigmoid", i), b.op("HardSigmoid", f), b.op("Tanh", n), b.op("Sigmoid", o), c)
    outcome = apply(b.graph, "fuse_cells")
    assert not outcome.rewrites["fuse_cells"]
    assert not reasons(outcome, "fuse_cells")


def test_a_dense_layer_is_no_rnn():
    b = GraphBuilder("g")
    x, y = b.input("x", DType.FLOAT, (2, 3)), b.input("y", DType.FLOAT, (2, 3))
    products = [b.op("MatMul", value, b.constant(floats(3, 3, seed=i))) for i, value in enumerate((x, y))]
    b.graph.outputs = [b.op("Tanh", b.op("Add", *products))]
    assert not apply(b.graph, "fuse_linear", "fuse_cells").rewrites["fuse_cells"]


def test_either_order_of_operands():
    graph = recurrent("LSTM", peepholes=True)
    run_passes(graph, BEFORE)
    for inner in graph.walk():
        for node in inner.nodes:
            if node.op in ("Add", "Mul"):
                node.inputs.reverse()
    fused, _ = fuse_and_compare(graph)
    assert bodies(fused) == [["Linear", "LstmCell"]]


def test_the_phases_have_all_passes():
    assert {"fuse_linear", "fuse_cells", "fuse_exported_cells"} <= {step.name for step in FUSIONS}
