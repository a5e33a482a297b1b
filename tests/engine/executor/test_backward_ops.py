"""The pullbacks of cells against finite differences of the cells, in float64."""

from __future__ import annotations

import numpy as np
import pytest

from webrnn.engine.executor.executor import Executor
from webrnn.engine.executor.intrinsics import INTRINSICS
from webrnn.errors import ModelError, ShapeError
from webrnn.ir import WEBRNN, DType, Graph, Node, Value
from webrnn.ir.activations import ACTIVATION_ROWS, ACTIVATIONS
from webrnn.ir.check import check
from webrnn.ir.fused import BACKWARD_CELLS, CELL_FORMS, CELLS, PEEPHOLES

H = 3
NUMBERS = {
    row.name: (0.7 if row.alpha is not None else 0.0, 0.4 if row.beta is not None else 0.0) for row in ACTIVATION_ROWS
}
GRADIENTS = {
    "RnnCell": (0, 0),
    "GruCell": (0, 1, 2),
    "GruReset": (0, 1, 2),
    "GruUpdate": (0, 1, 2, 3),
    "LstmCell": (0, 0, 1, 2),
}
"""Which result of the pullback is the gradient of each operand of the cell."""


def cell_attrs(op, names, clip=np.inf, couple=0):
    names = tuple(names)[: CELL_FORMS[op].activations]
    attrs = {"activations": names, "params": (clip, *(number for name in names for number in NUMBERS[name]))}
    return {**attrs, "couple": couple} if op.startswith("Lstm") else attrs


def random_operands(op, rows, rng, peephole=False, dtype=np.float64, hidden=H):
    shapes = [(*rows, width * hidden) if width else (3 * hidden,) for width in CELL_FORMS[op].widths]
    if not peephole and PEEPHOLES in CELL_FORMS[op].widths:
        shapes.remove((3 * hidden,))
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def differences(op, attrs, operands, d_results, step=1e-6):
    """The gradient of sum(result * d_result) by each operand."""

    def loss():
        results = INTRINSICS[op](operands, attrs)
        return sum(float((result * d).sum()) for result, d in zip(results, d_results, strict=True))

    gradients = []
    for operand in operands:
        gradient = np.zeros_like(operand)
        for place in np.ndindex(operand.shape):
            kept = operand[place]
            operand[place] = kept + step
            above = loss()
            operand[place] = kept - step
            gradient[place] = (above - loss()) / (2 * step)
            operand[place] = kept
        gradients.append(gradient)
    return gradients


def pulled(op, attrs, operands, d_results):
    """The gradient by each operand, from the pullback; of peepholes the sum over rows."""
    arguments = [*operands]
    if op == "LstmCell" and len(operands) == 3:
        arguments.append(None)
    results = INTRINSICS[f"{op}Backward"]([*arguments, *d_results], attrs)
    found = [results[GRADIENTS[op][index]] for index in range(len(operands))]
    if op == "LstmCell" and len(operands) == 4:
        found[3] = found[3].reshape(-1, 3 * H).sum(axis=0)
    return found


