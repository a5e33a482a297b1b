"""Profiles of models: sums, categories, what fused instructions contain, numpy between plans."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.engine.stream_models import stateful
from tests.plan.recurrent_models import recurrent
from webrnn import BackendError, InferenceSession, ShapeError
from webrnn.guesses import random_input
from webrnn.plan.instructions import INSTRUCTIONS
from webrnn.profile.entry import CATEGORIES
from webrnn.profile.profiler import MOST_ROUNDS, MOST_RUNS, profile
from webrnn.profile.subject import Subject
from webrnn.profile.timed_plan import profiling_kernels

from .harness import BUILDS, check, find, profile_of

STEPS = 50
CELLS = {"RNN": "rnn_sequence", "GRU": "gru_sequence", "LSTM": "lstm_sequence"}


def feeds(steps=STEPS, batch=1, inputs=6):
    return {"x": np.random.default_rng(0).standard_normal((steps, batch, inputs)).astype(np.float32)}


def test_every_instruction_has_a_category():
    for row in INSTRUCTIONS:
        assert {row.category, *(category for _, category in row.parts)} <= set(CATEGORIES)
        assert len(row.parts) in (0, 2)


@pytest.mark.parametrize("backend", BUILDS)
@pytest.mark.parametrize("op", CELLS)
def test_a_whole_sequence_is_shown_as_products_and_cells(op, backend):
    profile = profile_of(recurrent(op, 8, 6, ["Y"]), feeds(), backend)
    assert profile.backend.startswith(backend)
    sequences = find(profile.root, CELLS[op])
    assert sequences
    for entry in sequences:
        assert [part.name for part in entry.children] == ["products", "cells"]
        assert [part.category for part in entry.children] == ["matrix", "cell"]
    for part in ("products", "cells"):
        assert sum(entry.calls for entry in find(profile.root, part)) == STEPS
    categories = profile.categories()
    assert categories["cell"].calls == STEPS
    assert categories["matrix"].calls == STEPS + sum(entry.calls for entry in find(profile.root, "gemm"))


@pytest.mark.parametrize("op", CELLS)
def test_a_fused_sequence_costs_what_its_loop_costs(op):
    """The same arithmetic, counted in the parts of one instruction or in two instructions of a loop."""
    model = recurrent(op, 8, 6, ["Y"])
    fused = profile_of(model, feeds()).categories()
    loop = profile_of(model, feeds(), disable=["fused_sequences"])
    assert not find(loop.root, CELLS[op])
    assert next(entry for entry in loop.root.walk() if entry.kind == "loop").steps == STEPS
    for category in ("matrix", "cell"):
        assert fused[category].flops == loop.categories()[category].flops
        assert fused[category].flops > 0
        assert fused["cell"].calls == loop.categories()["cell"].calls == STEPS


def test_flops_of_a_gru():
    """By hand: both products with their biases, 8 operations and 3 activations of a cell."""
    hidden, inputs = 8, 6
    categories = profile_of(recurrent("GRU", hidden, inputs, ["Y"]), feeds()).categories()
    assert categories["matrix"].flops == STEPS * 3 * hidden * (2 * inputs + 1 + 2 * hidden + 1)
    assert categories["cell"].flops == STEPS * hidden * (8 + 3)


def test_bytes_of_a_product():
    """Of its operands, each once: x, packed weights, bias, y."""
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"])]
    weights = [
        helper.make_tensor("w", TensorProto.FLOAT, [6, 16], np.ones(96, np.float32)),
        helper.make_tensor("b", TensorProto.FLOAT, [16], np.ones(16, np.float32)),
    ]
    profile = profile_of(_model(nodes, {"x": [3, 6]}, ["y"], weights), {"x": np.ones((3, 6), np.float32)})
    (product,) = find(profile.root, "gemm")
    assert product.flops == 3 * 16 * (2 * 6 + 1)
    assert product.bytes == 4 * (3 * 6 + 6 * 16 + 16 + 3 * 16)


def test_an_expression_is_named_by_its_operations():
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["a"]),
        helper.make_node("Add", ["a", "x"], ["c"]),
        helper.make_node("Tanh", ["c"], ["y"]),
    ]
    profile = profile_of(_model(nodes, {"x": [64]}, ["y"]), {"x": np.ones(64, np.float32)})
    (entry,) = [each for each in profile.root.walk() if each.kind == "instruction"]
    assert entry.name == "mul, add, tanh (fused)"
    assert (entry.category, entry.flops, entry.bytes) == ("element-wise", 3 * 64, 2 * 4 * 64)


@pytest.mark.parametrize("backend", ["native", "wasm:relaxed"])
def test_numpy_between_plans(backend):
    """The VM has no strings; what is before them and behind them runs on it."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="before"),
        helper.make_node("Cast", ["r"], ["text"], to=TensorProto.STRING, name="write"),
        helper.make_node("Cast", ["text"], ["read"], to=TensorProto.FLOAT, name="read"),
        helper.make_node("Exp", ["read"], ["y"], name="behind"),
    ]
    model = _model(nodes, {"x": [4, 5]}, ["y"])
    profile = profile_of(model, {"x": np.random.default_rng(1).standard_normal((4, 5)).astype(np.float32)}, backend)
    assert any("write" in note for note in profile.notes)
    (write,) = [entry for entry in profile.root.walk() if entry.label == "write"]
    assert (write.kind, write.name, write.category, write.calls) == ("fallback", "Cast", "fallback", 1)
    categories = profile.categories()
    assert categories["fallback"].seconds > 0
    assert categories["element-wise"].calls == 2
    assert [child.kind for child in profile.root.children] == ["plan", "numpy", "plan"]


