import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from tests.passes.scans import ScanBuilder, scan_in
from webrnn.ir import State, StateSpec
from webrnn.passes import run_passes

NAME = "counters_to_iterations"


def counting(start, step, op="Add", read_final=False):
    """A loop of 3 steps that picks rows of a table by a state that it counts up itself."""
    s = ScanBuilder()
    s.scan.n_steps = s.b.constant(np.int64(3))
    count = s.body.value("count")
    after = s.body.op(op, count, s.body.constant(step) if isinstance(step, np.ndarray) else s.invariant("step", step))
    final = s.b.value("count_final") if read_final else None
    s.scan.states.append(State(StateSpec(), s.b.constant(start), [count], after, final))
    row = s.body.op("Gather", s.invariant("table", shape=(9, 3)), count)
    return s.finish(traces=[row])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize(("start", "step", "op"), [(0, 1, "Add"), (2, 2, "Add"), (5, 1, "Sub"), (4, -1, "Add")])
def test_fires(dtype, shape, start, step, op):
    graph = counting(np.full(shape, start, dtype), np.full((), step, dtype), op)
    assert_keeps_results(graph, [floats(9, 3)], NAME, "remove_unused")
    apply(graph, NAME, "remove_unused")
    scan = scan_in(graph)
    assert not scan.states
    assert scan.iteration is not None


def test_the_last_value_of_the_counter_is_kept():
    graph = counting(np.array(1, np.int64), np.array(2, np.int64), read_final=True)
    assert_keeps_results(graph, [floats(9, 3)], NAME, "remove_unused")
    apply(graph, NAME, "remove_unused")
    assert len(scan_in(graph).states) == 1


def test_with_the_others_it_is_a_scan_over_the_table():
    graph = counting(np.array(1, np.int32), np.array(1, np.int32))
    run_passes(graph)
    assert not {"Scan", "Gather"} & ops(graph).keys()


def test_declines():
    s = ScanBuilder()
    s.scan.n_steps = s.b.constant(np.int64(3))
    step = s.invariant("step", s.b.op("ReduceMax", s.b.op("Cast", s.b.input("n", shape=(1,)), to=7), keepdims=0))
    count = s.body.value("count")
    s.scan.states.append(
        State(StateSpec(), s.b.constant(0), [count], s.body.op("Add", count, step), s.b.value("final"))
    )
    graph = s.finish(traces=[s.body.op("Gather", s.invariant("table", shape=(9, 3)), count)])
    s.b.graph.inputs[0].dtype = s.b.graph.inputs[1].dtype
    outcome = assert_keeps_results(graph, [np.float32([2]), floats(9, 3)], NAME)
    assert reasons(outcome, NAME) == {"what a step adds is only known when the loop runs"}
