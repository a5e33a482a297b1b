"""RNN, GRU and LSTM are read as cells, which give the bits of the plain ops that they stand for."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import webrnn
from tests.backends import BACKENDS
from tests.passes.plain_cells import written_plainly
from webrnn.errors import ModelError
from webrnn.onnx.reader import read_model

HIDDEN, INPUTS, STEPS, BATCH = 5, 3, 4, 2
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
TYPES = {"float": np.float32, "half": np.float16, "double": np.float64}
FORMS = {
    "RNN": [{}, {"activations": ["Affine"], "activation_alpha": [0.5], "clip": 0.3}],
    "GRU": [{}, {"linear_before_reset": 1}, {"activations": ["HardSigmoid", "ScaledTanh"], "clip": 0.7}],
    "LSTM": [{}, {"input_forget": 1}, {"peepholes": 1}, {"activations": ["Sigmoid", "Softsign", "Relu"], "clip": 0.7}],
}
CASES = [(op, form) for op, forms in FORMS.items() for form in forms]


def recurrent(op, dtype=np.float32, weights_type=None, peepholes=0, direction="forward", **attrs) -> bytes:
    n = 2 if direction == "bidirectional" else 1
    rng = np.random.default_rng(0)
    wide = GATES[op] * HIDDEN
    shapes = {"W": (n, wide, INPUTS), "R": (n, wide, HIDDEN), "B": (n, 2 * wide)}
    if peepholes:
        shapes["P"] = (n, 3 * HIDDEN)
    arrays = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(weights_type or dtype), name)
        for name, shape in shapes.items()
    ]
    names = ["X", "W", "R", "B", *(["", "", "", "P"] if peepholes else [])]
    node = helper.make_node(op, names, ["Y"], hidden_size=HIDDEN, direction=direction, **attrs)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = helper.make_tensor_value_info("X", kind, ["steps", "batch", INPUTS])
    y = helper.make_tensor_value_info("Y", kind, None)
    graph = helper.make_graph([node], "g", [x], [y], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()


def feeds(dtype):
    return {"X": np.random.default_rng(1).standard_normal((STEPS, BATCH, INPUTS)).astype(dtype)}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize(("op", "form"), CASES)
def test_the_bits_of_plain_ops(op, form, dtype, backend):
    for direction in ("forward", "bidirectional"):
        more = {} if "activations" not in form else {"activations": form["activations"] * 2}
        given = {**form, **(more if direction == "bidirectional" else {})}
        data = recurrent(op, dtype, direction=direction, **given)
        with written_plainly():
            plain = webrnn.InferenceSession(data, backend=backend)
        whole = webrnn.InferenceSession(data, backend=backend)
        (expected,), (found,) = plain.run(None, feeds(dtype)), whole.run(None, feeds(dtype))
        if dtype is np.float16 and backend != "numpy":
            # A cell is computed in float and rounded once; plain ops are rounded one by one.
            np.testing.assert_allclose(found, expected, rtol=0, atol=4 * np.finfo(dtype).eps)
        else:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("op", "form"), CASES)
def test_a_step_is_products_and_cells(op, form):
    graph = read_model(recurrent(op, **form))
    (body,) = [inner for inner in graph.walk() if inner is not graph]
    resets_first = op == "GRU" and "linear_before_reset" not in form
    cells = ["GruReset", "GruUpdate"] if resets_first else [f"{op.capitalize()}Cell"]
    assert sorted(node.op for node in body.nodes) == sorted([*cells, *["Linear"] * (1 + len(cells))])


@pytest.mark.parametrize("op", GATES)
def test_other_types_are_refused(op):
    bad = onnx.ModelProto.FromString(recurrent(op))
    for tensor in bad.graph.initializer:
        if tensor.name == "R":
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), "R"))
    for backend in BACKENDS:
        with pytest.raises(ModelError, match="different types"):
            webrnn.InferenceSession(bad.SerializeToString(), backend=backend)


def test_the_type_of_weights_is_that_of_the_input():
    with pytest.raises(ModelError, match="X is of type float, W of double"):
        webrnn.InferenceSession(recurrent("GRU", weights_type=np.float64))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_clip_of_zero_is_one(backend):
    (y,) = webrnn.InferenceSession(recurrent("RNN", clip=0.0), backend=backend).run(None, feeds(np.float32))
    assert not np.any(y)
    with pytest.raises(ModelError, match="clip"):
        webrnn.InferenceSession(recurrent("RNN", clip=-1.0), backend=backend)
