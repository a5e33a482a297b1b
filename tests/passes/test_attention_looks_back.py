"""What it gives: tests/along_time/test_lookback.py."""

import pytest

from tests.passes.differential import BY_NAME, graph_of, ops, reasons
from webrnn.ir import Symbol
from webrnn.passes import run_passes
from webrnn.passes.attention_looks_back import AttentionLooksBack

HEAD = "g (float[2, T, 4] q, float[2, 4, T] k, float[2, T, 4] v) => (float[2, T, 4] y) <float half = {0.5}>"


def behind(scores, softmax="Softmax(t)"):
    graph = graph_of(f"{HEAD} {{ s = MatMul(q, k)  {scores}  p = {softmax}  y = MatMul(p, v) }}")
    steps = [BY_NAME["infer_shapes"], AttentionLooksBack(frozenset({Symbol("T")}), 3)]
    return graph, run_passes(graph, steps, check=True)


@pytest.mark.parametrize(
    "scores", ["t = Identity(s)", "t = Mul(s, half)", "a = Div(s, half)  b = Tanh(a)  t = Mul(half, b)"]
)
def test_it_is_a_loop(scores):
    graph, outcome = behind(scores)
    assert outcome.rewrites["attention_looks_back"] == 1
    assert ops(graph)["Scan"] == 1


@pytest.mark.parametrize("scores", ["m = Sin(s)  t = Add(s, m)", "m = Shape(s)  n = ConstantOfShape(m)  t = Add(s, n)"])
def test_masks(scores):
    _, outcome = behind(scores)
    assert reasons(outcome, "attention_looks_back") == {"something is added to the scores or hides some of them"}
    assert outcome.rewrites["attention_looks_back"] == 0


def test_softmax_over_queries_stays():
    _, outcome = behind("t = Identity(s)", "Softmax<axis=1>(t)")
    assert outcome.rewrites["attention_looks_back"] == 0
