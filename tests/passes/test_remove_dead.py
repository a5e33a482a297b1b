import numpy as np

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops
from tests.passes.scans import ScanBuilder, scan_in


def test_a_chain_that_nobody_reads():
    graph = graph_of("g (float[3] x) => (float[3] y) <float[3] c = {1, 2, 3}> { y = Neg(x) a = Add(x, c) b = Exp(a) }")
    assert apply(graph, "remove_dead").rewrites["remove_dead"] == 2
    assert ops(graph) == {"Neg": 1}
    assert not graph.constants


def test_outputs_and_inputs_of_an_if_that_nobody_reads():
    graph = graph_of(
        """g (bool c, float[3] x, float[3] z) => (float[3] y) {
            y, unread = If(c) <
                then_branch = yes () => (float[3] t, float[3] u) { t = Neg(x) u = Exp(z) },
                else_branch = no () => (float[3] e, float[3] f) { e = Abs(x) f = Log(z) }
            >
        }"""
    )
    assert_keeps_results(graph, [np.array(True), floats(3), floats(3)], "remove_dead")
    apply(graph, "remove_dead")
    assert ops(graph) == {"If": 1, "Neg": 1, "Abs": 1}
    assert len(graph.nodes[0].inputs) == 2


def test_unread_outputs_of_a_scan_are_left_out():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    after = s.body.op("Add", x, h)
    graph = s.finish(states=[after], traces=[after])
    graph.outputs = graph.outputs[1:]
    apply(graph, "remove_dead")
    assert scan_in(graph).states[0].final is None


def test_keeps_what_is_read():
    graph = graph_of("g (float[3] x) => (float[3] y) { a = Exp(x) y = Neg(a) }")
    assert apply(graph, "remove_dead").rewrites["remove_dead"] == 0
