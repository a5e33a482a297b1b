import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from tests.passes.scans import ScanBuilder, scan_in
from webrnn.ir import DType, Symbol, TraceSpec, is_scan

STEPS = pytest.mark.parametrize("steps", [0, 1, 4])


@STEPS
@pytest.mark.parametrize("reverse", [False, True])
def test_products_and_what_follows_leave(steps, reverse):
    s = ScanBuilder()
    x, h = s.sequence("x", reverse=reverse), s.state("h")
    w, r = s.body.constant(floats(3, 6)), s.body.constant(floats(3, 3))
    left, right = s.body.split(s.body.op("MatMul", x, w), ["left", "right"])
    after = s.body.op("Tanh", s.body.op("Add", s.body.op("Mul", left, right), s.body.op("MatMul", h, r)))
    graph = s.finish([after], traces=[(after, TraceSpec(reverse=reverse))])
    assert_keeps_results(graph, [floats(steps, 3), floats(3)], "hoist_sequences")
    assert apply(graph, "hoist_sequences").rewrites["hoist_sequences"] == 3
    assert ops(scan_in(graph).body) == {"Add": 1, "MatMul": 1, "Tanh": 1}
    assert len(scan_in(graph).sequences) == 1


@STEPS
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("trace_axis", [0, 1, -1])
@pytest.mark.parametrize("directions", [(False, False), (False, True), (True, False), (True, True)])
def test_a_scan_without_states_disappears(steps, axis, trace_axis, directions):
    s = ScanBuilder()
    x = s.sequence("x", axis=axis, reverse=directions[0])
    w = s.invariant("w")
    made = s.body.op("Exp", s.body.op("Mul", x, w))
    graph = s.finish(traces=[(made, TraceSpec(trace_axis, directions[1]))])
    shape = (steps, 3) if axis == 0 else (3, steps)
    assert_keeps_results(graph, [floats(*shape), floats(3)], "hoist_sequences")
    apply(graph, "hoist_sequences")
    assert not any(is_scan(node) for node in graph.nodes)


def test_declines_a_loop_with_a_condition():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    after = s.body.op("Add", s.body.op("Exp", x), h)
    s.scan.body_cond = s.body.op("Less", s.body.op("ReduceSum", after, keepdims=0), s.body.constant(np.float32(3)))
    graph = s.finish([after])
    outcome = assert_keeps_results(graph, [floats(4, 3), floats(3)], "hoist_sequences")
    assert reasons(outcome, "hoist_sequences") == {"it may end before its sequences do"}


def declines(build, *arguments):
    s = ScanBuilder()
    graph = build(s)
    outcome = assert_keeps_results(graph, list(arguments), "hoist_sequences")
    return reasons(outcome, "hoist_sequences"), graph, outcome


def test_declines_sequences_of_different_directions():
    def build(s):
        made = s.body.op("Add", s.sequence("x"), s.sequence("z", reverse=True))
        return s.finish(traces=[made])

    found, _, outcome = declines(build, floats(4, 3), floats(4, 3))
    assert found == {"it reads sequences that run in different directions"}
    assert outcome.rewrites["hoist_sequences"] == 0


@STEPS
@pytest.mark.parametrize("directions", [(False, False), (False, True), (True, False), (True, True)])
def test_a_trimmed_trace_is_cut_from_all_steps(steps, directions):
    s = ScanBuilder()
    made = s.body.op("Exp", s.sequence("x", reverse=directions[0]))
    graph = s.finish(traces=[(made, TraceSpec(1, directions[1], keep=2))])
    assert_keeps_results(graph, [floats(steps, 3)], "hoist_sequences")
    apply(graph, "hoist_sequences")
    assert not any(is_scan(node) for node in graph.nodes)


@STEPS
@pytest.mark.parametrize("directions", [(False, False), (False, True), (True, False), (True, True)])
def test_a_trace_that_is_longer_than_the_loop_is_filled_with_zeros(steps, directions):
    s = ScanBuilder()
    made = s.body.op("Exp", s.sequence("x", reverse=directions[0]))
    graph = s.finish(traces=[(made, TraceSpec(1, directions[1], length=5))])
    assert_keeps_results(graph, [floats(steps, 3)], "hoist_sequences")
    apply(graph, "hoist_sequences")
    assert not any(is_scan(node) for node in graph.nodes)


def test_declines_a_trace_of_fewer_steps():
    def build(s):
        s.scan.n_steps = s.b.constant(np.array(2, np.int64))
        return s.finish(traces=[s.body.op("Exp", s.sequence("x"))])

    found, _, _ = declines(build, floats(4, 3))
    assert found == {"trace of exp: the number of steps is given apart from the sequences"}


def test_declines_an_op_that_it_does_not_know():
    found, _, _ = declines(
        lambda s: s.finish(traces=[s.body.op("CumSum", s.sequence("x"), s.body.constant(np.array(0, np.int64)))]),
        floats(4, 3),
    )
    assert found == {"it is not known how to do it for all steps at once"}


def decay(width):
    """One number a step and a state of some width: what both have together is larger than the sequence."""
    s = ScanBuilder(width)
    x = s.sequence("x", whole=s.b.input("x", DType.FLOAT, (Symbol("steps"), 1)))
    h, a = s.state("h"), s.invariant("a")
    return s, h, s.body.op("Exp", s.body.op("Mul", x, a))


@STEPS
def test_what_repeats_its_operands_stays_where_a_state_needs_it(steps):
    s, h, grown = decay(256)
    after = s.body.op("Add", s.body.op("Mul", h, grown), grown)
    graph = s.finish([after], traces=[s.body.op("ReduceSum", after, keepdims=0)])
    outcome = assert_keeps_results(graph, [floats(steps, 1), floats(256), floats(256)], "hoist_sequences")
    assert reasons(outcome, "hoist_sequences") == {"it repeats its operands, for this step only"}
    assert ops(scan_in(graph).body)["Exp"] == 1


@pytest.mark.parametrize(("width", "is_traced"), [(256, True), (8, False)])
def test_what_repeats_its_operands_leaves_otherwise(width, is_traced):
    """A result that is read without a state, too; a small one."""
    s, h, grown = decay(width)
    graph = s.finish([s.body.op("Add", h, grown)], traces=[grown] if is_traced else [])
    assert_keeps_results(graph, [floats(3, 1), floats(width), floats(width)], "hoist_sequences")
    apply(graph, "hoist_sequences")
    assert "Exp" not in ops(scan_in(graph).body)
