"""What onnxruntime's quantize_dynamic and quantize_static write opens, is right and becomes a whole plan.

Results are compared with onnxruntime's on the same file. Where a number lies in the middle of two integers onnxruntime
may round to the other one: a result may be some steps of its scale away. Weights have 7 bits (`reduce_range`), because
without VNNI onnxruntime's products of bytes saturate.
"""

from __future__ import annotations

import logging

import numpy as np
import onnxruntime
import pytest
from onnx import helper
from onnxruntime import quantization

import webrnn
from tests.backends import BACKENDS
from tests.onnx.models import floats, initializer, model, recurrent

logging.getLogger().setLevel(logging.ERROR)


def _array(*shape, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) / 3).astype(np.float32)


def _dense():
    nodes = [
        helper.make_node("MatMul", ["X", "w"], ["a"], name="first"),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Gemm", ["d", "v", "b2"], ["Y"], name="second", transB=1),
    ]
    weights = [("w", (12, 20)), ("b", (20,)), ("v", (7, 20)), ("b2", (7,))]
    constants = [initializer(name, _array(*shape, seed=index)) for index, (name, shape) in enumerate(weights)]
    return model(nodes, [floats("X", ["n", 12])], [floats("Y", ["n", 7])], constants), (5, 12)


def _convolutions():
    nodes = [
        helper.make_node("Conv", ["X", "w", "b"], ["a"], name="first", pads=[1, 1]),
        helper.make_node("LeakyRelu", ["a"], ["c"], alpha=0.1),
        helper.make_node("Sigmoid", ["c"], ["s"]),
        helper.make_node("Mul", ["c", "s"], ["m"]),
        helper.make_node("Concat", ["m", "c"], ["k"], axis=1),
        helper.make_node("AveragePool", ["k"], ["p"], kernel_shape=[2], strides=[2]),
        helper.make_node("Conv", ["p", "v"], ["Y"], name="second", strides=[2]),
    ]
    weights = [("w", (8, 3, 3)), ("b", (8,)), ("v", (5, 16, 3))]
    constants = [initializer(name, _array(*shape, seed=index)) for index, (name, shape) in enumerate(weights)]
    return model(nodes, [floats("X", [2, 3, 16])], [floats("Y", None)], constants), (2, 3, 16)


def _recurrent(op):
    return lambda: (recurrent(op, steps=6, batch=1, inputs=4, hidden=16), (6, 1, 4))


MODELS = {"dense": _dense, "convolutions": _convolutions, "GRU": _recurrent("GRU"), "LSTM": _recurrent("LSTM")}


class _Calibration(quantization.CalibrationDataReader):
    def __init__(self, shape):
        self._feeds = iter([{"X": _array(*shape, seed=seed) * 3} for seed in range(4)])

    def get_next(self):
        return next(self._feeds, None)


def _quantized(name, how, folder):
    made, shape = MODELS[name]()
    source, target = folder / "model.onnx", folder / "quantized.onnx"
    source.write_bytes(made.SerializeToString())
    if how == "dynamic":
        quantization.quantize_dynamic(source, target, reduce_range=True)
    elif how == "dynamic by channel":
        kinds = {"per_channel": True, "weight_type": quantization.QuantType.QUInt8}
        quantization.quantize_dynamic(source, target, reduce_range=True, **kinds)
    else:
        form = quantization.QuantFormat.QDQ if "QDQ" in how else quantization.QuantFormat.QOperator
        kinds = {"activation_type": quantization.QuantType.QInt8} if "int8" in how else {}
        data = _Calibration(shape)
        quantization.quantize_static(source, target, data, quant_format=form, reduce_range=True, **kinds)
    return target, shape


HOW = ["dynamic", "dynamic by channel", "QDQ", "QDQ int8", "QOperator"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", MODELS)
def test_as_onnxruntime(name, how, tmp_path):
    path, shape = _quantized(name, how, tmp_path)
    x = _array(*shape, seed=9) * 3
    expected = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"X": x})
    first = None
    for backend in BACKENDS:
        session = webrnn.InferenceSession(path, backend=backend)
        results = session.run(None, {"X": x})
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, wanted, atol=0.02 * np.abs(wanted).max())
        if backend != "numpy":
            assert "numpy" not in session.report(), session.report()
            first = first or results
            assert all(map(np.array_equal, results, first))
