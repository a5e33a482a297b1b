"""A product of dequantized bytes is a product of the bytes, scaled once.

MatMul, Gemm or Conv of DequantizeLinear(x) and DequantizeLinear(constant) becomes MatMulInteger or ConvInteger, whose
sums are exact, times both scales: the weights stay bytes. That is what onnxruntime makes of such pairs, too.

Requires: facts from infer_shapes.
Ensures: such a product is one of bytes if x has one scale, the weights have one or one for each result, and they are
not few.
Declines: "its activations have several scales", "its scales are not along its results", "a type is not one that
products of bytes have", "its weights are few", "it scales or transposes its operands".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from webrnn import reference
from webrnn.ir import DType, Graph, Node, Value

from .base import Context, Pass, PassResult
from .expansions.emitter import Declined, Emitter
from .expansions.quantize import WINDOW, has_instruction
from .rewriting import Additions, constant_of

_BYTES = (DType.UINT8, DType.INT8)
_FEWEST_WEIGHTS = 256
_Producers = dict[Value, Node]


@dataclass(frozen=True)
class _Quantized:
    """The operands of a DequantizeLinear."""

    values: Value
    scale: Value
    zero: Value | None
    axis: int


class IntegerProducts(Pass):
    reorders_arithmetic = True

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        producers = {value: node for node in graph.nodes for value in node.outputs if value is not None}
        new = Additions(graph, context)
        nodes: list[Node] = []
        for node in graph.nodes:
            emitter = Emitter(graph, node, context, new)
            made = None
            try:
                if not node.domain and node.op in _PRODUCTS and _emit(emitter, graph, node, producers):
                    made = emitter.nodes if result.fires(f"{node.op} {node.label}") else None
            except Declined as decline:
                result.declines_at(node, str(decline))
            nodes.extend(made or [node])
        graph.nodes = nodes
        new.drop_unused(nodes)


def _emit(e: Emitter, graph: Graph, node: Node, producers: _Producers) -> bool:
    x, w = (_dequantized(e, value, producers) for value in node.inputs[:2])
    if x is None or w is None:
        return False
    weights, scale = _known(graph, w.values, producers), constant_of(graph, w.scale)
    zero = None if w.zero is None else constant_of(graph, w.zero)
    if weights is None or scale is None or (w.zero is not None and zero is None):
        return False
    if e.dtype(x.values) not in _BYTES or DType.of(weights) not in _BYTES:
        raise Declined("a type is not one that products of bytes have")
    if any(e.dtype(each.scale) is not DType.FLOAT for each in (x, w)) or e.dtype(node.outputs[0]) is not DType.FLOAT:  # type: ignore[arg-type]
        raise Declined("a type is not one that products of bytes have")
    if weights.size < _FEWEST_WEIGHTS:
        raise Declined("its weights are few")
    if any(size != 1 for size in e.shape(x.scale)):
        raise Declined("its activations have several scales")
    if node.op == "Conv":
        _conv(e, node, x, w, weights, scale, zero)
    else:
        _matmul(e, node, x, w, weights, scale, zero)
    return True


def _matmul(
    e: Emitter, node: Node, x: _Quantized, w: _Quantized, weights: np.ndarray, scale: np.ndarray,
    zero: np.ndarray | None,
) -> None:  # fmt: skip
    is_gemm = node.op == "Gemm"
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    if is_gemm and (node.attrs.get("transA", 0) or {node.attrs.get(name, 1.0) for name in ("alpha", "beta")} != {1.0}):
        raise Declined("it scales or transposes its operands")
    if weights.ndim != 2:
        raise Declined("its scales are not along its results")
    is_turned = bool(is_gemm and node.attrs.get("transB", 0))
    along = 0 if is_turned else 1
    by_column = _along(scale, w, weights.ndim, along), None if zero is None else _along(zero, w, weights.ndim, along)
    matrix = np.ascontiguousarray(weights.T) if is_turned else weights
    total = e.op(
        "MatMulInteger", x.values, e.constant(matrix, "weights"), _scalar(e, x.zero),
        None if by_column[1] is None else e.constant(by_column[1]),
    )  # fmt: skip
    _scale(e, node, x, total, by_column[0], bias)


def _conv(
    e: Emitter, node: Node, x: _Quantized, w: _Quantized, weights: np.ndarray, scale: np.ndarray,
    zero: np.ndarray | None,
) -> None:  # fmt: skip
    if not has_instruction(node, weights):
        raise Declined("its weights are few")
    by_filter = _along(scale, w, weights.ndim, 0), None if zero is None else _along(zero, w, weights.ndim, 0)
    attrs = {name: node.attrs[name] for name in WINDOW if name in node.attrs}
    total = e.op(
        "ConvInteger", x.values, e.constant(weights, "weights"), _scalar(e, x.zero),
        None if by_filter[1] is None else e.constant(by_filter[1]), **attrs,
    )  # fmt: skip
    spread = (-1, *[1] * (weights.ndim - 2))
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    if bias is not None:
        known = e.array(bias)
        bias = e.op("Reshape", bias, e.ints(*spread)) if known is None else e.constant(known.reshape(spread), "bias")
    _scale(e, node, x, total, by_filter[0].reshape(spread) if by_filter[0].ndim else by_filter[0], bias)


def _scale(e: Emitter, node: Node, x: _Quantized, total: Value, scale: np.ndarray, bias: Value | None) -> None:
    factor = e.op("Mul", _scalar(e, x.scale), e.constant(scale, "scale"))
    output = node.outputs[0]
    product = e.op("Mul", e.cast(total, DType.FLOAT), factor, output=output if bias is None else None)
    if bias is not None:
        e.op("Add", product, bias, output=output)


def _along(parameter: np.ndarray, w: _Quantized, rank: int, axis: int) -> np.ndarray:
    """A scale or zero point: one, or one for each slice of an axis of the weights."""
    if parameter.size == 1:
        return parameter.reshape(())
    if parameter.ndim != 1 or w.axis % rank != axis:
        raise Declined("its scales are not along its results")
    return parameter


def _scalar(e: Emitter, value: Value | None) -> Value | None:
    if value is None or not e.shape(value):
        return value
    array = e.array(value)
    return e.op("Reshape", value, e.ints()) if array is None else e.constant(array.reshape(()))


def _dequantized(e: Emitter, value: Value | None, producers: _Producers) -> _Quantized | None:
    node = producers.get(value) if value is not None else None
    if node is None or node.op != "DequantizeLinear" or node.domain or node.attrs.get("block_size", 0):
        return None
    values, scale, zero = [*node.inputs, None][:3]
    assert values is not None
    assert scale is not None
    return _Quantized(values, scale, zero, node.attrs.get("axis", 1))


def _known(graph: Graph, value: Value, producers: _Producers) -> np.ndarray | None:
    """A constant, or what a QuantizeLinear makes of constants."""
    array, node = constant_of(graph, value), producers.get(value)
    if array is not None or node is None or node.op != "QuantizeLinear" or node.domain:
        return array
    arguments = [constant_of(graph, each) for each in node.inputs]
    if any(array is None and each is not None for array, each in zip(arguments, node.inputs, strict=True)):
        return None
    quantize = reference.lookup("", "QuantizeLinear")
    assert quantize is not None
    return np.asarray(quantize(*arguments, **node.attrs))


_PRODUCTS = ("MatMul", "Gemm", "Conv")
