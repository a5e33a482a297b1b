import numpy as np

from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from tests.passes.scans import ScanBuilder, scan_in
from webrnn.ir import DType


def test_a_chain_on_invariants_leaves():
    s = ScanBuilder()
    x, w, h = s.sequence("x"), s.invariant("w"), s.state("h")
    scaled = s.body.op("Mul", s.body.op("Exp", w), s.body.constant(np.float32(2)))
    graph = s.finish([s.body.op("Add", s.body.op("Mul", x, scaled), h)])
    for steps in (0, 1, 4):
        assert_keeps_results(graph, [floats(steps, 3), floats(3), floats(3)], "hoist_invariants")
    assert apply(graph, "hoist_invariants").rewrites["hoist_invariants"] == 2
    scan = scan_in(graph)
    assert ops(scan.body) == {"Mul": 1, "Add": 1}
    assert len(scan.invariants) == 1
    assert [node.op for node in graph.nodes] == ["Exp", "Mul", "Scan"]


def test_leaves_two_loops_at_once():
    """What is invariant in both loops goes to the front of the outer one, a loop a round."""
    outer, inner = ScanBuilder(), ScanBuilder()
    x, w, h = outer.sequence("x"), outer.invariant("w"), outer.state("h")
    inner.b, inner.scan.body.name = outer.body, "rows"
    inner.body.parent = outer.body
    inner.sequence("rows", whole=outer.body.op("Concat", x, x, axis=0))
    g = inner.invariant("g", w)
    k = inner.body.value("k")
    inner._states.append((h, k, "k"))
    inner.finish([inner.body.op("Add", inner.body.op("Exp", g), k)])
    (final,) = outer.body.graph.outputs
    graph = outer.finish([final])
    assert_keeps_results(graph, [floats(4, 3), floats(3), floats(3)], "hoist_invariants")
    apply(graph, "hoist_invariants")
    assert [node.op for node in graph.nodes] == ["Exp", "Scan"]


def gathering(steps):
    s = ScanBuilder()
    if steps is None:
        x = s.sequence("x")
    else:
        x = s.sequence("x", whole=s.b.constant(floats(steps, 3)))
    table, h = s.invariant("table", shape=(5, 3)), s.state("h")
    index = s.b.input("index", DType.INT64, ())
    picked = s.body.op("Gather", table, s.invariant("index", index))
    return s.finish([s.body.op("Add", s.body.op("Add", x, picked), h)])


def test_declines_what_could_fail_if_there_is_no_step():
    graph = gathering(None)
    arguments = [floats(0, 3), floats(5, 3), floats(3), np.array(99)]
    outcome = assert_keeps_results(graph, arguments, "hoist_invariants")
    assert reasons(outcome, "hoist_invariants") == {"it could fail where the loop takes no step"}


def test_hoists_it_where_there_is_a_step():
    graph = gathering(4)
    assert_keeps_results(graph, [floats(5, 3), floats(3), np.array(2)], "hoist_invariants")
    assert apply(graph, "hoist_invariants").rewrites["hoist_invariants"] == 1
