import numpy as np

from tests.passes.differential import apply, assert_keeps_results, graph_of, ops, reasons

RNG = np.random.default_rng(0)
Q, K = (RNG.standard_normal(shape).astype(np.float32) for shape in ((2, 6, 4, 5), (2, 3, 7, 5)))


def shared_keys(shape="2, 3, 2, 7, 5", joined="2, 6, 7, 5", one="2", behind="perm = [0, 1, 3, 2]", q="b, 6, m, 5"):
    """Six heads of queries, two for each head of keys."""
    sizes = shape.count(",") + 1
    return graph_of(
        f"""g (float[{q}] q, float[2, 3, 7, 5] k) => (float[b, h, m, n] y)
        <int64[1] one = {{{one}}}, int64[{sizes}] shape = {{{shape}}}, int64[4] joined = {{{joined}}}> {{
            u = Unsqueeze(k, one)
            e = Expand(u, shape)
            r = Reshape(e, joined)
            t = Transpose<{behind}>(r)
            y = MatMul(q, t)
        }}"""
    )


def test_keys_of_several_heads():
    graph = shared_keys()
    assert_keeps_results(graph, [Q, K], "unrepeat_matrices")
    apply(graph, "unrepeat_matrices", "remove_dead")
    assert "Expand" not in ops(graph)
    assert ops(graph)["MatMul"] == 1


def test_values_of_several_heads():
    graph = graph_of(
        """g (float[2, 6, m, 7] weights, float[2, 3, 7, 5] v) => (float[2, 6, m, 5] y)
        <int64[1] two = {2}, int64[5] shape = {2, 3, 2, 7, 5}, int64[4] joined = {2, 6, 7, 5}> {
            u = Unsqueeze(v, two)
            e = Expand(u, shape)
            r = Reshape(e, joined)
            y = MatMul(weights, r)
        }"""
    )
    weights = RNG.standard_normal((2, 6, 4, 7)).astype(np.float32)
    assert_keeps_results(graph, [weights, K], "unrepeat_matrices")
    apply(graph, "unrepeat_matrices", "remove_dead")
    assert "Expand" not in ops(graph)


def test_declines():
    for graph, left, reason in (
        (shared_keys(q="b, 1, m, 5"), Q[:, :1], "its left operand is repeated too"),
        (shared_keys("2, 2, 3, 7, 5", one="1"), Q, "they are repeated in another way"),
    ):
        outcome = assert_keeps_results(graph, [left, K], "unrepeat_matrices", "infer_shapes")
        assert reasons(outcome, "unrepeat_matrices") == {reason}
        assert ops(graph)["Expand"] == 1


def test_declines_sizes_that_are_not_known():
    graph = graph_of(
        """g (float[2, 6, m, 7] weights, float[2, 3, 7, 5] v, int64[5] shape) => (float[2, 6, m, 5] y)
        <int64[1] two = {2}, int64[4] joined = {2, 6, 7, 5}> {
            u = Unsqueeze(v, two)
            e = Expand(u, shape)
            r = Reshape(e, joined)
            y = MatMul(weights, r)
        }"""
    )
    weights = RNG.standard_normal((2, 6, 4, 7)).astype(np.float32)
    outcome = assert_keeps_results(graph, [weights, K, np.array([2, 3, 2, 7, 5], np.int64)], "unrepeat_matrices")
    assert reasons(outcome, "unrepeat_matrices") == {"a size is not known"}


def test_a_transpose_of_other_axes_stays():
    graph = shared_keys(behind="perm = [1, 0, 3, 2]", q="b, 2, m, 5")
    left = RNG.standard_normal((6, 2, 4, 5)).astype(np.float32)
    assert_keeps_results(graph, [left, K], "unrepeat_matrices")
    assert ops(graph)["Expand"] == 1
