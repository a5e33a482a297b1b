import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from tests.passes.scans import ScanBuilder, scan_in
from webrnn.ir import DType, State, StateSpec

NAME = "writes_to_traces"


def writing(place, size=6, op="ScatterND", axis=0, read=False):
    """A loop of 4 steps that writes what it makes of a row at `place` of a tensor of `size` places."""
    s = ScanBuilder()
    s.scan.n_steps = s.b.constant(np.int64(4))
    x = s.sequence("x")
    s.scan.sequences[0].whole.shape = (4, 3)
    s.scan.iteration = s.body.value("i")
    state, index = s.body.value("so_far"), place(s.body, s.scan.iteration)
    new = s.body.op("Unsqueeze", s.body.op("Tanh", x), s.body.ints(axis))
    if op == "ScatterND":
        after = s.body.op("ScatterND", state, s.body.op("Reshape", index, s.body.ints(1, 1)), new)
    else:
        indices = s.body.op("Expand", index, s.body.ints(*(1 if each == axis else 3 for each in range(2))))
        after = s.body.op("ScatterElements", state, indices, new, axis=axis)
    shape = [3, 3]
    shape[axis] = size
    init = s.b.input("init", DType.FLOAT, tuple(shape))
    s.scan.states.append(State(StateSpec(), init, [state], after, s.b.value("written")))
    graph = s.finish(traces=[s.body.op("ReduceSum", state, s.body.ints(0))] if read else [])
    return graph, [floats(4, 3), np.ones(shape, np.float32)]


def number(value):
    return lambda b, i: b.op("Sub", b.constant(np.int64(value)), i)


@pytest.mark.parametrize(
    ("place", "size", "parts"),
    [
        (lambda b, i: i, 4, 1),
        (lambda b, i: i, 6, 2),
        (lambda b, i: b.op("Add", i, b.constant(np.int64(1))), 6, 3),
        (number(3), 4, 1),
        (number(4), 6, 3),
    ],
)
@pytest.mark.parametrize(("op", "axis"), [("ScatterND", 0), ("ScatterElements", 0), ("ScatterElements", 1)])
def test_fires(place, size, parts, op, axis):
    graph, arguments = writing(place, size, op, axis)
    assert_keeps_results(graph, arguments, NAME)
    apply(graph, NAME)
    assert not scan_in(graph).states
    assert not {"ScatterND", "ScatterElements"} & ops(graph).keys()
    assert ops(graph)["Slice"] == parts - 1


def test_declines_what_the_loop_reads():
    graph, arguments = writing(lambda b, i: i, read=True)
    assert reasons(assert_keeps_results(graph, arguments, NAME), NAME) == {"the loop reads what it has written so far"}


@pytest.mark.parametrize("place", [number(2), lambda b, i: b.op("Mod", i, b.constant(np.int64(2)))])
def test_declines_places_that_are_not_known(place):
    graph, arguments = writing(place)
    outcome = assert_keeps_results(graph, arguments, NAME)
    assert reasons(outcome, NAME) == {"it is not known which places its steps write"}
