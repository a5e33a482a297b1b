"""Matrix products."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends import MAIN
from tests.plan.harness import check_graph, graph_of
from webrnn.ir import WEBRNN, Node
from webrnn.plan.lowering import pack, packed_size


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def linear(b, x, w, bias=None):
    y = b.value("y")
    b.add(Node("Linear", [x, w] if bias is None else [x, w, bias], [y], {}, "", WEBRNN))
    return y


@pytest.mark.parametrize(("k", "n"), [(3, 5), (1, 1), (8, 24), (7, 25), (30, 70), (0, 4), (4, 0)])
@pytest.mark.parametrize("rows", ["n", "1", "2 n", "n 1 2"])
def test_constant_weights(rows, k, n):
    check_graph(graph_of(lambda b, x: b.op("MatMul", x, b.constant(array(k, n))), f"f {rows} {k}"))
    check_graph(graph_of(lambda b, x: linear(b, x, b.constant(array(k, n)), b.constant(array(n))), f"f {rows} {k}"))


def test_operands_with_gaps():
    w = array(4, 6)
    builds = (
        lambda b, x: b.op("MatMul", b.op("Transpose", x), b.constant(w)),
        lambda b, x: b.op(
            "MatMul", b.op("Slice", b.op("Transpose", x), b.ints(-1), b.ints(-9), b.ints(0), b.ints(-1)), b.constant(w)
        ),
        lambda b, x: b.op("Transpose", b.op("MatMul", b.op("Transpose", x), b.constant(w))),
        lambda b, x: b.op(
            "MatMul",
            b.op("Expand", b.op("Slice", b.op("Transpose", x), b.ints(0), b.ints(1), b.ints(0)), b.ints(5, 4)),
            b.constant(w),
        ),
    )
    for build in builds:
        check_graph(graph_of(build, "f 4 5"))
    columns = lambda b, x: b.op("MatMul", b.op("Slice", x, b.ints(1), b.ints(5), b.ints(1)), b.constant(w))  # noqa: E731
    check_graph(graph_of(columns, "f n 7"))


PRODUCTS = (
    ("2 3", "3 4"), ("n 3", "3 t"), ("5 2 3", "5 3 4"), ("5 2 3", "3 4"), ("2 3", "5 3 4"), ("2 1 2 3", "1 5 3 4"),
    ("n 2 3", "n 3 4"), ("n 2 3", "1 3 4"), ("3", "3 4"), ("2 3", "3"), ("3", "3"), ("3", "5 3 4"), ("5 2 3", "3"),
    ("0 3", "3 4"), ("2 0", "0 4"), ("2 2 n 3", "2 2 3 n"), ("1 3", "3 1"),
)  # fmt: skip


@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_products_of_inputs(left, right):
    check_graph(graph_of(lambda b, x, y: b.op("MatMul", x, y), f"f {left}", f"f {right}"))
    check_graph(
        graph_of(
            lambda b, x, y: b.op("Tanh", b.op("MatMul", b.op("Exp", x), b.op("Exp", y))), f"f {left}", f"f {right}"
        )
    )


def test_products_of_transposed_inputs():
    builds = (
        lambda b, x, y: b.op("MatMul", b.op("Transpose", x, perm=[0, 2, 1]), y),
        lambda b, x, y: b.op("MatMul", y, b.op("Transpose", x, perm=[2, 0, 1])),
        lambda b, x, y: b.op("Transpose", b.op("MatMul", x, y), perm=[2, 1, 0]),
        lambda b, x, y: b.op("MatMul", b.op("Slice", x, b.ints(-1), b.ints(-9), b.ints(1), b.ints(-1)), y),
    )
    for build in builds:
        check_graph(graph_of(build, "f 3 3 3", "f 3 3 3"))


def test_a_bias_that_is_an_input():
    check_graph(graph_of(lambda b, x, w, bias: linear(b, x, w, bias), "f n 3", "f 3 4", "f 4"))
    check_graph(graph_of(lambda b, x, bias: linear(b, x, b.constant(array(3, 4)), bias), "f 2 n 3", "f 4"))


def test_a_constant_on_the_left():
    check_graph(graph_of(lambda b, y: b.op("MatMul", b.constant(array(4, 3)), y), "f 3 n"))


@pytest.mark.parametrize(("k", "n"), [(1, 1), (3, 7), (5, 24), (2, 33), (4, 48), (3, 50)])
def test_packed_form(k, n):
    from webrnn.engine.kernels.loading import load

    kernels = load(MAIN)
    weights = array(k, n)
    ours = pack(weights)
    assert ours.size == packed_size(n, k)
    packed = kernels.empty(ours.size)
    kernels.pack_panels(kernels.buffer(weights), packed, n, k, 1, n)
    np.testing.assert_array_equal(packed.array, ours)
