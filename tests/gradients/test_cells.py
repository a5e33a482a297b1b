"""RNN, GRU and LSTM with all that ONNX lets them be, beside finite differences."""

import numpy as np
import pytest
from onnx import helper

from tests.onnx.models import N_GATES, floats, initializer, model
from webrnn.ir.activations import ACTIVATION_ROWS
from webrnn.onnx.reader import Opened, read_model

from .finite import assert_right

STEPS, BATCH, INPUTS, HIDDEN = 4, 2, 3, 2


def _compare(op, peepholes=False, lengths=None, **attrs):
    rng = np.random.default_rng(5)
    directions = 2 if attrs.get("direction") == "bidirectional" else 1
    gates = N_GATES[op] * HIDDEN
    shapes = {"W": (directions, gates, INPUTS), "R": (directions, gates, HIDDEN), "B": (directions, 2 * gates)}
    states = ["h", "c"] if op == "LSTM" else ["h"]
    names = ["x", *shapes, "lengths" if lengths else "", *states]
    if peepholes:
        shapes["P"] = (directions, 3 * HIDDEN)
        names.append("P")
    weights = [initializer(name, rng.normal(0, 0.5, shape).astype(np.float32)) for name, shape in shapes.items()]
    outputs = ["Y", "Y_h", "Y_c"][: 1 + len(states)]
    node = helper.make_node(op, names, outputs, hidden_size=HIDDEN, **attrs)
    inputs = [floats("x", [STEPS, BATCH, INPUTS]), *(floats(name, [directions, BATCH, HIDDEN]) for name in states)]
    if lengths:
        weights.append(initializer("lengths", np.array(lengths, np.int32)))
    proto = model([node], inputs, [floats(name, None) for name in outputs], weights)
    opened = Opened(list(shapes))
    graph = read_model(proto.SerializeToString(), opened=opened)
    given = [rng.normal(0, 1, [STEPS, BATCH, INPUTS]), *(rng.normal(0, 1, [directions, BATCH, HIDDEN]) for _ in states)]
    arrays = dict(zip(["x", *states], given, strict=True)) | opened.arrays
    arguments = [arrays[value.name].astype(np.float64) for value in graph.inputs]
    assert assert_right(graph, arguments, 3) == len(arguments)


@pytest.mark.parametrize("op", N_GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions(op, direction):
    _compare(op, direction=direction)


@pytest.mark.parametrize("op", N_GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_sequences_of_different_length(op, direction):
    _compare(op, lengths=[2, 4], direction=direction)


@pytest.mark.parametrize("before", [0, 1])
def test_gru_forms(before):
    _compare("GRU", linear_before_reset=before)
    _compare("GRU", linear_before_reset=before, clip=0.7)


@pytest.mark.parametrize("attrs", [{}, {"input_forget": 1}, {"clip": 0.8}], ids=str)
def test_lstm_with_peepholes(attrs):
    _compare("LSTM", peepholes=True, **attrs)
    _compare("LSTM", peepholes=True, direction="bidirectional", **attrs)


@pytest.mark.parametrize("name", [row.onnx for row in ACTIVATION_ROWS if row.onnx])
def test_activations(name):
    _compare("RNN", activations=[name], activation_alpha=[0.6], activation_beta=[0.4])
    _compare("GRU", activations=["Sigmoid", name])
    _compare("LSTM", activations=["HardSigmoid", name, "Tanh"])