@pytest.mark.parametrize("backend", ["native", "wasm:relaxed"])
def test_sizes_that_come_out_while_running(backend):
    """How much NonZero finds is known when it has run: memory for it is there, and its results cost what they are."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"], name="search"),
        helper.make_node("Transpose", ["where"], ["indices"]),
        helper.make_node("GatherND", ["x", "indices"], ["found"]),
        helper.make_node("Exp", ["found"], ["y"], name="behind"),
    ]
    x = np.zeros((40, 50), np.float32)
    x[:, :30] = 0.5
    profile = profile_of(_model(nodes, {"x": [40, 50]}, ["y"]), {"x": x}, backend)
    assert not profile.categories().keys() & {"fallback"}
    (exp,) = find(profile.root, "exp")
    assert (exp.calls, exp.bytes) == (1, 2 * 4 * 40 * 30)


def test_all_of_a_model_in_numpy():
    profile = profile_of(recurrent("GRU", 8, 6, ["Y"]), feeds(), "numpy")
    assert list(profile.categories()) == ["fallback"]
    assert profile.backend == "numpy"
    assert {"Scan", "Linear"} <= {entry.name for entry in profile.root.walk()}
    assert profile.laps == 0


def test_the_step_of_a_stream():
    """The states, which a stream carries, are inputs of its program."""
    subject = Subject(InferenceSession(stateful("GRU").SerializeToString(), backend="native"), carry="auto")
    assert {"x", "h_in"} <= {value.name for value in subject.inputs}
    rng = np.random.default_rng(0)
    profile = subject.profile({value.name: random_input(value, {}, rng) for value in subject.inputs}, runs=1)
    check(profile)
    assert profile.unprofiled > 0
    assert profile.categories()["cell"].calls == 2  # a reset gate before the product: two halves of a cell


def test_a_plan_file(tmp_path):
    session = InferenceSession(recurrent("LSTM", 8, 6, ["Y"]), backend="native")
    session.export(tmp_path / "m.rnn")
    profile = profile_of((tmp_path / "m.rnn").read_bytes(), feeds())
    assert profile.categories()["cell"].calls == STEPS


def test_other_sizes_cost_in_proportion():
    model = recurrent("GRU", 8, 6, ["Y"])
    short, long = (profile_of(model, feeds(steps)).categories() for steps in (24, 96))
    for category in ("matrix", "cell"):
        assert long[category].flops == 4 * short[category].flops
    assert profile_of(model, feeds(24, batch=3)).categories()["cell"].flops == 3 * short["cell"].flops


def test_what_is_fed_is_checked():
    subject = Subject(InferenceSession(recurrent("GRU", 8, 6, ["Y"]), backend="native"))
    with pytest.raises(ShapeError, match="no input 'z'"):
        subject.profile({**feeds(), "z": np.ones(3)})
    with pytest.raises(ShapeError, match="'x'"):
        subject.profile({"x": np.ones((5, 1, 7), np.float32)})


def test_there_is_no_profiling_in_pyodide():
    with pytest.raises(BackendError, match="Pyodide"):
        profiling_kernels("pyodide:relaxed")


def _model(nodes, inputs, outputs, weights=()):
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "model", given, made, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("backend", ["native", "wasm:relaxed"])
def test_a_model_that_does_next_to_nothing(backend):
    """However quick a run is, a round has an end, and so has a caller's."""
    session = InferenceSession(recurrent("GRU", 8, 6, ["Y"]), backend=backend)
    called = []
    program, arguments = session._program, list(feeds(steps=0).values())
    found = profile("nothing", program, arguments, backend, lambda: called.append(1))
    check(found)
    assert found.runs <= MOST_RUNS
    assert len(called) <= 2 + MOST_ROUNDS * found.runs
    assert "cell" not in found.categories()
