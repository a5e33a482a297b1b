"""One step of a recurrent cell."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.harness import check_graph, graph_of
from webrnn.ir import WEBRNN, Node
from webrnn.ir.activations import ACTIVATIONS
from webrnn.ir.fused import BACKWARD_CELLS, CELL_FORMS

OPERANDS = {
    "RnnCell": (1, 1), "GruCell": (3, 3, 1), "GruReset": (3, 2, 1), "GruUpdate": (3, 1, 1, 1), "LstmCell": (4, 4, 1),
}  # fmt: skip
"""Widths in hidden sizes."""
BACKWARD_OPERANDS = {op: tuple(width for width in form.widths if width) for op, form in BACKWARD_CELLS.items()}
"""Without peepholes."""
NUMBERS = {"affine": (0.5, 0.1), "leaky_relu": (0.1, 0.0), "thresholded_relu": (0.3, 0.0), "scaled_tanh": (1.2, 0.7),
           "hard_sigmoid": (0.2, 0.5), "elu": (0.8, 0.0)}  # fmt: skip


def cell(b, op, operands, activations, clip=np.inf, couple=False):
    form = CELL_FORMS[op]
    params = [clip, *(number for name in activations[: form.activations] for number in NUMBERS.get(name, (0.0, 0.0)))]
    attrs = {"activations": tuple(activations[: form.activations]), "params": tuple(params)}
    outputs = [b.value(f"y{i}") for i in range(form.outputs)]
    attrs |= {"couple": couple} if op.startswith("Lstm") else {}
    operands = list(operands)
    if op == "LstmCellBackward" and len(operands) == 5:
        operands.insert(3, None)
    places = outputs
    if op == "LstmCellBackward" and operands[3] is None:
        places, outputs = [*outputs[:2], None], outputs[:2]
    b.add(Node(op, operands, list(places), attrs, "", WEBRNN))
    return outputs


@pytest.mark.parametrize("op", OPERANDS)
@pytest.mark.parametrize("hidden", [1, 3, 8, 70])
def test_cell(op, hidden):
    shapes = [f"f n {width * hidden}" for width in OPERANDS[op]]
    for activations in (("sigmoid", "tanh", "tanh"), ("relu", "softsign", "affine")):
        check_graph(graph_of(lambda b, *xs: cell(b, op, xs, activations), *shapes))  # noqa: B023


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    for op, widths in OPERANDS.items():
        for clip in (np.inf, 0.4):
            shapes = [f"f 3 {width * 5}" for width in widths]
            check_graph(graph_of(lambda b, *xs: cell(b, op, xs, [name] * 3, clip), *shapes))  # noqa: B023


@pytest.mark.parametrize("couple", [False, True])
def test_lstm_with_peepholes(couple):
    def build(b, *xs):
        return cell(b, "LstmCell", xs, ("sigmoid", "tanh", "tanh"), 0.8, couple)

    for peephole in ("f 15",):
        check_graph(graph_of(build, "f n 20", "f n 20", "f n 5", peephole))
    check_graph(graph_of(build, "f n 20", "f n 20", "f n 5"))


def test_operands_with_gaps_and_outputs_that_are_views():
    def build(b, xw, hw, h):
        (y,) = cell(b, "GruCell", [b.op("Transpose", xw), hw, b.op("Transpose", h)], ("sigmoid", "tanh"))
        return b.op("Transpose", y), b.op("Unsqueeze", y, b.ints(0))

    check_graph(graph_of(build, "f 15 n", "f n 15", "f 5 n"))


def test_an_output_that_nobody_asks_for():
    def build(b, *xs):
        (h, _) = cell(b, "LstmCell", xs, ("sigmoid", "tanh", "tanh"))
        b.graph.nodes[-1].outputs[1] = None
        return h

    check_graph(graph_of(build, "f n 20", "f n 20", "f n 5"))

    def only_c(b, *xs):
        (_, c) = cell(b, "LstmCell", xs, ("sigmoid", "tanh", "tanh"))
        b.graph.nodes[-1].outputs[0] = None
        return c

    check_graph(graph_of(only_c, "f n 20", "f n 20", "f n 5"))


@pytest.mark.parametrize("op", BACKWARD_CELLS)
@pytest.mark.parametrize("hidden", [1, 8, 70, 261])
def test_pullback(op, hidden):
    shapes = [f"f n {width * hidden}" for width in BACKWARD_OPERANDS[op]]
    for activations in (("sigmoid", "tanh", "tanh"), ("relu", "softsign", "affine")):
        check_graph(graph_of(lambda b, *xs: cell(b, op, xs, activations), *shapes))  # noqa: B023


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_pullbacks_of_activations(name):
    for op, widths in BACKWARD_OPERANDS.items():
        for clip in (np.inf, 0.4):
            shapes = [f"f 3 {width * 5}" for width in widths]
            check_graph(graph_of(lambda b, *xs: cell(b, op, xs, [name] * 3, clip), *shapes))  # noqa: B023


@pytest.mark.parametrize("couple", [False, True])
@pytest.mark.parametrize("clip", [np.inf, 0.8])
def test_pullback_of_peepholes(couple, clip):
    def build(b, *xs):
        return cell(b, "LstmCellBackward", xs, ("sigmoid", "tanh", "tanh"), clip, couple)

    check_graph(graph_of(build, "f n 20", "f n 20", "f n 5", "f 15", "f n 5", "f n 5"))
    check_graph(graph_of(build, "f n 20", "f n 20", "f n 5", "f n 5", "f n 5"))


@pytest.mark.parametrize("op", BACKWARD_CELLS)
def test_a_gradient_that_nobody_asks_for(op):
    for kept in range(BACKWARD_CELLS[op].outputs - (op == "LstmCellBackward")):

        def build(b, *xs, kept=kept):
            results = cell(b, op, xs, ("sigmoid", "tanh", "tanh"))
            outputs = b.graph.nodes[-1].outputs
            outputs[:] = [value if index == kept else None for index, value in enumerate(outputs)]
            return results[kept]

        check_graph(graph_of(build, *(f"f n {width * 5}" for width in BACKWARD_OPERANDS[op])))
