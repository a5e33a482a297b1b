"""DynamicQuantizeLSTM as a Scan, against its numpy function, which is compared with onnxruntime."""

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.backends import BACKENDS
from tests.onnx.models import initializer
from webrnn.checks import arrays

STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 6, 4
FORMS = [
    {},
    {"direction": "reverse", "lengths": True, "states": True},
    {"direction": "bidirectional", "by_column": True, "bias": True},
    {"direction": "bidirectional", "lengths": True, "peepholes": True, "signed": True, "bias": True},
    {"clip": 0.4, "input_forget": 1, "bias": True, "activations": ["Sigmoid", "Relu", "Softsign"]},
]


def _operands(direction, lengths, states, by_column, bias, peepholes, signed):
    rng = np.random.default_rng(1)
    d = 2 if direction == "bidirectional" else 1

    def floats(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def matrix(rows):
        kind = np.int8 if signed else np.uint8
        return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (d, rows, 4 * HIDDEN)).astype(kind)

    shape = (d, 4 * HIDDEN) if by_column else (d,)
    scale = [np.abs(floats(*shape)) / 50 for _ in range(2)]
    zero = np.full(shape, 3 if signed else 120, np.int8 if signed else np.uint8)
    return [
        floats(STEPS, BATCH, INPUTS),
        matrix(INPUTS),
        matrix(HIDDEN),
        floats(d, 8 * HIDDEN) if bias else None,
        np.array([2, 4, 0], np.int32) if lengths else None,
        floats(d, BATCH, HIDDEN) if states else None,
        floats(d, BATCH, HIDDEN) if states else None,
        floats(d, 3 * HIDDEN) if peepholes else None,
        *(scale[0], zero, scale[1], zero),
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_as_the_function(form, backend):
    switches = ("lengths", "states", "by_column", "bias", "peepholes", "signed")
    operands = _operands(form.get("direction"), **{name: form.get(name, False) for name in switches})
    attrs = {name: value for name, value in form.items() if name not in switches}
    expected = arrays.call("DynamicQuantizeLSTM", "com.microsoft", operands, {**attrs, "hidden_size": HIDDEN}, 3)
    fed = {0: "x", 4: "lengths", 5: "h", 6: "c"}
    names = ["" if operand is None else fed.get(index, f"w{index}") for index, operand in enumerate(operands)]
    feeds = {name: operand for name, operand in zip(names, operands, strict=True) if name in fed.values()}
    constants = [initializer(name, operand) for name, operand in zip(names, operands, strict=True) if name[:1] == "w"]
    node = helper.make_node(
        "DynamicQuantizeLSTM", names, ["y", "y_h", "y_c"], domain="com.microsoft", hidden_size=HIDDEN, **attrs
    )
    sizes = {"x": ["t", "n", INPUTS], "lengths": ["n"], "h": [None, "n", HIDDEN], "c": [None, "n", HIDDEN]}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(feed.dtype), sizes[name])
        for name, feed in feeds.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("y", "y_h", "y_c")]
    graph = helper.make_graph([node], "g", inputs, outputs, constants)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()
    session = webrnn.InferenceSession(data, backend=backend)
    for result, wanted in zip(session.run(None, feeds), expected, strict=True):
        np.testing.assert_allclose(result, wanted, atol=2e-6)
    assert backend == "numpy" or "numpy" not in session.report(), session.report()
