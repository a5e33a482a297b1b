import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons
from webrnn.engine.executor.executor import Executor
from webrnn.errors import ShapeError
from webrnn.ir import WEBRNN, Node, Value


def checked(sizes, then="t = Squeeze(x, last)", other="e = Identity(x)"):
    """The last axis is squeezed if it is 1; then the result has to have a certain shape."""
    graph = graph_of(
        f"""g (float[n, 3, m] x) => (float[a, b] y) <int64[1] one = {{1}}, int64[1] last = {{-1}}> {{
            size = Shape<start = 2>(x)
            c = Equal(size, one)
            y = If(c) <
                then_branch = yes () => (float[a, b] t) {{ {then} }},
                else_branch = no () => (float[a, b, d] e) {{ {other} }}
            >
        }}"""
    )
    (made,) = graph.outputs
    graph.outputs = [Value("z")]
    graph.nodes.append(
        Node("ExpectShape", [made], list(graph.outputs), {"sizes": sizes, "what": "X", "same": ()}, "", WEBRNN)
    )
    return graph


def test_a_branch_of_the_wrong_rank():
    graph = checked((None, None))
    assert_keeps_results(graph, [floats(2, 3, 1)], "prune_branches", "inline_if", "remove_dead")
    apply(graph, "prune_branches", "inline_if", "remove_dead")
    assert ops(graph) == {"Squeeze": 1, "ExpectShape": 1}
    with pytest.raises(ShapeError):
        Executor(graph).run([floats(2, 3, 5)])


def test_a_later_condition_on_the_rank_is_followed():
    """The other branch would have four axes behind the second If, as in silero_v6."""
    graph = checked((None, None, None))
    second = graph_of(
        """g (float[a, b] y) => (float[c, d, e] w) <int64[1] zero = {0}, int64 two = {2}> {
            size = Shape(y)
            rank = Size(size)
            is_matrix = Equal(rank, two)
            other = Not(is_matrix)
            s = If(other) <
                then_branch = yes () => (float[c] t) { t = Unsqueeze(y, zero) },
                else_branch = no () => (float[c] u) { u = Identity(y) }
            >
            w = Unsqueeze(s, zero)
        }"""
    )
    check = graph.nodes.pop()
    second.replace_uses({second.inputs[0]: check.inputs[0]})
    graph.constants.update(second.constants)
    graph.nodes.extend([*second.nodes, check])
    check.inputs = [second.outputs[0]]
    assert_keeps_results(graph, [floats(2, 3, 1)], "prune_branches", "inline_if", "remove_dead")
    apply(graph, "prune_branches", "inline_if", "remove_dead")
    assert "If" not in ops(graph)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (checked((None, None, None), then="t = Neg(x)"), "neither branch is certain to fail"),
        (checked((None,)), "both branches are certain to fail"),
    ],
    ids=["neither", "both"],
)
def test_declines(graph, reason):
    outcome = apply(graph, "prune_branches")
    assert reasons(outcome, "prune_branches") == {reason}
    assert outcome.rewrites["prune_branches"] == 0


def test_a_check_before_the_if_says_nothing():
    graph = checked((None, None))
    graph.nodes.pop()
    graph.outputs = [graph.nodes[-1].outputs[0]]
    outcome = assert_keeps_results(graph, [floats(2, 3, 4)], "prune_branches")
    assert outcome.rewrites["prune_branches"] == 0
    assert np.array_equal(Executor(graph).run([floats(2, 3, 4)])[0], floats(2, 3, 4))


def test_an_input_that_the_model_refuses_may_get_a_result():
    """As documented: the condition is no longer looked at, and this branch takes any size."""
    graph = checked((None, None), then="t = ReduceMax<keepdims = 0>(x, last)")
    with pytest.raises(ShapeError):
        Executor(graph).run([floats(2, 3, 5)])
    apply(graph, "prune_branches", "inline_if", "remove_dead")
    assert Executor(graph).run([floats(2, 3, 5)])[0].shape == (2, 3)
