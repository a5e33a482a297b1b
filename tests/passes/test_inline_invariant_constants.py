import numpy as np

from tests.passes.differential import apply, assert_keeps_results, floats, reasons
from tests.passes.scans import ScanBuilder, scan_in


def test_constant_invariants():
    s = ScanBuilder()
    x, w, h = s.sequence("x"), s.invariant("w", s.b.constant(floats(3))), s.state("h")
    graph = s.finish([s.body.op("Add", s.body.op("Mul", x, w), h)], traces=[w])
    assert_keeps_results(graph, [floats(4, 3), floats(3)], "inline_invariant_constants")
    assert apply(graph, "inline_invariant_constants").rewrites["inline_invariant_constants"] == 1
    assert not scan_in(graph).invariants
    assert len(scan_in(graph).body.constants) == 1


def test_a_sequence_that_repeats_one_element():
    for alone in (True, False):
        s = ScanBuilder()
        repeated = s.b.constant(np.tile(floats(3), (5, 1)), "repeated")
        c = s.sequence("c", whole=repeated, reverse=True)
        x = c if alone else s.sequence("x")
        h = s.state("h")
        graph = s.finish([s.body.op("Add", s.body.op("Tanh", h), s.body.op("Mul", c, x))])
        assert_keeps_results(
            graph, ([] if alone else [floats(5, 3)]) + [floats(3)], "inline_invariant_constants", "remove_dead"
        )
        apply(graph, "inline_invariant_constants", "remove_dead")
        scan = scan_in(graph)
        assert len(scan.sequences) == (not alone)
        assert (scan.n_steps is not None) == alone


def test_keeps_a_sequence_that_varies():
    s = ScanBuilder()
    x, h = s.sequence("x", whole=s.b.constant(floats(5, 3))), s.state("h")
    graph = s.finish([s.body.op("Add", x, h)])
    assert apply(graph, "inline_invariant_constants").rewrites["inline_invariant_constants"] == 0


def test_elements_that_differ_in_the_sign_of_zero_are_different():
    s = ScanBuilder()
    x, h = s.sequence("x", whole=s.b.constant(np.float32([[0, 0, 0], [-0.0, 0, 0]]))), s.state("h")
    graph = s.finish([s.body.op("Add", x, h)])
    assert apply(graph, "inline_invariant_constants").rewrites["inline_invariant_constants"] == 0


def test_declines_an_empty_sequence():
    s = ScanBuilder()
    x, h = s.sequence("x", whole=s.b.constant(np.zeros((0, 3), np.float32))), s.state("h")
    graph = s.finish([s.body.op("Add", x, h)])
    outcome = assert_keeps_results(graph, [floats(3)], "inline_invariant_constants")
    assert reasons(outcome, "inline_invariant_constants") == {"an empty sequence has no element to repeat"}
