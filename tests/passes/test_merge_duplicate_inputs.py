from tests.passes.differential import apply, assert_keeps_results, floats, reasons
from tests.passes.scans import ScanBuilder, scan_in


def test_sequences_and_invariants():
    s = ScanBuilder()
    x, w = s.sequence("x"), s.invariant("w")
    x2 = s.sequence("x2", whole=s.scan.sequences[0].whole)
    backwards = s.sequence("x3", whole=s.scan.sequences[0].whole, reverse=True)
    w2 = s.invariant("w2", s.scan.invariants[0].outer)
    h = s.state("h")
    total = s.body.op("Add", s.body.op("Mul", x, w), s.body.op("Mul", x2, w2))
    graph = s.finish([s.body.op("Add", s.body.op("Add", total, h), backwards)])
    assert_keeps_results(graph, [floats(4, 3), floats(3), floats(3)], "merge_duplicate_inputs")
    assert apply(graph, "merge_duplicate_inputs").rewrites["merge_duplicate_inputs"] == 2
    scan = scan_in(graph)
    assert (len(scan.sequences), len(scan.invariants)) == (2, 1)


def test_equal_states_and_traces():
    s = ScanBuilder()
    x, h, g = s.sequence("x"), s.state("h"), s.state("g")
    s._states[1] = (s._states[0][0], *s._states[1][1:])
    after = s.body.op("Add", s.body.op("Mul", h, g), x)
    graph = s.finish([after, after], traces=[after, after])
    arguments = [floats(4, 3), floats(3), floats(3)]
    sums = [s.b.op("Neg", value) for value in graph.outputs]
    graph.outputs = sums
    assert_keeps_results(graph, arguments, "merge_duplicate_inputs")
    apply(graph, "merge_duplicate_inputs")
    scan = scan_in(graph)
    assert (len(scan.states), len(scan.traces)) == (1, 1)


def test_declines_two_outputs_of_the_model():
    s = ScanBuilder()
    x = s.sequence("x")
    made = s.body.op("Exp", x)
    graph = s.finish(traces=[made, made])
    outcome = assert_keeps_results(graph, [floats(4, 3)], "merge_duplicate_inputs")
    assert reasons(outcome, "merge_duplicate_inputs") == {"two outputs of the model need a name each"}
    assert len(scan_in(graph).traces) == 2
