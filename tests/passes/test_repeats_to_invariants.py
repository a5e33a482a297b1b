import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, reasons
from tests.passes.scans import ScanBuilder, scan_in
from webrnn.ir import DType, Symbol

NAME = "repeats_to_invariants"


def built(shape, target, axis=0, alone=False, reverse=False):
    """A loop over `target`, an Expand of an input of this shape; not alone, beside another sequence of [steps, 3]."""
    s = ScanBuilder()
    x = None if alone else s.sequence("x")
    narrow = s.b.input("narrow", DType.FLOAT, shape)
    size = s.b.constant(np.array(target, np.int64)) if isinstance(target, list) else target(s)
    c, h = s.sequence("c", axis, reverse, s.b.op("Expand", narrow, size)), s.state("h")
    mixed = s.body.op("Mul", c, x) if x is not None else c
    return s.finish([s.body.op("Add", s.body.op("Tanh", h), mixed)], traces=[mixed])


def steps_of_x(s):
    """[steps, 3], whatever the number of steps."""
    return s.b.op("Shape", s.scan.sequences[0].whole)


@pytest.mark.parametrize("shape", [(1, 3), (3,)])
@pytest.mark.parametrize("reverse", [False, True])
def test_beside_another_sequence(shape, reverse):
    graph = built(shape, steps_of_x, reverse=reverse)
    for steps in (5, 1, 0):
        assert_keeps_results(graph, [floats(steps, 3), floats(*shape), floats(3)], "infer_shapes", NAME)
    apply(graph, "infer_shapes", NAME, "remove_dead")
    scan = scan_in(graph)
    assert (len(scan.sequences), len(scan.invariants), scan.n_steps) == (1, 1, None)
    assert not any(node.op == "Expand" for node in graph.nodes)


@pytest.mark.parametrize(
    ("shape", "target", "axis"), [((1, 3), [4, 3], 0), ((3,), [4, 3], 0), ((3, 1), [3, 4], 1), ((3, 1), [4], -1)]
)
def test_the_expand_says_how_many_steps_there_are(shape, target, axis):
    graph = built(shape, target, axis, alone=True)
    assert_keeps_results(graph, [floats(*shape), floats(3)], "infer_shapes", NAME)
    assert apply(graph, "infer_shapes", NAME).rewrites[NAME] == 1
    scan = scan_in(graph)
    assert not scan.sequences
    assert scan.n_steps is not None


def test_declines_where_the_number_of_steps_may_differ():
    graph = built((1, 3), [5, 3])
    outcome = assert_keeps_results(graph, [floats(5, 3), floats(1, 3), floats(3)], "infer_shapes", NAME)
    assert reasons(outcome, NAME) == {"the loop may have another number of steps"}


def test_declines_what_is_repeated_in_other_axes_too():
    graph = built((1, 1), steps_of_x)
    outcome = assert_keeps_results(graph, [floats(5, 3), floats(1, 1), floats(3)], "infer_shapes", NAME)
    assert reasons(outcome, NAME) == {"other axes are repeated too"}


def test_declines_a_size_that_is_not_known():
    graph = built(None, steps_of_x)
    outcome = assert_keeps_results(graph, [floats(5, 3), floats(1, 3), floats(3)], "infer_shapes", NAME)
    assert reasons(outcome, NAME) == {"a size is not known"}


def test_keeps_a_sequence_that_is_not_repeated():
    graph = built((Symbol("steps"), 1), steps_of_x)
    outcome = assert_keeps_results(graph, [floats(5, 3), floats(5, 1), floats(3)], "infer_shapes", NAME)
    assert not outcome.rewrites[NAME]
    assert not reasons(outcome, NAME)
