import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons
from tests.passes.scans import ScanBuilder
from webrnn.ir import DType, State, StateSpec, TraceSpec
from webrnn.passes import run_passes
from webrnn.passes.unroll_loops import MOST_STEPS

NAME = "unroll_loops"


def growing(steps, reverse=False):
    """A state that grows in each step, and that the step reads."""
    s = ScanBuilder()
    x = s.sequence("x", reverse=reverse)
    s.scan.sequences[0].whole.shape = (steps, 3)
    s.scan.iteration = s.body.value("i")
    so_far = s.body.value("so_far")
    after = s.body.op("Concat", so_far, s.body.op("Unsqueeze", x, s.body.ints(0)), axis=0)
    sums = s.body.op("ReduceSum", after, s.body.ints(0), keepdims=0)
    made = s.body.op("Mul", sums, s.body.op("Cast", s.scan.iteration, to=int(DType.FLOAT)))
    init = s.b.input("init", DType.FLOAT, (1, 3))
    s.scan.states.append(State(StateSpec(), init, [so_far], after, s.b.value("grown")))
    return s.finish(traces=[(made, TraceSpec(1, reverse))])


@pytest.mark.parametrize("reverse", [False, True])
def test_fires(reverse):
    graph = growing(3, reverse)
    assert_keeps_results(graph, [floats(3, 3), floats(1, 3)], NAME)
    apply(graph, NAME)
    assert "Scan" not in ops(graph)


@pytest.mark.parametrize(
    ("steps", "given", "reason"),
    [
        (MOST_STEPS + 1, MOST_STEPS + 1, "it takes too many steps to be written out"),
        (None, 3, "how many steps it takes is only known when it runs"),
    ],
)
def test_declines(steps, given, reason):
    outcome = assert_keeps_results(growing(steps), [floats(given, 3), floats(1, 3)], NAME)
    assert reasons(outcome, NAME) == {reason}


def test_a_loop_over_tensors_of_different_shapes():
    graph = graph_of(
        """g (float[2] x, float[3] y) => (z) { s = SequenceConstruct(x, y)
        t = SequenceMap(s) <body = b (float[n] e) => (float[n] f) { f = Tanh(e) }>
        z = ConcatFromSequence<axis=0>(t) }"""
    )
    assert_keeps_results(graph, [floats(2), floats(3)], NAME)
    run_passes(graph)
    assert "Scan" not in ops(graph)
    assert not any("Sequence" in op for op in ops(graph))


def test_a_plain_loop_stays():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    s.scan.sequences[0].whole.shape = (3, 3)
    after = s.body.op("Tanh", s.body.op("Add", x, h))
    graph = s.finish(states=[after], traces=[after])
    outcome = assert_keeps_results(graph, [floats(3, 3), floats(3)], NAME)
    assert outcome.rewrites[NAME] == 0
    assert reasons(outcome, NAME) == set()
