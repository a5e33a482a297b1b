"""NaN, infinities and what does not fit: quantization and casts; what an Attention shows of its scores."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from .case import Citation, case, floats, model_of, node

SATURATE = Citation("QuantizeLinear", 19, "The quantization formula is `y = saturate ((x / y_scale) + y_zero_point)`.")
OUT_OF_RANGE = Citation("Cast", 13, "fixed point: undefined if OOR.")
_ODD = floats(np.nan, np.inf, -np.inf, 300, -300, 2.5, 3.5)


def _quantized(dtype: type, opset: int, expected: list[int]):
    return case(
        f"QuantizeLinear-{opset} of NaN and infinities to {dtype.__name__}",
        node("QuantizeLinear", _ODD, np.float32(1), dtype(1), opset=opset),
        np.array(expected, dtype),
        "both",
        "infinities saturate; of NaN the text says nothing: onnxruntime and ONNX's reference give the smallest value",
        SATURATE,
    )


def _cast(dtype: type, expected: list[int]):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return case(
        f"Cast of what does not fit to {dtype.__name__}",
        node("Cast", floats(np.nan, np.inf, -np.inf, 1e10, -1e10, 300.7, -300.7), opset=13, to=kind),
        np.array(expected, dtype),
        "onnxruntime",
        "undefined; all backends give what an x86 processor gives",
        OUT_OF_RANGE,
    )


def _through_float8(to: int, saturate: int):
    x = floats(np.nan, np.inf, -np.inf, 464, 465, -1e6, -0.0)
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=to, saturate=saturate),
        helper.make_node("Cast", ["narrow"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    ports = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, x.shape) for name in "xy"]
    return model_of(helper.make_graph(nodes, "g", ports[:1], ports[1:]), 21), {"x": x}


def _scores(mode: int):
    """Attention with a cap; its results and what qk_matmul_output_mode shows."""
    q, k = floats(1, 0, 0, 2).reshape(1, 1, 2, 2), floats(4, 0, 0, 1).reshape(1, 1, 2, 2)
    model, feeds = node(
        "Attention", q, k, k, opset=23, fed=(0, 1, 2), scale=1.0, softcap=2.0, qk_matmul_output_mode=mode
    )
    model.graph.node[0].output.extend(["", "", "qk"])
    del model.graph.output[:]
    model.graph.output.append(onnx.ValueInfoProto(name="qk"))
    return model, feeds


_RAW = floats(4, 0, 0, 2).reshape(1, 1, 2, 2)

CASES = [
    _quantized(np.uint8, 13, [0, 255, 0, 255, 0, 3, 5]),
    _quantized(np.int8, 13, [-128, 127, -128, 127, -128, 3, 5]),
    _quantized(np.uint16, 21, [0, 65535, 0, 301, 0, 3, 5]),
    _quantized(np.int16, 21, [-32768, 32767, -32768, 301, -299, 3, 5]),
    _cast(np.int32, [-(2**31)] * 5 + [300, -300]),
    _cast(np.int64, [-(2**63)] * 3 + [10**10, -(10**10), 300, -300]),
    _cast(np.int16, [0, 0, 0, 0, 0, 300, -300]),
    _cast(np.uint8, [0, 0, 0, 0, 0, 44, 212]),
    case(
        "Cast to float8e4m3fn and back, saturated",
        _through_float8(17, 1),
        floats(np.nan, 448, -448, 448, 448, -448, -0.0),
        "both",
        "what does not fit becomes the largest value",
        Citation("Cast", 19, "By default the conversion of a float *x* obeys"),
    ),
    case(
        "Cast to float8e4m3fn and back, not saturated",
        _through_float8(17, 0),
        floats(np.nan, np.nan, np.nan, 448, np.nan, np.nan, -0.0),
        "both",
        "464 is a tie between 448 and the pattern of NaN, and 448 is the even one",
        Citation("Cast", 19, "The behavior changes if the parameter 'saturate' is set to False."),
    ),
    case(
        "Attention shows raw scores in mode 0, with softcap",
        _scores(0),
        _RAW,
        "both",
        "mode 0 is the product itself; ONNX's reference shows it after softcap",
        Citation("Attention", 23, "If set to `0`, qk_matmul_output is the output of qk matmul."),
        1e-6,
    ),
    case(
        "Attention shows capped scores in mode 1",
        _scores(1),
        2 * np.tanh(_RAW / 2),
        "both",
        "the cap comes before the mask",
        Citation("Attention", 23, "qk_matmul_output is the output after the softcap operation (before mask addition)."),
        1e-6,
    ),
    case(
        "a symmetric HammingWindow of one sample",
        node("HammingWindow", np.array(1, np.int64), opset=17, periodic=0),
        floats(float("nan")),
        "both",
        "the function divides by the length less one",
        Citation(
            "HammingWindow", 17, "If 1, returns a window to be used as periodic function. If 0, return a symmetric"
        ),
    ),
]
