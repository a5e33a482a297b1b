import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons

NAME = "unbox_sequences"
SEQ = "seq(float[2])"


def branches(then, other, before="s = SequenceConstruct(x, a)"):
    return graph_of(
        f"""g (float[2] x, bool p, int64 k) => (y) {{ a = Tanh(x) {before}
        t = If(p) <then_branch = t () => ({SEQ} o) {{ {then} }}, else_branch = e () => ({SEQ} o) {{ {other} }}>
        y = ConcatFromSequence<axis=0, new_axis=1>(t) }}"""
    )


def arguments(condition=True):
    return [floats(2), np.array(condition), np.array(0, np.int64)]


@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize(
    ("then", "other"),
    [
        ("b = Relu(x) o = SequenceConstruct(b, x)", "o = SequenceConstruct(x, x)"),
        ("b = Relu(x) o = SequenceInsert(s, b)", "b = Neg(x) o = SequenceInsert(s, b)"),
        ("o = Identity(s)", "o = Identity(s)"),
        ("b = Relu(x) o = SequenceConstruct(b, x, x)", "o = SequenceConstruct(x, x)"),
    ],
)
def test_what_branches_give(condition, then, other):
    graph = branches(then, other)
    assert_keeps_results(graph, arguments(condition), NAME)
    apply(graph, NAME, "unpack_sequences", "remove_dead")
    assert not {"SequenceInsert", "ConcatFromSequence"} & ops(graph).keys()


def test_declines():
    other = "one = Constant<value=float[1] {1.0}>() o = SequenceConstruct(x, one)"
    graph = branches("o = SequenceConstruct(x)", other, "s = SequenceConstruct(x)")
    outcome = assert_keeps_results(graph, arguments(), NAME)
    assert reasons(outcome, NAME) == {"its branches make a sequence in different ways"}


def test_invariants_of_a_loop():
    graph = graph_of(
        """g (float[n,2] x) => (y) { s = SplitToSequence<axis=0, keepdims=0>(x) n = SequenceLength(s)
        go = Constant<value=bool {1}>()
        y = Loop(n, go) <body = b (int64 i, bool c) => (bool c2, float[2] h) { r = SequenceAt(s, i) h = Tanh(r)
            c2 = Identity(c) }> }"""
    )
    assert_keeps_results(graph, [floats(4, 2)], NAME, "unpack_sequences")
    apply(graph, NAME, "unpack_sequences")
    assert not {"SequenceAt", "SplitToSequence"} & ops(graph).keys()
