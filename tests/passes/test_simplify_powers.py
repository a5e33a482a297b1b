import numpy as np

from tests.passes.differential import apply, assert_keeps_results, graph_of, ops, reasons

X = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], np.float32)


def test_square_and_root():
    graph = graph_of(
        """g (float[n] x) => (float[n] y) <float two = {2}, float half = {0.5}, int64 one = {1}> {
            a = Pow(x, two)
            b = Pow(a, half)
            y = Pow(b, one)
        }"""
    )
    assert_keeps_results(graph, [X], "simplify_powers")
    apply(graph, "simplify_powers")
    assert ops(graph) == {"Mul": 1, "Sqrt": 1, "Identity": 1}


def test_declines_the_root_of_what_may_be_negative():
    graph = graph_of("g (float[n] x) => (float[n] y) <float half = {0.5}> { y = Pow(x, half) }")
    outcome = assert_keeps_results(graph, [X], "simplify_powers")
    assert reasons(outcome, "simplify_powers") == {"its base may be negative"}


def test_declines_an_exponent_that_broadcasts():
    graph = graph_of("g (float[n] x) => (float[a, n] y) <float[1, 1] two = {2}> { y = Pow(x, two) }")
    outcome = assert_keeps_results(graph, [X], "simplify_powers")
    assert reasons(outcome, "simplify_powers") == {"its exponent may broadcast its base to another shape"}
