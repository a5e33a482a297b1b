import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons
from webrnn.ir import DType, GraphBuilder, Symbol

ROWS, K, N = 4, 3, 5


def product(x_shape=(ROWS, K), w=None, op="MatMul", **attrs):
    b = GraphBuilder("g")
    x = b.input("x", DType.FLOAT, x_shape)
    return b, b.op(op, x, b.constant(floats(K, N, seed=1) if w is None else w), **attrs)


def fused(b, result, *arguments):
    b.graph.outputs = [result]
    assert_keeps_results(b.graph, list(arguments), "fuse_linear")
    outcome = apply(b.graph, "fuse_linear")
    return ops(b.graph), outcome


@pytest.mark.parametrize("shape", [(ROWS, K), (2, ROWS, K), (Symbol("n"), 1, K)])
def test_a_product_with_a_bias(shape):
    b, made = product(shape)
    counts, _ = fused(
        b, b.op("Add", made, b.constant(floats(N))), floats(*(2 if d == Symbol("n") else d for d in shape))
    )
    assert counts == {"Linear": 1}
    assert len(b.graph.nodes[0].inputs) == 3


@pytest.mark.parametrize("bias", [floats(N), floats(1, N), np.float32(2), np.float32([2])], ids=lambda a: str(a.shape))
def test_the_bias_may_stand_first_and_have_axes_of_one(bias):
    b, made = product()
    counts, _ = fused(b, b.op("Add", b.constant(bias), made), floats(ROWS, K))
    assert counts == {"Linear": 1}
    assert b.graph.constants[b.graph.nodes[0].inputs[2]].shape == (N,)


def test_weights_and_bias_may_be_fed():
    text = "g (float[4, 3] x, float[3, 5] w, float[5] b) => (float[4, 5] y) { p = MatMul(x, w) y = Add(b, p) }"
    graph = graph_of(text)
    assert_keeps_results(graph, [floats(ROWS, K), floats(K, N), floats(N)], "fuse_linear")
    apply(graph, "fuse_linear")
    assert ops(graph) == {"Linear": 1}


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("constant", [True, False])
def test_gemm(trans_a, trans_b, constant):
    b = GraphBuilder("g")
    a_shape, w_shape = (K, ROWS) if trans_a else (ROWS, K), (N, K) if trans_b else (K, N)
    a = b.input("a", DType.FLOAT, a_shape)
    w = b.constant(floats(*w_shape)) if constant else b.input("w", DType.FLOAT, w_shape)
    made = b.op("Gemm", a, w, b.constant(floats(N)), transA=trans_a, transB=trans_b)
    counts, _ = fused(b, made, floats(*a_shape, seed=5), *([] if constant else [floats(*w_shape)]))
    transposes = trans_a + (trans_b and not constant)
    assert counts == {"Linear": 1, **({"Transpose": transposes} if transposes else {})}


@pytest.mark.parametrize(
    ("alpha", "beta", "c", "left"),
    [
        (1.0, 1.0, None, {}),
        (1.0, 0.3, floats(N), {}),
        (1.0, 0.3, np.float32(7), {}),
        (0.3, 1.0, floats(N), {"Mul": 1, "Add": 1}),
        (0.3, 0.3, None, {"Mul": 1}),
        (1.0, 1.0, floats(ROWS, N), {"Add": 1}),
        (1.0, 2.0, floats(ROWS, 1), {"Add": 1}),
    ],
)
def test_scales_of_gemm_are_rounded_as_gemm_rounds_them(alpha, beta, c, left):
    b = GraphBuilder("g")
    x = b.input("x", DType.FLOAT, (ROWS, K))
    extra = [] if c is None else [b.constant(c)]
    made = b.op("Gemm", x, b.constant(floats(K, N)), *extra, alpha=alpha, beta=beta)
    counts, _ = fused(b, made, floats(ROWS, K))
    assert counts == {"Linear": 1, **left}


def test_a_scaled_c_that_is_fed():
    b = GraphBuilder("g")
    x, c = b.input("x", DType.FLOAT, (ROWS, K)), b.input("c", DType.FLOAT, (N,))
    counts, _ = fused(b, b.op("Gemm", x, b.constant(floats(K, N)), c, beta=0.3), floats(ROWS, K), floats(N))
    assert counts == {"Linear": 1, "Mul": 1}


@pytest.mark.parametrize(
    ("x", "w", "reason"),
    [
        ((K,), floats(K, N), "it is no product of rows and a matrix"),
        ((ROWS, K), floats(K), "it is no product of rows and a matrix"),
        ((2, ROWS, K), floats(2, K, N), "it is no product of rows and a matrix"),
        (None, floats(K, N), "a rank is not known"),
        ((ROWS, K), floats(K, N).astype(np.float64), "its type is not float32"),
    ],
)
def test_declines(x, w, reason):
    b = GraphBuilder("g")
    value = b.input("x", DType.of(w), x)
    b.graph.outputs = [b.op("MatMul", value, b.constant(w))]
    outcome = apply(b.graph, "fuse_linear")
    assert reasons(outcome, "fuse_linear") == {reason}
    assert ops(b.graph) == {"MatMul": 1}


def test_declines_a_bias_of_another_shape():
    b, made = product()
    counts, outcome = fused(b, b.op("Add", made, b.constant(floats(ROWS, 1))), floats(ROWS, K))
    assert counts == {"Linear": 1, "Add": 1}
    assert reasons(outcome, "fuse_linear") == {"what is added is not one row"}


def test_declines_a_product_that_is_read_elsewhere():
    b, made = product()
    counts, outcome = fused(b, b.op("Mul", made, b.op("Add", made, b.constant(floats(N)))), floats(ROWS, K))
    assert counts == {"Linear": 1, "Add": 1, "Mul": 1}
    assert reasons(outcome, "fuse_linear") == {"the product is read elsewhere"}


def test_a_bias_is_added_once():
    """The sum of two products has no room for one of them as a bias; a third operand has."""
    b, made = product()
    other = b.op("MatMul", b.graph.inputs[0], b.constant(floats(K, N, seed=7)))
    counts, _ = fused(b, b.op("Add", b.op("Add", made, other), b.constant(floats(N))), floats(ROWS, K))
    assert counts == {"Linear": 2, "Add": 2}


@pytest.mark.parametrize(
    ("op", "numbers", "left"),
    [
        ("Reshape", (2, 2, N), {"Linear": 1, "Reshape": 1}),
        ("Unsqueeze", (0,), {"Linear": 1, "Unsqueeze": 1}),
        ("Reshape", (N, ROWS), {"Linear": 1, "Reshape": 1, "Add": 1}),
    ],
)
def test_a_constant_behind_rearranged_rows(op, numbers, left):
    b, made = product()
    moved = b.op(op, made, b.ints(*numbers))
    width = numbers[-1] if op == "Reshape" else N
    counts, _ = fused(b, b.op("Add", moved, b.constant(floats(width))), floats(ROWS, K))
    assert counts == left


def test_rearranged_rows_that_are_read_elsewhere():
    b, made = product()
    moved = b.op("Unsqueeze", made, b.ints(0))
    b.graph.outputs = [b.op("Add", moved, b.constant(floats(N))), b.op("Neg", moved)]
    assert_keeps_results(b.graph, [floats(ROWS, K)], "fuse_linear")
    apply(b.graph, "fuse_linear")
    assert ops(b.graph) == {"Linear": 1, "Unsqueeze": 1, "Add": 1, "Neg": 1}
