import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from webrnn.ir import DType, GraphBuilder, Node

RNG = np.random.default_rng(3)
TYPES = {np.uint8: DType.UINT8, np.int8: DType.INT8}


def weights(*shape, dtype=np.int8):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def dequantized(b, x, scale, zero=None, **attrs):
    operands = [b.constant(np.asarray(each)) for each in (scale, zero) if each is not None]
    return b.op("DequantizeLinear", x, *operands, **attrs)


def product(
    op, shape, array, *, scale=0.01, zero=None, axis=1, bias=None, kind=np.uint8, x_scale=0.02, x_zero=7, **attrs
):
    b = GraphBuilder("g")
    x = dequantized(b, b.input("x", TYPES[kind], shape), np.float32(x_scale), kind(x_zero))
    w = dequantized(b, b.constant(array), np.float32(scale), zero, axis=axis)
    operands = [x, w] if bias is None else [x, w, b.constant(bias)]
    out = b.value("y", DType.FLOAT)
    b.add(Node(op, operands, [out], attrs))
    b.graph.outputs = [out]
    return b.graph


@pytest.mark.parametrize(
    ("graph", "shape", "kind", "made"),
    [
        (product("MatMul", (3, 40), weights(40, 9)), (3, 40), np.uint8, "MatMulInteger"),
        (
            product("MatMul", (2, 3, 40), weights(40, 9), scale=abs(floats(9)), zero=weights(9), kind=np.int8),
            (2, 3, 40), np.int8, "MatMulInteger",
        ),
        (product("Gemm", (3, 40), weights(40, 9), bias=floats(9)), (3, 40), np.uint8, "MatMulInteger"),
        (
            product("Gemm", (3, 40), weights(9, 40, dtype=np.uint8), bias=floats(9), transB=1, axis=0,
                    scale=abs(floats(9)), zero=weights(9, dtype=np.uint8)),
            (3, 40), np.uint8, "MatMulInteger",
        ),
        (product("Conv", (2, 12, 9), weights(8, 12, 3), pads=[1, 1]), (2, 12, 9), np.uint8, "ConvInteger"),
        (
            product("Conv", (1, 6, 5, 7), weights(9, 6, 3, 2), bias=floats(9), axis=0, scale=abs(floats(9)),
                    zero=weights(9), kind=np.int8, strides=[2, 1], pads=[1, 0, 0, 1]),
            (1, 6, 5, 7), np.int8, "ConvInteger",
        ),
    ],
    ids=["MatMul", "by column", "Gemm", "turned", "Conv", "by filter"],
)  # fmt: skip
def test_fires(graph, shape, kind, made):
    info = np.iinfo(kind)
    x = np.random.default_rng(1).integers(info.min, info.max + 1, shape).astype(kind)
    assert_keeps_results(graph, [x], "integer_products")
    apply(graph, "integer_products")
    left = ops(graph)
    assert left[made] == 1
    assert not {"MatMul", "Gemm", "Conv"} & left.keys()
    assert sum(array.nbytes for array in graph.constants.values() if array.dtype == np.float32 and array.ndim > 2) < 200


def test_weights_that_are_quantized_in_the_graph():
    b = GraphBuilder("g")
    x = dequantized(b, b.input("x", DType.UINT8, (3, 40)), np.float32(0.1), np.uint8(3))
    scale, zero = b.constant(np.float32(0.05)), b.constant(np.int8(0))
    quantized = b.op("QuantizeLinear", b.constant(floats(40, 8)), scale, zero)
    out = b.op("MatMul", x, b.op("DequantizeLinear", quantized, scale, zero))
    out.dtype = DType.FLOAT
    b.graph.outputs = [out]
    x = np.arange(120).reshape(3, 40).astype(np.uint8)
    assert_keeps_results(b.graph, [x], "integer_products")
    apply(b.graph, "integer_products")
    assert ops(b.graph)["MatMulInteger"] == 1


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (product("MatMul", (3, 5), weights(5, 4)), "its weights are few"),
        (product("MatMul", (3, 40), weights(40, 9), axis=0, scale=abs(floats(40)), zero=weights(40)),
         "its scales are not along its results"),
        (product("Gemm", (3, 40), weights(40, 9), alpha=0.5), "it scales or transposes its operands"),
        (product("MatMul", (3, 40), RNG.integers(0, 9, (40, 9)).astype(np.int16), zero=np.int16(0)),
         "a type is not one that products of bytes have"),
        (product("Conv", (1, 64, 9), weights(64, 1, 9), group=64), "its weights are few"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)  # fmt: skip
def test_declines(graph, reason):
    before = ops(graph)
    outcome = apply(graph, "integer_products")
    assert reasons(outcome, "integer_products") == {reason}
    assert ops(graph) == before


def test_leaves_products_of_floats():
    b = GraphBuilder("g")
    x = b.input("x", DType.FLOAT, (3, 40))
    b.graph.outputs = [b.op("MatMul", x, dequantized(b, b.constant(weights(40, 9)), np.float32(0.1), np.int8(0)))]
    outcome = apply(b.graph, "integer_products")
    assert not outcome.fired
    assert ops(b.graph) == {"MatMul": 1, "DequantizeLinear": 1}
