"""Ops of onnxruntime on quantized tensors: what their operands stand for is calculated with, and quantized again.

Products are sums of integers, as in onnxruntime; the others are calculated in float32, where onnxruntime may round
results that lie between two integers to the other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from webrnn.errors import UnsupportedOp
from webrnn.ir import DType, Value

from .contributed import Call, Function
from .quantized_lstm import expand_quantized_lstm

Results = Sequence[Value | None]


def _real(c: Call, first: int) -> Value:
    """What a tensor, its scale and its zero point stand for: three operands from `first` on."""
    return c.op("DequantizeLinear", c.required(first), c.required(first + 1), c.given(first + 2))


def _quantized(c: Call, x: Value, first: int) -> Value:
    return c.op("QuantizeLinear", x, c.required(first), c.given(first + 1))


def _binary(c: Call) -> Results:
    op = c.node.op.removeprefix("QLinear")
    return [_quantized(c, c.op(op, _real(c, 0), _real(c, 3)), 6)]


def _map(op: str, *names: str) -> Function:
    def function(c: Call) -> Results:
        return [_quantized(c, c.op(op, _real(c, 0), **c.rest(*names)), 3)]

    return function


def _softmax(c: Call) -> Results:
    axis, opset = c.attribute("axis", -1), c.attribute("opset", 13)
    x = _real(c, 0)
    if opset >= 13:
        return [_quantized(c, c.op("Softmax", x, axis=axis), 3)]
    rows = c.op("Softmax", c.op("Flatten", x, axis=axis), axis=1)
    return [_quantized(c, c.op("Reshape", rows, c.op("Shape", x), allowzero=1), 3)]


def _pool(c: Call) -> Results:
    last = c.attribute("channels_last", 0)
    if c.node.op == "QLinearGlobalAveragePool":
        attrs: dict[str, Any] = {}
    else:
        attrs = c.rest("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
    op = c.node.op.removeprefix("QLinear")
    x = _real(c, 0)
    rank = len(c.shape(c.required(0), "X")) if last else 0
    if last:
        x = c.op("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)])
    y = c.op(op, x, **attrs)
    if last:
        y = c.op("Transpose", y, perm=[0, *range(2, rank), 1])
    return [_quantized(c, y, 3)]


def _reduce_mean(c: Call) -> Results:
    axes, keepdims = c.attribute("axes", []), c.attribute("keepdims", 1)
    given = c.b.ints(*axes) if axes else None
    return [_quantized(c, c.op("ReduceMean", _real(c, 0), given, keepdims=keepdims), 3)]


def _concat(c: Call) -> Results:
    axis = c.attribute("axis", 0)
    parts = [_quantized(c, _real(c, first), 0) for first in range(2, len(c.node.inputs), 3)]
    return [c.op("Concat", *parts, axis=axis)]


def _where(c: Call) -> Results:
    return [_quantized(c, c.op("Where", c.required(0), _real(c, 1), _real(c, 4)), 7)]


def _conv(c: Call) -> Results:
    c.only("channels_last", 0)
    attrs = c.rest("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    return [c.op("QLinearConv", *c.node.inputs, **attrs)]


def _linear(c: Call) -> Results:
    """QuantizeLinear and DequantizeLinear, which onnxruntime had for more types before ONNX did."""
    return [c.op(c.node.op, *c.node.inputs, **c.rest("axis", "block_size"))]


def _float_product(
    c: Call, a: Value, b: Value, a_scale: Value, b_scale: Value, a_zero: Value | None, b_zero: Value | None
) -> Value:
    """The product of integers, as the floats that it stands for."""
    total = c.op("Cast", c.op("MatMulInteger", a, b, a_zero, b_zero), to=int(DType.FLOAT))
    return c.op("Mul", total, c.op("Mul", a_scale, b_scale))


def _with_bias(c: Call, product: Value, index: int) -> Results:
    bias = c.given(index)
    return [product if bias is None else c.op("Add", product, bias)]


def _matmul_integer_to_float(c: Call) -> Results:
    a, b, a_scale, b_scale = (c.required(index) for index in range(4))
    return _with_bias(c, _float_product(c, a, b, a_scale, b_scale, c.given(4), c.given(5)), 6)


def _dynamic_quantize_matmul(c: Call) -> Results:
    b, b_scale = c.required(1), c.required(2)
    quantized, scale, zero = c.ops("DynamicQuantizeLinear", 3, c.required(0))
    return _with_bias(c, _float_product(c, quantized, b, scale, b_scale, zero, c.given(3)), 4)


def _qgemm(c: Call) -> Results:
    alpha, turns = c.attribute("alpha", 1.0), [c.attribute(name, 0) for name in ("transA", "transB")]
    operands = [c.required(0), c.required(3)]
    for index, turned in enumerate(turns):
        if turned:
            operands[index] = c.op("Transpose", operands[index], perm=[1, 0])
    total = c.op("MatMulInteger", *operands, c.given(2), c.given(5))
    added = c.given(6)
    if added is not None:
        total = c.op("Add", total, added)
    factor = c.op("Mul", c.required(1), c.required(4))
    if alpha != 1:
        factor = c.op("Mul", factor, c.number(alpha, factor))
    wide = c.op("Cast", total, to=int(DType.FLOAT))
    y_scale, y_zero = c.given(7), c.given(8)
    if y_scale is None:
        return [c.op("Mul", wide, factor)]
    scaled = c.op("Mul", wide, c.op("Div", factor, y_scale))
    return [c.op("QuantizeLinear", scaled, c.number(1, scaled), y_zero)]


def _matmul_nbits(c: Call) -> Results:
    k, n, block = (c.require_attribute(name) for name in ("K", "N", "block_size"))
    bits = c.attribute("bits", 4)
    c.attribute("accuracy_level", 0)  # how onnxruntime calculates, not what
    c.only("weight_prepacked", 0)
    if bits not in (2, 4, 8):
        raise UnsupportedOp(f"{bits} is not supported", attribute="bits")
    blocks = -(-k // block)
    packed, scales = c.array(1, "B").reshape(n, blocks, -1), c.array(2, "the scales").reshape(n, blocks)
    numbers = _unpacked(packed, bits)[:, :, :block].astype(np.float32)
    zeros = np.full((n, blocks), 1 << (bits - 1), np.float32)
    if c.given(3) is not None:
        given = c.array(3, "the zero points")
        is_packed = given.dtype == np.uint8
        zeros = (_unpacked(given.reshape(n, -1), bits)[:, :blocks] if is_packed else given.reshape(n, blocks)).astype(
            np.float32
        )
    columns = numbers.reshape(n, -1)[:, :k]
    groups = np.arange(k) // block if c.given(4) is None else c.array(4, "g_idx").reshape(-1)[:k]
    weights = (columns - zeros[:, groups]) * scales.astype(np.float32)[:, groups]
    matrix = c.b.constant(np.ascontiguousarray(weights.T.astype(scales.dtype)), f"{c.node.name}_weights")
    return _with_bias(c, c.op("MatMul", c.required(0), matrix), 5)


def _unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of some bits, several in a byte along the last axis, the lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return numbers.reshape(*packed.shape[:-1], -1)


def _dynamic_quantize_lstm(c: Call) -> Results:
    return expand_quantized_lstm(c)


FUNCTIONS: dict[str, Function] = {
    "DequantizeLinear": _linear,
    "DynamicQuantizeLSTM": _dynamic_quantize_lstm,
    "DynamicQuantizeMatMul": _dynamic_quantize_matmul,
    "MatMulIntegerToFloat": _matmul_integer_to_float,
    "MatMulNBits": _matmul_nbits,
    "QGemm": _qgemm,
    "QLinearAdd": _binary,
    "QLinearAveragePool": _pool,
    "QLinearConcat": _concat,
    "QLinearConv": _conv,
    "QLinearGlobalAveragePool": _pool,
    "QLinearLeakyRelu": _map("LeakyRelu", "alpha"),
    "QLinearMul": _binary,
    "QLinearReduceMean": _reduce_mean,
    "QLinearSigmoid": _map("Sigmoid"),
    "QLinearSoftmax": _softmax,
    "QLinearWhere": _where,
    "QuantizeLinear": _linear,
}