def assert_pulls_back(op, attrs, rows=(2,), peephole=False, seed=0):
    rng = np.random.default_rng(seed)
    operands = random_operands(op, rows, rng, peephole)
    d_results = [rng.standard_normal((*rows, H)) for _ in range(CELLS[op].outputs)]
    expected = differences(op, attrs, operands, d_results)
    for gradient, want in zip(pulled(op, attrs, operands, d_results), expected, strict=True):
        np.testing.assert_allclose(gradient, want, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("clip", [np.inf, 0.6])
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("op", CELLS)
def test_every_activation_in_every_place(op, name, clip):
    for names in ((name, "tanh", "tanh"), ("sigmoid", name, "tanh"), ("sigmoid", "tanh", name)):
        assert_pulls_back(op, cell_attrs(op, names, clip), seed=ACTIVATIONS.index(name))


@pytest.mark.parametrize("clip", [np.inf, 0.8])
@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize("couple", [0, 1])
def test_an_lstm(couple, peephole, clip):
    attrs = cell_attrs("LstmCell", ("sigmoid", "tanh", "softsign"), clip, couple)
    assert_pulls_back("LstmCell", attrs, peephole=peephole)


@pytest.mark.parametrize("rows", [(1,), (5,), (2, 3), (0,)])
@pytest.mark.parametrize("op", CELLS)
def test_rows(op, rows):
    assert_pulls_back(op, cell_attrs(op, ("sigmoid", "tanh", "tanh")), rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("op", BACKWARD_CELLS)
def test_results_have_the_type_of_the_operands(op, dtype):
    rng = np.random.default_rng(1)
    form = BACKWARD_CELLS[op]
    wide = random_operands(op, (4,), rng, peephole=True, hidden=5)
    for name in ACTIVATIONS:
        attrs = cell_attrs(op, (name,) * 3, clip=1.5)
        expected = INTRINSICS[op](wide, attrs)
        results = INTRINSICS[op]([operand.astype(dtype) for operand in wide], attrs)
        assert [result.shape for result in results] == [(4, width * 5) for width in form.results]
        assert {result.dtype for result in results} == {np.dtype(dtype)}
        if name not in ("relu", "leaky_relu", "thresholded_relu", "hard_sigmoid") and dtype != np.float16:
            for result, want in zip(results, expected, strict=True):
                np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-5)


def test_what_does_not_depend_is_zero():
    rng = np.random.default_rng(2)
    for op, results in {
        "GruResetBackward": [(0, slice(2 * H, None))],
        "GruUpdateBackward": [(0, slice(None, 2 * H))],
        "LstmCellBackward": [(0, slice(2 * H, 3 * H)), (2, slice(2 * H, None))],
    }.items():
        attrs = cell_attrs(op, ("sigmoid", "tanh", "tanh"), couple=1)
        found = INTRINSICS[op](random_operands(op, (2,), rng, peephole=True), attrs)
        for index, part in results:
            assert not found[index][..., part].any()
            assert found[index].any()


def test_infinite_gradients_do_not_pass_where_the_derivative_is_zero():
    xw, hw, d = np.float32([[-1, 2]]), np.zeros((1, 2), np.float32), np.float32([[np.inf, np.inf]])
    for name in ("relu", "thresholded_relu"):
        assert INTRINSICS["RnnCellBackward"]([xw, hw, d], cell_attrs("RnnCell", [name]))[0].tolist() == [[0, np.inf]]
    clipped = cell_attrs("RnnCell", ["tanh"], clip=1.5)
    assert INTRINSICS["RnnCellBackward"]([xw, hw, d], clipped)[0].tolist() == [[np.inf, 0]]


def node_of(op, n_inputs, n_outputs, missing=(), attrs=None):
    inputs = [Value(f"i{index}", DType.DOUBLE) for index in range(n_inputs)]
    outputs = [Value(f"o{index}") for index in range(n_outputs)]
    operands = [None if index in missing else value for index, value in enumerate(inputs)]
    attrs = attrs or cell_attrs(op, ("sigmoid", "tanh", "tanh"))
    return Graph("g", inputs, outputs, [Node(op, operands, list(outputs), attrs, "it", WEBRNN)])


@pytest.mark.parametrize(
    ("op", "n_inputs", "n_outputs", "missing", "message"),
    [
        ("RnnCellBackward", 2, 1, (), "2 inputs, there need to be 3 to 3"),
        ("GruCellBackward", 4, 1, (), "1 outputs, there need to be 3"),
        ("GruResetBackward", 5, 3, (4,), "an operand is missing"),
        ("LstmCellBackward", 5, 3, (), "5 inputs, there need to be 6 to 6"),
        ("LstmCellBackward", 6, 3, (5,), "an operand is missing"),
        ("LstmCellBackward", 6, 3, (3,), "it gives a gradient of peepholes, and has none"),
    ],
)
def test_the_checker_knows_them(op, n_inputs, n_outputs, missing, message):
    with pytest.raises(ModelError, match=message):
        check(node_of(op, n_inputs, n_outputs, missing))


@pytest.mark.parametrize("op", BACKWARD_CELLS)
def test_a_graph_of_one(op):
    form = BACKWARD_CELLS[op]
    graph = node_of(op, len(form.widths), form.outputs)
    check(graph)
    operands = random_operands(op, (2,), np.random.default_rng(3), peephole=True)
    expected = INTRINSICS[op](operands, graph.nodes[0].attrs)
    for result, want in zip(Executor(graph).run(operands), expected, strict=True):
        np.testing.assert_array_equal(result, want)


def test_they_say_what_does_not_fit():
    attrs = cell_attrs("GruCellBackward", ("sigmoid", "tanh"))
    with pytest.raises(ShapeError, match="does not hold 3 gates"):
        INTRINSICS["GruCellBackward"]([np.zeros((2, 9)), np.zeros((2, 12)), np.zeros((2, 4)), np.zeros((2, 4))], attrs)
    attrs = cell_attrs("LstmCellBackward", ("sigmoid", "tanh", "tanh"))
    shapes = [(2, 8), (2, 8), (2, 2), (5,), (2, 2), (2, 2)]
    with pytest.raises(ShapeError, match=r"peepholes of \[5\]"):
        INTRINSICS["LstmCellBackward"]([np.zeros(shape) for shape in shapes], attrs)
