"""Ops of onnxruntime that are several of ONNX's at once, and older forms of ONNX's own."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.errors import UnsupportedOp
from webrnn.ir import DType, Value

from .contributed import Call, Function

Results = Sequence[Value | None]

_ACTIVATIONS = {
    "Relu": (),
    "Tanh": (),
    "Sigmoid": (),
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Elu": ("alpha",),
    "Softsign": (),
    "Softplus": (),
}
"""The names of what `activation_params` of FusedConv gives, in order."""


def _activated(c: Call, x: Value, name: str, params: Sequence[float]) -> Value:
    if not name:
        return x
    if name == "Clip":
        return c.op("Clip", x, *(c.number(limit, x) for limit in params))
    if name not in _ACTIVATIONS:
        raise UnsupportedOp(f"{name!r} is not supported", attribute="activation")
    return c.op(name, x, **dict(zip(_ACTIVATIONS[name], map(float, params), strict=False)))


def _fused_conv(c: Call) -> Results:
    attrs = c.rest("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    y = c.op("Conv", c.required(0), c.required(1), c.given(2), **attrs)
    added = c.given(3)
    if added is not None:
        y = c.op("Add", y, added)
    return [_activated(c, y, c.attribute("activation", ""), c.attribute("activation_params", []))]


def _fused_gemm(c: Call) -> Results:
    y = c.op("Gemm", c.required(0), c.required(1), c.given(2), **c.rest("alpha", "beta", "transA", "transB"))
    return [_activated(c, y, c.attribute("activation", ""), _separate_params(c))]


def _separate_params(c: Call) -> list[float]:
    given = [c.attribute(f"activation_{name}", None) for name in ("alpha", "beta", "gamma")]
    return [number for number in given if number is not None]


def _fused_matmul(c: Call) -> Results:
    operands = []
    for index, letter in enumerate("AB"):
        x = c.required(index)
        turned, by_batch = c.attribute(f"trans{letter}", 0), c.attribute(f"transBatch{letter}", 0)
        operands.append(_transposed(c, x, bool(turned), bool(by_batch)) if turned or by_batch else x)
    alpha = c.attribute("alpha", 1.0)
    y = c.op("MatMul", *operands)
    return [y if alpha == 1 else c.op("Mul", y, c.number(alpha, y))]


def _transposed(c: Call, x: Value, last: bool, by_batch: bool) -> Value:
    rank = len(c.shape(x, "an operand that is transposed"))
    if rank < 2:
        return x
    axes = list(range(rank))
    if by_batch:  # the first axis goes behind the other axes of the batch
        axes = [*axes[1:-1], axes[0], axes[-1]]
    if last:
        axes[-2:] = axes[:-3:-1]
    return c.op("Transpose", x, perm=axes)


def _fused_matmul_activation(c: Call) -> Results:
    name, params = c.attribute("activation", ""), _separate_params(c)
    c.only("activation_axis", 0, -1)
    (y,) = _fused_matmul(c)
    assert y is not None
    return [_activated(c, y, name, params)]


def _gelu(c: Call) -> Results:
    return [c.op("Gelu", c.required(0))]


def _bias_gelu(c: Call) -> Results:
    return [c.op("Gelu", c.op("Add", c.required(0), c.required(1)))]


def _fast_gelu(c: Call) -> Results:
    x, bias = c.required(0), c.given(1)
    return [c.op("Gelu", x if bias is None else c.op("Add", x, bias), approximate="tanh")]


def _quick_gelu(c: Call) -> Results:
    x, alpha = c.required(0), c.attribute("alpha", 1.702)
    return [c.op("Mul", x, c.op("Sigmoid", c.op("Mul", x, c.number(alpha, x))))]


def normalized(c: Call, x: Value, scale: Value, bias: Value | None, epsilon: float, simplified: bool) -> Results:
    """Output, mean and inverse deviation, the last two only if they are asked for."""
    extra = c.asks_for(1) or c.asks_for(2)
    if not simplified:
        made = c.ops("LayerNormalization", 3 if extra else 1, x, scale, bias, epsilon=epsilon)
        return [*made, None, None][:3]
    y = c.op("RMSNormalization", x, scale, epsilon=epsilon)
    if not extra:
        return [y, None, None]
    square = c.op("ReduceMean", c.op("Mul", x, x), c.b.ints(-1), keepdims=1)
    return [y, None, c.op("Reciprocal", c.op("Sqrt", c.op("Add", square, c.number(epsilon, x))))]


def _simplified_layer_normalization(c: Call) -> Results:
    axis, epsilon = c.attribute("axis", -1), c.attribute("epsilon", 1e-5)
    c.only("stash_type", 1)
    x, scale = c.required(0), c.required(1)
    y = c.op("RMSNormalization", x, scale, axis=axis, epsilon=epsilon)
    if not c.asks_for(1):
        return [y]
    if axis != -1:
        raise UnsupportedOp("with its second output only the last axis is supported", attribute="axis")
    square = c.op("ReduceMean", c.op("Mul", x, x), c.b.ints(-1), keepdims=1)
    return [y, c.op("Reciprocal", c.op("Sqrt", c.op("Add", square, c.number(epsilon, x))))]


def _skip_layer_normalization(c: Call) -> Results:
    simplified = c.node.op == "SkipSimplifiedLayerNormalization"
    epsilon = c.attribute("epsilon", 1e-12)
    x, skip, scale = c.required(0), c.required(1), c.required(2)
    beta, bias = (None, c.given(3)) if simplified else (c.given(3), c.given(4))
    total = c.op("Add", x, skip)
    if bias is not None:
        total = c.op("Add", total, bias)
    return [*normalized(c, total, scale, beta, epsilon, simplified), total]


def _renamed(*attributes: str) -> Function:
    """An op that ONNX has under the same name."""

    def function(c: Call) -> Results:
        count = len(c.node.outputs)
        return c.ops(c.node.op, count, *c.node.inputs, **c.rest(*attributes))

    return function


def _range(c: Call) -> Results:
    start, limit, delta = c.required(0), c.required(1), c.given(2)
    scalars = [c.op("Reshape", value, c.b.ints()) for value in (start, limit)]
    step = c.number(1, start) if delta is None else c.op("Reshape", delta, c.b.ints())
    return [c.op("Range", *scalars, step)]


def _expand_dims(c: Call) -> Results:
    axis = c.op("Cast", c.op("Reshape", c.required(1), c.b.ints(1)), to=int(DType.INT64))
    return [c.op("Unsqueeze", c.required(0), axis)]


def _unique(c: Call) -> Results:
    y, _, inverse, counts = c.ops("Unique", 4, c.required(0), sorted=0)
    return [y, inverse, counts]


def _array_feature_extractor(c: Call) -> Results:
    x, index = c.required(0), c.op("Reshape", c.required(1), c.b.ints(-1))
    y = c.op("Gather", x, index, axis=-1)
    return [c.op("Unsqueeze", y, c.b.ints(0)) if len(c.shape(x, "X")) == 1 else y]


def _binarizer(c: Call) -> Results:
    x, threshold = c.required(0), c.attribute("threshold", 0.0)
    above = c.op("Greater", x, c.number(threshold, x))
    return [c.op("Where", above, c.number(1, x), c.number(0, x))]


FUNCTIONS: dict[str, Function] = {
    "ArrayFeatureExtractor": _array_feature_extractor,
    "BiasGelu": _bias_gelu,
    "Binarizer": _binarizer,
    "ExpandDims": _expand_dims,
    "FastGelu": _fast_gelu,
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
    "FusedMatMul": _fused_matmul,
    "FusedMatMulActivation": _fused_matmul_activation,
    "GatherND": _renamed(),
    "Gelu": _gelu,
    "Pad": _renamed("mode"),
    "QuickGelu": _quick_gelu,
    "Range": _range,
    "SimplifiedLayerNormalization": _simplified_layer_normalization,
    "SkipLayerNormalization": _skip_layer_normalization,
    "SkipSimplifiedLayerNormalization": _skip_layer_normalization,
    "TransposeMatMul": _fused_matmul,
    "Trilu": _renamed("upper"),
    "Unique": _unique,
}
