import numpy as np

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons

NAME = "reverse_whole_sequences"


def test_fires():
    graph = graph_of(
        """g (float[T,B,3] x) => (float[T,B,3] y) { n = Shape<start=0, end=1>(x) b = Shape<start=1, end=2>(x)
        lengths = Expand(n, b) y = ReverseSequence<time_axis=0, batch_axis=1>(x, lengths) }"""
    )
    assert_keeps_results(graph, [floats(4, 2, 3)], NAME)
    assert_keeps_results(graph, [floats(0, 2, 3)], NAME)
    apply(graph, NAME)
    assert "ReverseSequence" not in ops(graph)


def test_declines():
    graph = graph_of(
        """g (float[T,B,3] x, int64[B] lengths) => (float[T,B,3] y) {
        y = ReverseSequence<time_axis=0, batch_axis=1>(x, lengths) }"""
    )
    outcome = assert_keeps_results(graph, [floats(4, 2, 3), np.array([4, 2], np.int64)], NAME)
    assert reasons(outcome, NAME) == {"some sequences may be shorter"}
