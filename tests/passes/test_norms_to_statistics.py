import numpy as np
import pytest

from tests.passes.differential import BY_NAME, assert_same_results, graph_of, ops, reasons
from webrnn.ir import Symbol
from webrnn.passes import run_passes
from webrnn.passes.norms_to_statistics import NormsToStatistics

SIZES = frozenset({Symbol("T")})
PARTS = "<float[4] s = {1, 2, 3, 4}, float[4] b = {0, 1, 2, 3}, float one = {1.5}>"
NORMS = [
    "InstanceNormalization(x, s, b)",
    "GroupNormalization<num_groups=2>(x, s, b)",
    "LayerNormalization<axis=1>(x, one)",
    "LayerNormalization<axis=1>(x, one, one)",
    "MeanVarianceNormalization<axes=[0, 2]>(x)",
    "LpNormalization<axis=2, p=1>(x)",
    "LpNormalization<axis=2>(x)",
]


def behind(text):
    graph = graph_of(text)
    copy = graph.copy()
    return graph, copy, run_passes(copy, [BY_NAME["infer_shapes"], NormsToStatistics(SIZES)], check=True)


@pytest.mark.parametrize("norm", NORMS)
def test_norms_over_time(norm):
    graph, copy, outcome = behind(f"g (float[2, 4, T] x) => (float[2, 4, T] y) {PARTS} {{ y = {norm} }}")
    assert outcome.rewrites["norms_to_statistics"] == 1
    assert not any("Normalization" in op for op in ops(copy))
    x = np.random.default_rng(0).standard_normal((2, 4, 7)).astype(np.float32)
    assert_same_results(graph, copy, [x], bits=False)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_pooling_over_time(op):
    graph, copy, _ = behind(f"g (float[2, 4, T] x) => (float[2, 4, 1] y) {{ y = {op}(x) }}")
    assert ops(copy)[op] == 0
    assert_same_results(
        graph, copy, [np.random.default_rng(0).standard_normal((2, 4, 7)).astype(np.float32)], bits=False
    )


def test_norms_over_channels_stay():
    _, copy, _ = behind(f"g (float[2, T, 4] x) => (float[2, T, 4] y) {PARTS} {{ y = LayerNormalization(x, s, b) }}")
    assert ops(copy) == {"LayerNormalization": 1}


def test_an_unknown_rank():
    _, _, outcome = behind("""g (float[2, 4, T] x, int64[n] shape) => (y) <float[4] s = {1, 1, 1, 1}> {
        r = Reshape(x, shape)  y = InstanceNormalization(r, s, s) }""")
    assert reasons(outcome, "norms_to_statistics") == {"a rank or a number of channels is not known"}
