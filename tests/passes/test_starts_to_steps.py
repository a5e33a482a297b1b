import pytest

from tests.passes.differential import apply, graph_of, reasons
from tests.passes.loops_of_streams import changed, loop_of


@pytest.mark.parametrize(
    "name",
    ["starts from the first frame", "starts from the first frame, Slice", "smoothed from the first frame on"],
)
def test_the_first_step_computes_the_start(name):
    graph, outcome = changed(name, "starts_to_steps")
    assert outcome.rewrites["starts_to_steps"] == 1
    (state,) = loop_of(graph).states
    assert not graph.constants[state.init].any()


@pytest.mark.parametrize("name", ["plain walk", "starts from the last frame"])
def test_other_starts_stay(name):
    _, outcome = changed(name, "starts_to_steps")
    assert outcome.rewrites["starts_to_steps"] == 0


def test_the_size_of_the_first_frame_is_no_frame():
    graph = graph_of("""
    g (float[T, 2] x) => (float[T, 2] y) <int64 zero = {0}, bool yes = {1}> {
        sizes = Shape(x)
        n = Gather(sizes, zero)
        first = Gather(x, zero)
        size = Shape(first)
        h0 = ConstantOfShape(size)
        last, y = Loop (n, yes, h0) <body = body (int64 i, bool go, float[2] h) =>
            (bool again, float[2] next, float[2] out) {
            again = Identity(go)
            next = Tanh(h)
            out = Identity(next)
        }>
    }""")
    outcome = apply(graph, "starts_to_steps")
    assert outcome.rewrites["starts_to_steps"] == 0


def test_the_first_frame_of_something_else():
    graph = graph_of("""
    g (float[T, 2] x, float[S, 2] other) => (float[T, 2] y) <int64 zero = {0}, bool yes = {1}> {
        sizes = Shape(x)
        n = Gather(sizes, zero)
        start = Gather(other, zero)
        last, y = Loop (n, yes, start) <body = body (int64 i, bool go, float[2] h) =>
            (bool again, float[2] next, float[2] out) {
            again = Identity(go)
            next = Tanh(h)
            out = Identity(next)
        }>
    }""")
    outcome = apply(graph, "starts_to_steps")
    assert reasons(outcome, "starts_to_steps") == {"it starts from the first frame of something else"}
    assert outcome.rewrites["starts_to_steps"] == 0
