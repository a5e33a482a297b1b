import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from webrnn.ir import DType, GraphBuilder, Node

CHANNELS = 4


def with_batchnorm(op, x_shape, weights, bias=None, statistics=True, read_twice=False, **attrs):
    b = GraphBuilder("g")
    x = b.input("x", DType.FLOAT, x_shape)
    extra = [] if bias is None else [b.constant(bias)]
    made = b.op(op, x, b.constant(weights), *extra, **attrs)
    arrays = [floats(CHANNELS, seed=1), floats(CHANNELS, seed=2), floats(CHANNELS, seed=3), abs(floats(CHANNELS)) + 0.1]
    operands = [
        b.constant(array) if statistics else b.input(f"i{i}", DType.FLOAT, (4,)) for i, array in enumerate(arrays)
    ]
    out = b.value("y")
    b.add(Node("BatchNormalization", [made, *operands], [out]))
    b.graph.outputs = [out, made] if read_twice else [out]
    return b.graph


@pytest.mark.parametrize("bias", [None, floats(CHANNELS, seed=9)], ids=["no bias", "bias"])
@pytest.mark.parametrize(
    ("op", "shape", "weights", "attrs"),
    [
        ("Conv", (2, 3, 8), floats(CHANNELS, 3, 3), {}),
        ("Gemm", (2, 3), floats(3, CHANNELS), {}),
        ("Gemm", (2, 3), floats(CHANNELS, 3), {"transB": 1}),
    ],
)
def test_goes_into_the_weights(op, shape, weights, attrs, bias):
    graph = with_batchnorm(op, shape, weights, bias, **attrs)
    assert_keeps_results(graph, [floats(*shape)], "fold_batchnorm")
    apply(graph, "fold_batchnorm")
    assert ops(graph) == {op: 1}


def test_after_a_product_an_addition_is_left():
    graph = with_batchnorm("MatMul", (2, 3), floats(3, CHANNELS))
    assert_keeps_results(graph, [floats(2, 3)], "fold_batchnorm")
    apply(graph, "fold_batchnorm")
    assert ops(graph) == {"MatMul": 1, "Add": 1}


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (with_batchnorm("Gemm", (2, 3), floats(3, 4), statistics=False), "its statistics are not constants"),
        (with_batchnorm("Gemm", (2, 3), floats(3, 4), read_twice=True), "something else reads what it normalizes"),
        (with_batchnorm("Gemm", (2, 3), floats(3, 4), alpha=0.5), "alpha or beta are not 1"),
        (with_batchnorm("Gemm", (2, 3), floats(3, 4), floats(2, 4)), "the bias before it is not a vector"),
        (with_batchnorm("MatMul", (2, 4, 3), floats(3, 5)), "the product has no channel axis to scale"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_declines(graph, reason):
    outcome = apply(graph, "fold_batchnorm")
    assert reasons(outcome, "fold_batchnorm") == {reason}
    assert ops(graph)["BatchNormalization"] == 1


def test_declines_to_train():
    graph = with_batchnorm("Gemm", (2, 3), floats(3, 4))
    graph.nodes[-1].attrs["training_mode"] = 1
    assert reasons(apply(graph, "fold_batchnorm"), "fold_batchnorm") == {"it trains"}


def test_declines_weights_that_are_fed():
    b = GraphBuilder("g")
    x, w = b.input("x", DType.FLOAT, (2, 3)), b.input("w", DType.FLOAT, (3, 4))
    constants = [b.constant(np.ones(4, np.float32)) for _ in range(4)]
    b.graph.outputs = [b.op("BatchNormalization", b.op("MatMul", x, w), *constants)]
    outcome = assert_keeps_results(b.graph, [floats(2, 3), floats(3, 4)], "fold_batchnorm")
    assert reasons(outcome, "fold_batchnorm") == {"the weights before it are not constants"}
