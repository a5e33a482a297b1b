"""Each older form gives the same as onnxruntime, which implements it."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import webrnn
from tests.onnx.models import floats, initializer, model
from webrnn.onnx.opsets import ADAPTERS

onnxruntime.set_default_logger_severity(4)

X = np.random.default_rng(0).normal(size=(2, 3, 4, 4)).astype(np.float32)


def _c(of_channels):
    return of_channels[:, None, None]


PER_CHANNEL = [initializer(name, np.abs(X[0, :, 0, index]) + 0.5) for index, name in enumerate(["s", "b", "m", "v"])]
SCALES = initializer("scales", np.float32([1, 1, 2, 2]))

CASES = [
    ("Squeeze", 11, {"axes": [0]}, X[:1], []),
    ("Unsqueeze", 11, {"axes": [0, 3]}, X, []),
    ("ReduceMean", 11, {"axes": [1], "keepdims": 0}, X, []),
    ("ReduceMax", 13, {"axes": [-1]}, X, []),
    ("ReduceSum", 11, {"axes": [1, 2]}, X, []),
    ("ReduceL2", 17, {}, X, []),
    ("Softmax", 11, {"axis": 1}, X, []),
    ("Softmax", 12, {}, X, []),
    ("Softmax", 13, {}, X, []),
    ("LogSoftmax", 11, {"axis": 2}, X, []),
    ("Hardmax", 11, {"axis": 1}, X, []),
    ("Clip", 7, {"min": -0.5, "max": 0.5}, X, []),
    ("Clip", 10, {"max": 0.5}, X, []),
    ("Pad", 7, {"pads": [0, 0, 1, 0, 0, 0, 0, 2], "value": 1.5}, X, []),
    ("Pad", 10, {"pads": [0, 0, 1, 0, 0, 0, 0, 2], "mode": "reflect"}, X, []),
    ("Slice", 9, {"starts": [1, -3], "ends": [2, 1000], "axes": [1, 3]}, X, []),
    ("Slice", 7, {"starts": [1], "ends": [2]}, X, []),
    ("TopK", 9, {"k": 2, "axis": 1}, X, []),
    ("Dropout", 7, {"ratio": 0.4}, X, []),
    ("Dropout", 10, {"ratio": 0.4}, X, []),
    ("Split", 11, {"axis": 3}, X, []),
    ("Split", 11, {"axis": 1, "split": [1, 2]}, X, []),
    ("Split", 13, {"axis": 2}, X, []),
    ("Upsample", 7, {"scales": [1.0, 1.0, 2.0, 3.0]}, X, []),
    ("Upsample", 9, {"mode": "linear"}, X, [SCALES]),
    ("Resize", 10, {}, X, [SCALES]),
    ("Resize", 10, {"mode": "linear"}, X, [SCALES]),
    ("BatchNormalization", 7, {"epsilon": 0.1}, X, PER_CHANNEL),
    ("BatchNormalization", 9, {}, X, PER_CHANNEL),
]
TWO_OUTPUTS = {"Split", "TopK"}


@pytest.mark.parametrize(
    ("op", "opset", "attrs", "x", "constants"), CASES, ids=[f"{case[0]}-{case[1]}-{i}" for i, case in enumerate(CASES)]
)
def test_older_form(op, opset, attrs, x, constants):
    outputs = ["y", "z"] if op in TWO_OUTPUTS else ["y"]
    node = helper.make_node(op, ["x", *(item.name for item in constants)], outputs, **attrs)
    infos = [helper.make_empty_tensor_value_info(name) for name in outputs]
    data = model([node], [floats("x", x.shape)], infos, constants, opset=opset).SerializeToString()
    results = webrnn.InferenceSession(data, backend="numpy").run(None, {"x": x})
    for ours, theirs in zip(results, onnxruntime.InferenceSession(data).run(None, {"x": x}), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


C = X[0, :, 0, 0]
FIRST_FORMS = [
    (
        "BatchNormalization",
        6,
        {"is_test": 1, "epsilon": 0.0},
        [C, C, C, C * C],
        (X - _c(C)) / _c(abs(C)) * _c(C) + _c(C),
    ),
    ("Add", 6, {"broadcast": 1}, [X[0, 0, 0]], X + X[0, 0, 0]),
    ("Add", 6, {"broadcast": 1, "axis": 1}, [C], X + _c(C)),
    ("Mul", 6, {"broadcast": 1, "axis": -3}, [X[0, :, :, 0]], X * X[0, :, :, :1]),
    ("PRelu", 6, {}, [C], np.where(X < 0, X * _c(C), X)),
    ("PRelu", 6, {}, [C[:1]], np.where(X < 0, X * C[0], X)),
    ("Cast", 5, {"to": "INT64"}, [], X.astype(np.int64)),
    ("Reshape", 4, {"shape": [0, -1]}, [], X.reshape(2, -1)),
    ("Relu", 5, {"consumed_inputs": [0]}, [], np.maximum(X, 0)),
    ("Tile", 5, {}, [np.float32(3), np.float32(2)], np.tile(X, (1, 1, 3, 1))),
    ("Pad", 1, {"paddings": [0, 0, 1, 0, 0, 0, 0, 2]}, [], np.pad(X, [(0, 0), (0, 0), (1, 0), (0, 2)])),
    ("Concat", 3, {}, [X[:, :1]], np.concatenate([X, X[:, :1]], 1)),
    ("Selu", 5, {}, [], 1.0507 * np.where(X > 0, X, 1.6732 * np.expm1(X))),
    ("GlobalLpPool", 1, {"p": 3.0}, [], (abs(X) ** 3).sum((2, 3), keepdims=True) ** (1 / 3)),
    ("Upsample", 6, {"height_scale": 2.0, "width_scale": 3.0}, [], X.repeat(2, 2).repeat(3, 3)),
    ("Dropout", 6, {"is_test": 1}, [], X),
]
"""Forms before opset 7, which onnxruntime does not have."""


@pytest.mark.parametrize(
    ("op", "opset", "attrs", "constants", "expected"),
    FIRST_FORMS,
    ids=[f"{case[0]}-{case[1]}-{i}" for i, case in enumerate(FIRST_FORMS)],
)
def test_first_form(op, opset, attrs, constants, expected):
    names = [f"c{index}" for index in range(len(constants))]
    node = helper.make_node(op, ["x", *names], ["y"], **attrs)
    arrays = [initializer(name, np.asarray(array)) for name, array in zip(names, constants, strict=True)]
    data = model([node], [floats("x", X.shape)], [helper.make_empty_tensor_value_info("y")], arrays, opset=opset)
    (result,) = webrnn.InferenceSession(data.SerializeToString(), backend="numpy").run(None, {"x": X})
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_statistics_of_the_batch_are_refused():
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])
    data = model([node], [floats("x", X.shape)], [floats("y", X.shape)], PER_CHANNEL, opset=6).SerializeToString()
    with pytest.raises(webrnn.UnsupportedOp, match="is_test"):
        webrnn.InferenceSession(data)


def test_adapters_are_in_ascending_order():
    for op, adapters in ADAPTERS.items():
        versions = [below for below, _ in adapters]
        assert versions == sorted(versions), op
