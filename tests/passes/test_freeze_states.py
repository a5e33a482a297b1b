from tests.passes.differential import apply, assert_keeps_results, floats, reasons
from tests.passes.scans import ScanBuilder, scan_in


def unchanged_state():
    s = ScanBuilder()
    x, h, w = s.sequence("x"), s.state("h"), s.state("w")
    return s, s.finish([s.body.op("Add", s.body.op("Mul", x, w), h), w])


def test_becomes_an_invariant():
    s, graph = unchanged_state()
    graph.outputs = [graph.outputs[0], s.b.op("Neg", graph.outputs[1])]
    for steps in (0, 3):
        assert_keeps_results(graph, [floats(steps, 3), floats(3), floats(3)], "freeze_states")
    apply(graph, "freeze_states")
    scan = scan_in(graph)
    assert (len(scan.states), len(scan.invariants)) == (1, 1)


def test_keeps_a_state_that_changes():
    s = ScanBuilder()
    h, g = s.sequence("x"), s.state("g")
    graph = s.finish([s.body.op("Add", h, g)])
    assert apply(graph, "freeze_states").rewrites["freeze_states"] == 0


def test_keeps_states_that_change_places():
    s = ScanBuilder()
    s.sequence("x")
    h, g = s.state("h"), s.state("g")
    graph = s.finish([g, h])
    assert apply(graph, "freeze_states").rewrites["freeze_states"] == 0


def test_declines_where_a_name_would_be_lost():
    _, graph = unchanged_state()
    outcome = assert_keeps_results(graph, [floats(3, 3), floats(3), floats(3)], "freeze_states")
    assert reasons(outcome, "freeze_states") == {"the model's output needs a name of its own"}
