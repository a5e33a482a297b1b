import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons

NAME = "unpack_sequences"


@pytest.mark.parametrize("position", [0, 1, -1, -3])
def test_an_element_at_a_known_position(position):
    graph = graph_of(
        f"""g (float[2] x) => (float[2] y) {{ a = Tanh(x) b = Relu(x) s = SequenceConstruct(a, b, x)
        p = Constant<value=int64 {{{position}}}>() y = SequenceAt(s, p) }}"""
    )
    assert_keeps_results(graph, [floats(2)], NAME)
    apply(graph, NAME)
    assert ops(graph) == {"Tanh": 1, "Relu": 1, "Identity": 1}


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(("axis", "new_axis"), [(0, 0), (1, 0), (-1, 0), (0, 1), (2, 1), (-1, 1)])
@pytest.mark.parametrize("split_axis", [0, 1])
def test_joined_slices(keepdims, axis, new_axis, split_axis):
    graph = graph_of(
        f"""g (float[n,3,4] x) => (y) {{ s = SplitToSequence<axis={split_axis}, keepdims={keepdims}>(x)
        y = ConcatFromSequence<axis={axis}, new_axis={new_axis}>(s) }}"""
    )
    assert_keeps_results(graph, [floats(5, 3, 4)], NAME)
    apply(graph, NAME)
    assert not {"SplitToSequence", "ConcatFromSequence"} & ops(graph).keys()


def test_the_length_of_items_and_slices():
    graph = graph_of(
        """g (float[n,3] x) => (int64 y) { s = SplitToSequence<axis=0, keepdims=0>(x)
        a = Constant<value=float[3] {1.0, 2.0, 3.0}>() more = SequenceInsert(s, a) y = SequenceLength(more) }"""
    )
    assert_keeps_results(graph, [floats(5, 3)], NAME)
    apply(graph, NAME)
    assert "SequenceLength" not in ops(graph)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y = SequenceAt(s, k)", "it is not known what the sequence is made of"),
        ("a = Tanh(x) t = SequenceConstruct(x, a) y = SequenceAt(t, k)", None),
        (
            "o = Constant<value=float[1] {1.0}>() t = SequenceConstruct(x, o) y = SequenceAt(t, k)",
            "its elements may have different shapes",
        ),
    ],
)
def test_declines(body, reason):
    graph = graph_of(f"g (seq(float[2]) s, float[2] x, int64 k) => (y) {{ {body} }}")
    outcome = assert_keeps_results(graph, [[floats(2), floats(2)], floats(2), np.array(0, np.int64)], NAME)
    assert reasons(outcome, NAME) == ({reason} if reason else set())


def test_parts_whose_number_is_not_known_stay():
    graph = graph_of(
        """g (float[n] x, int64 k) => (y) { two = Constant<value=int64 {2}>() s = SplitToSequence<axis=0>(x, two)
        y = SequenceAt(s, k) }"""
    )
    outcome = assert_keeps_results(graph, [floats(5), np.array(0, np.int64)], NAME)
    assert "how many parts there are is not known" in reasons(outcome, NAME)


def test_optionals():
    graph = graph_of(
        """g (float[2] x) => (a, b, y) { o = Optional(x) a = OptionalHasElement(o) b = OptionalHasElement()
        y = OptionalGetElement(o) }"""
    )
    assert_keeps_results(graph, [floats(2)], NAME)
    apply(graph, NAME)
    assert not {"OptionalHasElement", "OptionalGetElement"} & ops(graph).keys()
