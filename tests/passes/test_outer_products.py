import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons


@pytest.mark.parametrize(
    "shapes", [((4, 1), (1, 3)), ((2, 4, 1), (2, 1, 3)), ((2, 1, 4, 1), (5, 1, 3)), ((1, 1), (1, 1))]
)
def test_fires(shapes):
    left, right = (str(list(shape)) for shape in shapes)
    graph = graph_of(f"g (float{left} x, float{right} w) => (float y) {{ y = MatMul(x, w) }}")
    assert_keeps_results(graph, [floats(*shapes[0]), floats(*shapes[1])], "outer_products")
    apply(graph, "outer_products")
    assert ops(graph) == {"Mul": 1, "Add": 1}


def test_a_product_that_is_zero_has_no_sign():
    graph = graph_of("g (float[2, 1] x, float[1, 2] w) => (float[2, 2] y) { y = MatMul(x, w) }")
    x, w = np.array([[-1.0], [0.0]], np.float32), np.array([[0.0, -2.0]], np.float32)
    assert_keeps_results(graph, [x, w], "outer_products")


def test_declines_weights():
    graph = graph_of(
        "g (float[n, 1] x) => (float[n, 2] y) { w = Constant<value = float[1, 2] {1, 2}>() y = MatMul(x, w) }"
    )
    outcome = assert_keeps_results(graph, [floats(3, 1)], "outer_products")
    assert reasons(outcome, "outer_products") == {"an operand is a constant"}


@pytest.mark.parametrize(
    "shapes", ["float[4, 2] x, float[2, 3] w", "float[n, m] x, float[m, 3] w", "float[1] x, float[1, 3] w"]
)
def test_leaves_what_is_no_outer_product(shapes):
    graph = graph_of(f"g ({shapes}) => (float y) {{ y = MatMul(x, w) }}")
    assert not apply(graph, "outer_products").rewrites["outer_products"]
