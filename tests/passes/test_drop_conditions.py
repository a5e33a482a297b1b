import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, reasons
from tests.passes.scans import scan_in


def loop(condition, operands):
    return graph_of(
        f"""g (int64 n, bool start, float[3] x) => (float[3] y, float[m, 3] z) <bool true = {{1}}> {{
            y, z = Loop({operands}, x) <body = step (int64 i, bool go, float[3] h) =>
                (bool going, float[3] h_next, float[3] element) {{
                {condition}
                h_next = Tanh(h)
                element = Neg(h_next)
            }}>
        }}"""
    )


def test_a_condition_that_is_handed_on():
    graph = loop("going = Identity(go)", "n, true")
    for steps in (0, 3):
        assert_keeps_results(graph, [np.array(steps), np.array(True), floats(3)], "drop_conditions")
    assert apply(graph, "drop_conditions").rewrites["drop_conditions"] == 1
    assert not scan_in(graph).spec.has_condition


def test_a_constant_condition_and_none_outside():
    graph = loop("going = Constant<value = bool {1}>()", "n, ")
    assert apply(graph, "drop_conditions").rewrites["drop_conditions"] == 1


@pytest.mark.parametrize(
    ("condition", "operands", "reason"),
    [
        ("s = ReduceSum<keepdims = 0>(h) z0 = Constant<value_float = 0.0>() going = Less(s, z0)", "n, true", "its"),
        ("going = Identity(go)", "n, start", "it may take no step"),
        ("going = Identity(go)", ", true", "nothing else ends the loop"),
    ],
)
def test_declines(condition, operands, reason):
    outcome = apply(loop(condition, operands), "drop_conditions")
    assert outcome.rewrites["drop_conditions"] == 0
    (found,) = reasons(outcome, "drop_conditions")
    assert found == ("its condition is only known when the loop runs" if reason == "its" else reason)
