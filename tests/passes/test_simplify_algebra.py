import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, graph_of, ops, reasons

X = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], np.float32)
CONSTANTS = "<float one = {1}, float zero = {0}, float[1] minus_zero = {-0.0}, float[1, 1] wide = {1}>"


@pytest.mark.parametrize(
    "rule",
    [
        "b = Mul(a, one)",
        "b = Mul(one, a)",
        "b = Div(a, one)",
        "b = Sub(a, zero)",
        "b = Add(a, minus_zero)",
        "b = Add(minus_zero, a)",
        "t = Neg(a) b = Neg(t)",
    ],
)
def test_keeps_every_bit(rule):
    graph = graph_of(f"g (float[n] x) => (float[n] y) {CONSTANTS} {{ a = Abs(x) {rule} y = Neg(b) }}")
    assert_keeps_results(graph, [X], "simplify_algebra")
    apply(graph, "simplify_algebra", "remove_dead")
    assert ops(graph) == {"Abs": 1, "Neg": 1}


def test_integers_and_bools():
    graph = graph_of(
        """g (int32[n] x, bool[n] c) => (int32[n] y, bool[n] z) <int32 zero = {0}, bool true = {1}> {
            a = Add(x, zero)
            b = Sub(a, zero)
            y = Abs(b)
            d = And(true, c)
            e = Not(d)
            f = Not(e)
            z = Not(f)
        }"""
    )
    assert_keeps_results(graph, [np.int32([1, -2]), np.array([True, False])], "simplify_algebra")
    apply(graph, "simplify_algebra", "remove_dead")
    assert ops(graph) == {"Abs": 1, "Not": 1}


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("b = Add(a, zero)", "x + 0.0 turns -0.0 into 0.0"),
        ("b = Sub(a, minus_zero)", "x - -0.0 turns -0.0 into 0.0"),
        ("b = Mul(a, wide)", "it may broadcast its operand to another shape"),
    ],
)
def test_declines(rule, reason):
    graph = graph_of(f"g (float[n] x) => (float[p] y) {CONSTANTS} {{ a = Neg(x) {rule} y = Neg(b) }}")
    outcome = assert_keeps_results(graph, [X], "simplify_algebra")
    assert reasons(outcome, "simplify_algebra") == {reason}
    assert outcome.rewrites["simplify_algebra"] == 0


def test_does_not_touch_what_is_not_neutral():
    graph = graph_of("g (float[n] x) => (float[n] y) <float one = {1}> { a = Div(one, x) b = Sub(one, a) y = Neg(b) }")
    assert apply(graph, "simplify_algebra").rewrites["simplify_algebra"] == 0
