import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from tests.passes.scans import ScanBuilder, scan_in
from webrnn.ir import TraceSpec
from webrnn.passes import run_passes

STEPS = pytest.mark.parametrize("steps", [0, 1, 4])


def recurrence(s, reverse=False):
    """The state of a tanh recurrence, after a step."""
    x, h = s.sequence("x", reverse=reverse), s.state("h")
    return s.body.op("Tanh", s.body.op("Add", x, s.body.op("MatMul", h, s.body.constant(floats(3, 3)))))


def projection(s, after):
    product = s.body.op("MatMul", after, s.body.constant(floats(3, 5, seed=1)))
    return s.body.op("Sigmoid", s.body.op("Add", product, s.invariant("bias", shape=(5,))))


@STEPS
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("spec", [TraceSpec(), TraceSpec(1), TraceSpec(-2), TraceSpec(0, True), TraceSpec(-1, True)])
def test_an_output_projection_is_done_once_for_all_steps(steps, reverse, spec):
    s = ScanBuilder()
    after = recurrence(s, reverse)
    graph = s.finish([after], traces=[(projection(s, after), spec)])
    arguments = [floats(steps, 3), floats(3), floats(5)]
    assert_keeps_results(graph, arguments, "sink_outputs")
    assert apply(graph, "sink_outputs").rewrites["sink_outputs"] == 3
    scan = scan_in(graph)
    assert ops(scan.body) == {"MatMul": 1, "Add": 1, "Tanh": 1}
    (trace,) = scan.traces
    assert trace.element is scan.states[0].body_out
    assert (trace.spec.axis, trace.spec.reverse) == (0, spec.reverse)
    outside = [node.op for node in graph.nodes if node.op != "Transpose"]
    assert outside == ["Scan", "MatMul", "Add", "Sigmoid"]


@STEPS
def test_a_trace_that_is_there_is_used(steps):
    s = ScanBuilder()
    after = recurrence(s)
    graph = s.finish([after], traces=[(after, TraceSpec(1)), projection(s, after)])
    assert_keeps_results(graph, [floats(steps, 3), floats(3), floats(5)], "sink_outputs")
    apply(graph, "sink_outputs")
    assert len(scan_in(graph).traces) == 1


@STEPS
@pytest.mark.parametrize("directions", [(False, False), (False, True), (True, False), (True, True)])
def test_sequences_are_read_from_outside(steps, directions):
    s = ScanBuilder()
    h = s.state("h")
    x = s.sequence("x", axis=1, reverse=directions[0])
    after = s.body.op("Tanh", s.body.op("Add", x, h))
    graph = s.finish([after], traces=[(s.body.op("Mul", after, x), TraceSpec(reverse=directions[1]))])
    assert_keeps_results(graph, [floats(3), floats(3, steps)], "sink_outputs")
    outcome = apply(graph, "sink_outputs")
    if directions[0] == directions[1]:
        assert ops(scan_in(graph).body) == {"Add": 1, "Tanh": 1}
        assert len(scan_in(graph).traces) == 1
    else:
        assert reasons(outcome, "sink_outputs") == {"what it reads is larger than what it gives"}


def test_nodes_leave_together_where_the_first_one_pays():
    s = ScanBuilder()
    after = recurrence(s)
    made = projection(s, after)
    best = s.body.op("ReduceMax", made, s.body.ints(0), keepdims=0)
    graph = s.finish([after], traces=[best])
    assert_keeps_results(graph, [floats(4, 3), floats(3), floats(5)], "sink_outputs")
    assert apply(graph, "sink_outputs").rewrites["sink_outputs"] == 1
    assert ops(scan_in(graph).body) == {"MatMul": 1, "Add": 1, "Tanh": 1}


@STEPS
def test_a_trimmed_trace_stays_trimmed(steps):
    s = ScanBuilder()
    after = recurrence(s)
    graph = s.finish([after], traces=[(projection(s, after), TraceSpec(1, keep=2))])
    assert_keeps_results(graph, [floats(steps, 3), floats(3), floats(5)], "sink_outputs")
    apply(graph, "sink_outputs")
    assert [trace.spec for trace in scan_in(graph).traces] == [TraceSpec(keep=2)]


@STEPS
def test_a_sequence_beside_a_trimmed_trace(steps):
    s = ScanBuilder()
    h, x = s.state("h"), s.sequence("x")
    after = s.body.op("Tanh", s.body.op("Add", x, h))
    made = s.body.op("MatMul", s.body.op("Mul", after, x), s.body.constant(floats(3, 7)))
    graph = s.finish([after], traces=[(s.body.op("Concat", made, x, axis=0), TraceSpec(keep=2))])
    assert_keeps_results(graph, [floats(3), floats(steps, 3)], "sink_outputs")
    apply(graph, "sink_outputs")
    assert {trace.spec.keep for trace in scan_in(graph).traces} == {2}


