import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from tests.passes.scans import ScanBuilder, scan_in
from webrnn.ir import DType, TraceSpec


def counted(n_steps, lengths=(4,), **sequence):
    s = ScanBuilder()
    h = s.state("h")
    total = h
    for index, length in enumerate(lengths):
        total = s.body.op("Add", total, s.sequence(f"x{index}", **sequence))
        if length is not None:
            shape = [3]
            shape.insert(sequence.get("axis", 0), length)
            s.scan.sequences[-1].whole.shape = tuple(shape)
    s.scan.n_steps = n_steps(s.b) if callable(n_steps) else s.b.constant(np.array(n_steps))
    return s.finish([total], traces=[(total, TraceSpec(1))])


def assert_dropped(graph, arguments, slices):
    assert_keeps_results(graph, arguments, "drop_step_counts")
    assert apply(graph, "drop_step_counts").rewrites["drop_step_counts"] == 1
    assert scan_in(graph).n_steps is None
    assert ops(graph)["Slice"] == slices


def test_as_many_steps_as_elements():
    assert_dropped(counted(4), [floats(3), floats(4, 3)], 0)


@pytest.mark.parametrize("n_steps", [0, 1, 3, -1, [2]])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_longer_sequences_are_cut(n_steps, axis, reverse):
    shape = (4, 3) if axis == 0 else (3, 4)
    graph = counted(n_steps, (4, 4), axis=axis, reverse=reverse)
    assert_dropped(graph, [floats(3), floats(*shape), floats(*shape, seed=1)], 2)


def test_named_lengths():
    def count(b):
        return b.op("Gather", b.op("Shape", b.graph.inputs[1]), b.ints(0))

    assert_dropped(counted(count, (None,)), [floats(3), floats(4, 3)], 0)


def test_a_named_count_of_longer_sequences():
    s = ScanBuilder()
    h, x = s.state("h"), s.sequence("x")
    short = s.scan.sequences[0].whole
    s.scan.sequences[0].whole = s.b.op("Concat", short, short, axis=0)
    s.scan.n_steps = s.b.op("Gather", s.b.op("Shape", short), s.b.constant(np.array(0, np.int64)))
    graph = s.finish([s.body.op("Add", h, x)])
    assert_dropped(graph, [floats(3), floats(4, 3)], 1)


@pytest.mark.parametrize("count", [0, 2, 4])
def test_declines_a_count_that_is_not_known(count):
    graph = counted(lambda b: b.input("count", DType.INT64, ()), (None,))
    outcome = assert_keeps_results(graph, [floats(3), floats(4, 3), np.array(count)], "drop_step_counts")
    assert outcome.rewrites["drop_step_counts"] == 0
    assert reasons(outcome, "drop_step_counts") == {
        "it is not known whether it takes as many steps as its sequences have"
    }


def test_a_loop_without_sequences_stays():
    outcome = apply(counted(4, ()), "drop_step_counts")
    assert outcome.rewrites["drop_step_counts"] == 0
    assert not outcome.declines
