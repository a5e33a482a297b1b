import numpy as np

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons
from webrnn.passes.fold_constants import LARGEST_GROWTH


def test_a_chain_on_constants_becomes_one_constant():
    graph = graph_of(
        """g (float[3] x) => (float[3] y) <float[3] a = {1, 2, 3}> {
            b = Neg(a)
            c = Mul(a, b)
            y = Add(x, c)
        }"""
    )
    assert_keeps_results(graph, [floats(3)], "fold_constants")
    assert apply(graph, "fold_constants").rewrites["fold_constants"] == 2
    assert ops(graph) == {"Add": 1}


def test_sizes_of_static_axes_become_constants():
    graph = graph_of(
        """g (float[n, 4] x) => (int64[1] y) <int64[1] one = {1}> {
            sizes = Shape(x)
            y = Gather(sizes, one)
        }"""
    )
    apply(graph, "fold_constants")
    assert ops(graph) == {"Shape": 1}
    assert graph.constants[graph.outputs[0]].tolist() == [4]
    assert graph.outputs[0].name == "y"


def test_what_is_known_of_an_operand_is_known_in_the_branch():
    graph = graph_of(
        """g (bool c, float[2, 3] x) => (float[a, b] y) <int64[1] rest = {-1}> {
            sizes = Shape(x)
            y = If(c) <
                then_branch = yes () => (float[a, b] t) { t = Expand(x, sizes) },
                else_branch = no () => (float[a, b] e) { e = Reshape(x, sizes) }
            >
        }"""
    )
    assert_keeps_results(graph, [np.array(True), floats(2, 3)], "fold_constants", "remove_dead")
    apply(graph, "fold_constants", "remove_dead")
    assert ops(graph) == {"If": 1, "Expand": 1, "Reshape": 1}


def test_declines_what_raises():
    graph = graph_of("g () => (int32 y) <int32 a = {1}, int32 b = {0}> { y = Div(a, b) }")
    outcome = apply(graph, "fold_constants")
    assert ops(graph) == {"Div": 1}
    (reason,) = reasons(outcome, "fold_constants")
    assert reason.startswith("it raises: ")
    assert "integer division by zero" in reason


def test_declines_what_grows_too_much():
    size = 2 * LARGEST_GROWTH
    graph = graph_of(f"g () => (float[n] y) <float a = {{1}}, int64[1] n = {{{size}}}> {{ y = Expand(a, n) }}")
    outcome = apply(graph, "fold_constants")
    expected = f"its result has {size} elements, more than its inputs and {LARGEST_GROWTH}"
    assert reasons(outcome, "fold_constants") == {expected}


def test_declines_a_result_of_unknown_size():
    graph = graph_of("g () => (int64[a, b] y) <float[3] x = {1, 0, 2}> { y = NonZero(x) }")
    assert reasons(apply(graph, "fold_constants"), "fold_constants") == {"the size of its result is not known"}


def test_declines_an_op_without_implementation():
    graph = graph_of("g () => (float[3] y) <float[3] x = {1, 0, 2}> { y = Relu(x) }")
    graph.nodes[0].domain = "elsewhere"
    assert reasons(apply(graph, "fold_constants"), "fold_constants") == {"it has no implementation"}
