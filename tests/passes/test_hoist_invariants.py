import numpy as np

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons
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
    arguments = [floats(0, 3), floats(5, 3), floats(3), np.array(99, np.int64)]
    outcome = assert_keeps_results(graph, arguments, "hoist_invariants")
    assert reasons(outcome, "hoist_invariants") == {"it could fail where the loop takes no step"}


def test_hoists_it_where_there_is_a_step():
    graph = gathering(4)
    assert_keeps_results(graph, [floats(5, 3), floats(3), np.array(2, np.int64)], "hoist_invariants")
    assert apply(graph, "hoist_invariants").rewrites["hoist_invariants"] == 1


def loop_in_loop(build, **sequence):
    """A Scan in the body of another, that reads nothing but an invariant of it."""
    outer, inner = ScanBuilder(), ScanBuilder()
    x, h = outer.sequence("x", **sequence), outer.state("h")
    table = outer.invariant("table", shape=(5, 3))
    inner.b, inner.body.parent, inner.scan.name = outer.body, outer.body, "inner"
    total = build(outer, inner, table)
    return outer.finish([outer.body.op("Add", outer.body.op("Add", x, total), h)])


def sum_of_rows(outer, inner, table, op="Add"):
    row, k = inner.sequence("row", whole=table), inner.body.value("k")
    inner._states.append((outer.body.constant(np.ones(3, np.float32)), k, "k"))
    inner.finish([inner.body.op(op, row, k)])
    return outer.body.graph.outputs[0]


def test_a_loop_leaves_a_loop():
    graph = loop_in_loop(sum_of_rows)
    for steps in (0, 1, 4):
        assert_keeps_results(graph, [floats(steps, 3), floats(5, 3), floats(3)], "hoist_invariants")
    assert apply(graph, "hoist_invariants").rewrites["hoist_invariants"] == 1
    assert [node.op for node in graph.nodes] == ["Scan", "Scan"]
    assert ops(graph.nodes[1].attrs["body"]) == {"Add": 2}


def test_branches_leave_a_loop():
    branch = "{name} () => (float[3] r) {{ r = {op}(w) }}"
    branches = ", ".join(
        f"{name}_branch = " + branch.format(name=name, op=op) for name, op in (("then", "Neg"), ("else", "Abs"))
    )
    graph = graph_of(
        """g (float[n, 3] x, float[3] w, float[3] h0, bool c) => (float[3] h) {
            h = Scan<num_scan_inputs = 1, body = body (float[3] h_in, float[3] e) => (float[3] h_out) {
                scale = If(c) <"""
        + branches
        + """>
                scaled = Mul(e, scale)
                h_out = Add(scaled, h_in)
            }>(h0, x)
        }"""
    )
    for steps in (0, 3):
        assert_keeps_results(graph, [floats(steps, 3), floats(3), floats(3), np.array(True)], "hoist_invariants")
    apply(graph, "hoist_invariants")
    assert [node.op for node in graph.nodes] == ["If", "Scan"]


def picks_a_row(outer, inner, table):
    index = inner.body.op("Cast", inner.body.op("ReduceSum", inner.sequence("row", whole=table)), to=int(DType.INT64))
    picked = inner.body.op(
        "Gather", inner.invariant("rows", table), inner.body.op("Squeeze", index, inner.body.ints(0))
    )
    inner.finish(traces=[picked])
    return outer.body.op("ReduceSum", outer.body.graph.outputs[0], outer.body.ints(0), keepdims=0)


def counts_an_input(outer, inner, table):
    inner.scan.n_steps = outer.invariant("count", outer.b.input("count", DType.INT64, ()))
    k = inner.body.value("k")
    inner._states.append((outer.body.constant(np.ones(3, np.float32)), k, "k"))
    inner.finish([inner.body.op("Add", k, k)])
    return outer.body.graph.outputs[0]


def test_declines_loops_that_could_fail():
    graph = loop_in_loop(picks_a_row)
    outcome = assert_keeps_results(graph, [floats(0, 3), 99 * floats(5, 3), floats(3)], "hoist_invariants")
    assert reasons(outcome, "hoist_invariants") == {"it could fail where the loop takes no step"}


def test_declines_loops_of_unknown_length():
    graph = loop_in_loop(counts_an_input)
    arguments = [floats(0, 3), floats(5, 3), floats(3), np.array(2**40)]
    outcome = assert_keeps_results(graph, arguments, "hoist_invariants")
    assert reasons(outcome, "hoist_invariants") == {"it could fail where the loop takes no step"}
