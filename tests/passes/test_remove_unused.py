import itertools

import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, reasons
from tests.passes.scans import ScanBuilder, scan_in

NAMES = "abcd"


def states_left(feeds, order):
    """A Scan of states that each read x and the states they are fed by; only the final of `a` is read."""
    s = ScanBuilder()
    x = s.sequence("x")
    values = {name: s.state(name) for name in order}
    after = []
    for name in order:
        total = x
        for source in feeds.get(name, ""):
            total = s.body.op("Add", total, values[source])
        after.append(s.body.op("Tanh", total))
    graph = s.finish(states=after, read=lambda name: name == "a")
    assert_keeps_results(graph, [floats(4, 3), *(floats(3) for _ in order)], "remove_unused")
    apply(graph, "remove_unused")
    return {state.body_in[0].name for state in scan_in(graph).states}


@pytest.mark.parametrize("order", ["".join(order) for order in itertools.permutations(NAMES)])
@pytest.mark.parametrize(
    ("feeds", "left"),
    [
        ({}, "a"),
        ({"a": "a", "b": "c", "c": "d", "d": "d"}, "a"),
        ({"a": "a", "b": "c", "c": "b", "d": "abc"}, "a"),
        ({"a": "b", "b": "c"}, "abc"),
        ({"a": "d", "d": "a", "b": "c", "c": "b"}, "ad"),
        ({"a": "b", "b": "c", "c": "d", "d": "b"}, "abcd"),
    ],
    ids=["none", "chain", "each other", "chain that is read", "two pairs", "all"],
)
def test_states_are_resolved_together(feeds, left, order):
    assert states_left(feeds, order) == set(left)


def test_a_state_that_a_trace_reads_stays():
    s = ScanBuilder()
    x, h, g = s.sequence("x"), s.state("h"), s.state("g")
    after = s.body.op("Add", x, h)
    graph = s.finish([after, s.body.op("Neg", g)], traces=[s.body.op("Exp", after)], read=lambda name: False)
    assert_keeps_results(graph, [floats(4, 3), floats(3), floats(3)], "remove_unused")
    apply(graph, "remove_unused")
    assert [state.body_in[0] for state in scan_in(graph).states] == [h]


def test_sequences_invariants_and_nodes_that_only_they_read_go_too():
    s = ScanBuilder()
    x, z, w, h = s.sequence("x"), s.sequence("z"), s.invariant("w"), s.state("h")
    unread = s.body.op("Mul", z, w)
    graph = s.finish([s.body.op("Add", x, h)], traces=[unread])
    graph.outputs = graph.outputs[:1]
    apply(graph, "remove_unused")
    scan = scan_in(graph)
    assert (len(scan.sequences), len(scan.invariants), len(scan.traces), len(scan.body.nodes)) == (1, 0, 0, 1)


def test_declines_the_sequence_that_counts_the_steps():
    s = ScanBuilder()
    s.sequence("x")
    h = s.state("h")
    graph = s.finish([s.body.op("Neg", h)])
    outcome = assert_keeps_results(graph, [floats(3, 3), floats(3)], "remove_unused")
    assert reasons(outcome, "remove_unused") == {"its last sequence says how many steps there are"}
    assert outcome.rewrites["remove_unused"] == 0
