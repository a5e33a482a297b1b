"""What they give: tests/along_time/test_running.py."""

from tests.passes.differential import BY_NAME, graph_of, ops, reasons
from webrnn.ir import Symbol
from webrnn.passes import run_passes
from webrnn.passes.running_statistics import RunningStatistics

SIZES = frozenset({Symbol("T")})


def behind(text):
    graph = graph_of(text)
    return graph, run_passes(graph, [BY_NAME["infer_shapes"], RunningStatistics(SIZES)], check=True)


def test_a_mean_and_its_variance_are_one_loop():
    graph, _ = behind("""g (float[T, 3] x) => (float[T, 3] y) <int64[1] axes = {0}> {
        m = ReduceMean(x, axes)  c = Sub(x, m)  q = Mul(c, c)  v = ReduceMean(q, axes)  y = Div(c, v) }""")
    assert ops(graph)["Scan"] == 1
    assert ops(graph)["ReduceMean"] == 0


def test_other_axes_stay():
    graph, outcome = behind("g (float[T, 3] x) => (float[T, 1] y) <int64[1] axes = {1}> { y = ReduceMean(x, axes) }")
    assert outcome.rewrites["running_statistics"] == 0
    assert ops(graph) == {"ReduceMean": 1}


def test_axes_that_are_fed():
    _, outcome = behind("g (float[T, 3] x, int64[1] axes) => (float[a, b] y) { y = ReduceMean(x, axes) }")
    assert reasons(outcome, "running_statistics") == {"its axes are not known before it runs"}


def test_a_statistic_without_its_axis_that_meets_frames():
    _, outcome = behind("""g (float[T, 3] x) => (float[T, 3] y) <int64[1] axes = {0}> {
        m = ReduceMean<keepdims=0>(x, axes)  y = Sub(x, m) }""")
    assert reasons(outcome, "running_statistics") == {"what meets frames again has lost the axis of time"}


def test_integers_stay():
    _, outcome = behind("g (int64[T, 3] x) => (int64[1, 3] y) <int64[1] axes = {0}> { y = ReduceSum(x, axes) }")
    assert outcome.rewrites["running_statistics"] == 0
