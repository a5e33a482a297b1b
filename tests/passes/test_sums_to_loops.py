import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, graph_of, ops, reasons


def sums(attributes="", size="T", op="CumSum"):
    return graph_of(
        f"g (float[2, {size}, 3] x) => (float[2, {size}, 3] y) <int64 axis = {{1}}> {{ y = {op}{attributes}(x, axis) }}"
    )


@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
@pytest.mark.parametrize("attributes", ["", "<exclusive=1>"])
def test_sums_over_an_open_axis(attributes, op):
    graph = sums(attributes, op=op)
    for length in (0, 1, 6):
        x = np.random.default_rng(length).standard_normal((2, length, 3)).astype(np.float32)
        assert_keeps_results(graph, [x], "sums_to_loops")
    apply(graph, "sums_to_loops")
    assert ops(graph)["Scan"] == 1
    assert ops(graph)[op] == 0


def test_an_axis_of_fixed_size_stays():
    graph = sums(size="4")
    apply(graph, "sums_to_loops")
    assert ops(graph) == {"CumSum": 1}


def test_backwards():
    outcome = apply(sums("<reverse=1>"), "sums_to_loops")
    assert reasons(outcome, "sums_to_loops") == {"it runs backwards"}
