import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from tests.passes.scans import ScanBuilder, scan_in
from webrnn.ir import DType, State, StateSpec

NAME = "grown_states_to_traces"


def growing(axis=0, in_front=False, start=1, pieces=1, read=False):
    s = ScanBuilder()
    x = s.sequence("x")
    so_far = s.body.value("so_far")
    new = [s.body.op("Unsqueeze", s.body.op(op, x), s.body.ints(axis)) for op in ("Tanh", "Neg")[:pieces]]
    after = s.body.op("Concat", *((*new, so_far) if in_front else (so_far, *new)), axis=axis)
    shape = [3, 3]
    shape[axis] = start
    init = s.b.input("init", DType.FLOAT, tuple(shape))
    s.scan.states.append(State(StateSpec(), init, [so_far], after, s.b.value("grown")))
    traces = [s.body.op("ReduceSum", so_far, s.body.ints(axis), keepdims=0)] if read else []
    return s.finish(traces=traces), [floats(4, 3), np.ones(shape, np.float32)]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("in_front", [False, True])
@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize("pieces", [1, 2])
def test_fires(axis, in_front, start, pieces):
    graph, arguments = growing(axis, in_front, start, pieces)
    assert_keeps_results(graph, arguments, NAME)
    apply(graph, NAME)
    scan = scan_in(graph)
    assert not scan.states
    assert [trace.spec.reverse for trace in scan.traces] == [in_front]
    assert ("Concat" in ops(graph)) == (start > 0 or pieces > 1)


def test_declines_what_the_loop_reads():
    graph, arguments = growing(read=True)
    outcome = assert_keeps_results(graph, arguments, NAME)
    assert reasons(outcome, NAME) == {"the loop reads what it has appended so far"}


def test_declines_a_shape_that_changes():
    s = ScanBuilder()
    x = s.sequence("x")
    so_far = s.body.value("so_far")
    positive = s.body.op("Squeeze", s.body.op("NonZero", s.body.op("Relu", x)), s.body.ints(0))
    after = s.body.op("Concat", so_far, positive, axis=0)
    init = s.b.input("init", DType.INT64, (1,))
    s.scan.states.append(State(StateSpec(), init, [so_far], after, s.b.value("grown")))
    outcome = assert_keeps_results(s.finish(), [floats(4, 3), np.array([7], np.int64)], NAME)
    assert reasons(outcome, NAME) == {"the shape of what it appends may change from step to step"}