def test_a_loop_with_a_condition():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    after = s.body.op("Add", s.body.op("Abs", x), h)
    s.scan.body_cond = s.body.op("Less", s.body.op("ReduceSum", after, keepdims=0), s.body.constant(np.float32(5)))
    made = s.body.op("MatMul", s.body.op("Sub", after, x), s.body.constant(floats(3, 2)))
    graph = s.finish([after], traces=[made])
    assert_keeps_results(graph, [floats(9, 3), floats(3)], "sink_outputs")
    apply(graph, "sink_outputs")
    assert ops(scan_in(graph).body)["MatMul"] == 0
    assert len(scan_in(graph).traces) == 1


def test_a_loop_with_a_condition_keeps_what_is_no_product():
    s = ScanBuilder()
    h = s.state("h")
    after = s.body.op("Add", s.body.op("Abs", h), s.body.constant(np.float32(1)))
    s.scan.body_cond = s.body.op("Less", s.body.op("ReduceSum", after, keepdims=0), s.body.constant(np.float32(20)))
    graph = s.finish([after], traces=[s.body.op("Tanh", after)])
    outcome = assert_keeps_results(graph, [floats(3)], "sink_outputs")
    assert reasons(outcome, "sink_outputs") == {"how many steps there are is known when they are done"}
    assert ops(scan_in(graph).body)["Tanh"] == 1


def test_what_is_fed_back_stays():
    s = ScanBuilder()
    after = recurrence(s)
    outcome = apply(s.finish([after], traces=[after]), "sink_outputs")
    assert outcome.rewrites["sink_outputs"] == 0
    assert not outcome.declines


def test_it_stands_still_with_the_other_passes():
    s = ScanBuilder()
    after = recurrence(s)
    graph = s.finish([after], traces=[projection(s, after), (s.body.op("Exp", after), TraceSpec(1, True))])
    before = graph.copy()
    assert run_passes(graph, check=True).reached_fixpoint
    assert not sum(run_passes(graph).rewrites.values())
    assert before.outputs[1].name == graph.outputs[1].name


def declines(build, *arguments):
    s = ScanBuilder()
    graph = build(s)
    outcome = assert_keeps_results(graph, list(arguments), "sink_outputs")
    assert outcome.rewrites["sink_outputs"] == 0
    return reasons(outcome, "sink_outputs")


def test_declines_where_the_traces_would_be_larger():
    def build(s):
        after = recurrence(s)
        return s.finish([after], traces=[s.body.op("ReduceSum", after, s.body.ints(0))])

    assert declines(build, floats(4, 3), floats(3)) == {"what it reads is larger than what it gives"}


def test_declines_unknown_sizes():
    def build(s):
        after = recurrence(s)
        return s.finish([after], traces=[s.body.op("Neg", s.body.op("NonZero", after))])

    assert declines(build, floats(4, 3), floats(3)) == {"the sizes of what it reads and gives are not known"}


def test_declines_what_is_the_same_in_each_step():
    def build(s):
        after = recurrence(s)
        return s.finish([after], traces=[s.body.op("Exp", s.invariant("w"))])

    assert declines(build, floats(4, 3), floats(3), floats(3)) == {"it is the same in each step"}


def test_declines_where_a_result_on_the_way_is_large():
    def build(s):
        after = recurrence(s)
        logits = s.body.op("MatMul", after, s.body.constant(floats(3, 500)))
        return s.finish([after], traces=[s.body.op("ReduceMax", logits, s.body.ints(0))])

    found = declines(build, floats(4, 3), floats(3))
    assert found == {"a result on the way is much larger than what is traced"}


def test_declines_traces_of_different_directions():
    def build(s):
        after = recurrence(s)
        made = s.body.op("Exp", after)
        return s.finish([after], traces=[made, (made, TraceSpec(reverse=True))])

    assert declines(build, floats(4, 3), floats(3)) == {"its traces differ in direction or in length"}


def test_declines_a_trace_that_is_longer_than_the_loop():
    def build(s):
        after = recurrence(s)
        return s.finish([after], traces=[(s.body.op("Exp", after), TraceSpec(length=6))])

    assert declines(build, floats(4, 3), floats(3)) == {"its trace is longer than the loop"}


def test_declines_an_op_that_it_does_not_know():
    def build(s):
        after = recurrence(s)
        return s.finish([after], traces=[s.body.op("CumSum", after, s.body.constant(np.array(0, np.int64)))])

    assert declines(build, floats(4, 3), floats(3)) == {"it is not known how to do it for all steps at once"}
