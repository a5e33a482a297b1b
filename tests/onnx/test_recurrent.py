"""Random RNN, GRU and LSTM nodes against a scalar loop, and against onnxruntime where it supports them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import webrnn
from tests.onnx import scalar_recurrent
from tests.onnx.models import N_GATES, initializer, model
from webrnn.ir.check import check

onnxruntime.set_default_logger_severity(4)

WITH_ALPHA = {"Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"}
WITH_BETA = {"Affine", "ScaledTanh", "HardSigmoid"}
NAMES = ["Relu", "Tanh", "Sigmoid", "Softsign", "Softplus", *sorted(WITH_ALPHA)]
ZERO_BY_DEFAULT_IN_ORT = {("Affine", None), ("ScaledTanh", None), ("ThresholdedRelu", None)}
"""ONNX gives a missing alpha the default of the op of that name; onnxruntime takes 0 for these."""
OVERFLOWS_IN_ORT = {"Softplus"}
"""Inside an RNN, onnxruntime's log(exp(x) + 1) is infinite from 89 on; the scalar loop decides then."""
N_FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


@st.composite
def cases(draw: Any, op: str) -> dict[str, Any]:
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    n_directions = 2 if direction == "bidirectional" else 1
    attrs: dict[str, Any] = {"direction": direction, "layout": draw(st.sampled_from([0, 0, 0, 1]))}
    n_functions = N_FUNCTIONS[op] * n_directions
    functions = [(name, None, None) for name in DEFAULTS[op] * n_directions]
    if draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(NAMES), min_size=n_functions, max_size=n_functions))
        attrs["activations"] = names
        functions = [(name, None, None) for name in names]
        if draw(st.booleans()):
            numbers = st.floats(0.125, 1, width=16)
            functions = [
                (name, draw(numbers) if name in WITH_ALPHA else None, draw(numbers) if name in WITH_BETA else None)
                for name in names
            ]
            alphas = [alpha for _, alpha, _ in functions if alpha is not None]
            betas = [beta for _, _, beta in functions if beta is not None]
            attrs |= {"activation_alpha": alphas} if alphas else {}
            attrs |= {"activation_beta": betas} if betas else {}
    if draw(st.booleans()):
        attrs["clip"] = draw(st.sampled_from([0.25, 1.0, 5.0]))
    if op == "GRU":
        attrs["linear_before_reset"] = draw(st.sampled_from([0, 1]))
    if op == "LSTM":
        attrs["input_forget"] = draw(st.sampled_from([0, 1]))
    optional = ["B", "sequence_lens", "initial_h", *(["initial_c", "P"] if op == "LSTM" else [])]
    return {
        "op": op,
        "attrs": attrs,
        "functions": functions,
        "present": draw(st.sets(st.sampled_from(optional))),
        "outputs": draw(st.sets(st.sampled_from(["Y", "Y_h", *(["Y_c"] if op == "LSTM" else [])]), min_size=1)),
        "computed": draw(st.booleans()),
        "steps": draw(st.integers(1, 4)),
        "batch": draw(st.integers(1, 3)),
        "inputs": draw(st.integers(1, 3)),
        "hidden": draw(st.integers(1, 3)),
        "seed": draw(st.integers(0, 2**16)),
    }


def operands_of(case: dict[str, Any]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(case["seed"])
    batch_first = case["attrs"]["layout"] == 1
    n_directions = 2 if case["attrs"]["direction"] == "bidirectional" else 1
    hidden, gates, batch = case["hidden"], N_GATES[case["op"]] * case["hidden"], case["batch"]
    state = (batch, n_directions, hidden) if batch_first else (n_directions, batch, hidden)
    shapes = {
        "X": (batch, case["steps"], case["inputs"]) if batch_first else (case["steps"], batch, case["inputs"]),
        "W": (n_directions, gates, case["inputs"]),
        "R": (n_directions, gates, hidden),
        "B": (n_directions, 2 * gates),
        "initial_h": state,
        "initial_c": state,
        "P": (n_directions, 3 * hidden),
    }
    operands = {name: rng.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}
    operands["sequence_lens"] = rng.integers(0, case["steps"] + 1, batch).astype(np.int32)
    return {name: array for name, array in operands.items() if name in {"X", "W", "R"} | case["present"]}


def model_of(case: dict[str, Any], operands: dict[str, np.ndarray]):
    order = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"]
    names = [name if name in operands else "" for name in order[: 8 if case["op"] == "LSTM" else 6]]
    outputs = ["Y", "Y_h", "Y_c"][: 3 if case["op"] == "LSTM" else 2]
    wanted = [name if name in case["outputs"] else "" for name in outputs]
    node = helper.make_node(case["op"], names, wanted, name="cell", hidden_size=case["hidden"], **case["attrs"])
    fed = set(operands) if case["computed"] else set(operands) & {"X", "initial_h", "initial_c", "sequence_lens"}
    inputs = [
        helper.make_tensor_value_info(
            name, TensorProto.INT32 if name == "sequence_lens" else TensorProto.FLOAT, [None] * array.ndim
        )
        for name, array in operands.items()
        if name in fed
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in wanted if name]
    constants = [initializer(name, array) for name, array in operands.items() if name not in fed]
    return model([node], inputs, results, constants).SerializeToString(), {name: operands[name] for name in fed}


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_random_nodes(op):
    ran = {"onnxruntime": 0}

    @settings(max_examples=200, deadline=None, print_blob=True)
    @given(cases(op))
    def run(case):
        operands = operands_of(case)
        data, feeds = model_of(case, operands)
        session = webrnn.InferenceSession(data, backend="numpy")
        check(session.graph)
        results = session.run(None, feeds)
        expected = scalar_recurrent.run(op, operands, {**case["attrs"], "functions": case["functions"]})
        wanted = [array for name, array in zip(["Y", "Y_h", "Y_c"], expected, strict=False) if name in case["outputs"]]
        for result, array in zip(results, wanted, strict=True):
            np.testing.assert_allclose(result, array, rtol=1e-4, atol=2e-5)
        if case["attrs"]["layout"] == 1 or ZERO_BY_DEFAULT_IN_ORT & {item[:2] for item in case["functions"]}:
            return
        try:
            theirs = onnxruntime.InferenceSession(data).run(None, feeds)
        except Exception as error:
            note(f"onnxruntime refuses: {error}")
            return
        if OVERFLOWS_IN_ORT & {item[0] for item in case["functions"]} and not all(map(_is_finite, theirs)):
            note("onnxruntime overflows")
            return
        ran["onnxruntime"] += 1
        for result, array in zip(results, theirs, strict=True):
            np.testing.assert_allclose(result, array, rtol=1e-4, atol=2e-5)

    run()
    print(f"{op}: 200 cases, {ran['onnxruntime']} of them also in onnxruntime")
    assert ran["onnxruntime"] >= 50


def _is_finite(array):
    return np.isfinite(array).all()
