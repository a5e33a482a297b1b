import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons
from tests.passes.scans import ScanBuilder, scan_in
from webrnn.ir import TraceSpec, is_scan

STEPS = pytest.mark.parametrize("steps", [0, 1, 4])


@STEPS
@pytest.mark.parametrize("reverse", [False, True])
def test_products_and_what_follows_leave(steps, reverse):
    s = ScanBuilder()
    x, h = s.sequence("x", reverse=reverse), s.state("h")
    w, r = s.body.constant(floats(3, 6)), s.body.constant(floats(3, 3))
    left, right = s.body.split(s.body.op("MatMul", x, w), ["left", "right"])
    after = s.body.op("Tanh", s.body.op("Add", s.body.op("Mul", left, right), s.body.op("MatMul", h, r)))
    graph = s.finish([after], traces=[(after, TraceSpec(reverse=reverse))])
    assert_keeps_results(graph, [floats(steps, 3), floats(3)], "hoist_sequences")
    assert apply(graph, "hoist_sequences").rewrites["hoist_sequences"] == 3
    assert ops(scan_in(graph).body) == {"Add": 1, "MatMul": 1, "Tanh": 1}
    assert len(scan_in(graph).sequences) == 1


@STEPS
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("trace_axis", [0, 1, -1])
@pytest.mark.parametrize("directions", [(False, False), (False, True), (True, False), (True, True)])
def test_a_scan_without_states_disappears(steps, axis, trace_axis, directions):
    s = ScanBuilder()
    x = s.sequence("x", axis=axis, reverse=directions[0])
    w = s.invariant("w")
    made = s.body.op("Exp", s.body.op("Mul", x, w))
    graph = s.finish(traces=[(made, TraceSpec(trace_axis, directions[1]))])
    shape = (steps, 3) if axis == 0 else (3, steps)
    assert_keeps_results(graph, [floats(*shape), floats(3)], "hoist_sequences")
    apply(graph, "hoist_sequences")
    assert not any(is_scan(node) for node in graph.nodes)


BODIES = {
    "Unsqueeze": "t = Unsqueeze(x, last) u = Mul(t, row)",
    "Squeeze": "t = Unsqueeze(x, last) u = Squeeze(t, last)",
    "Transpose": "t = Unsqueeze(x, last) u = Transpose<perm = [1, 0]>(t)",
    "Transpose without perm": "t = Unsqueeze(x, last) u = Transpose(t)",
    "Concat": "t = Neg(x) u = Concat<axis = -1>(t, x)",
    "Slice": "u = Slice(x, zero, two, last, step)",
    "Softmax": "u = Softmax<axis = 0>(x)",
    "Reshape": "t = Concat<axis = 0>(x, x) u = Reshape(t, table)",
    "Gemm": "t = Unsqueeze(x, zero) u = Gemm<transB = 1>(t, w, x0)",
    "Gemm without bias": "t = Unsqueeze(x, zero) u = Gemm(t, w)",
    "Where": "c = Less(x, x0) u = Where(c, x, x0)",
    "product with a matrix before": "t = Unsqueeze(x, last) u = MatMul(w, t)",
    "operands of different ranks": "t = Unsqueeze(x, zero) u = Add(t, x)",
    "Split": "t = Concat<axis = 0>(x, x) u, v = Split<axis = 0>(t, threes)",
}
CONSTANTS = """<int64[1] zero = {0}, int64[1] two = {2}, int64[1] last = {-1}, int64[1] step = {1},
    int64[2] table = {-1, 2}, int64[2] threes = {3, 3}, float[1, 3] row = {1, 2, 3}, float[3] x0 = {0.5, -1, 2},
    float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 10}>"""


@STEPS
@pytest.mark.parametrize("op", BODIES)
def test_each_op(op, steps):
    body = "body (float[3] x) => (float[a] u) { " + BODIES[op] + " }"
    text = f"g (float[n, 3] s) => (float[p] y) {CONSTANTS} {{ y = Scan<num_scan_inputs = 1, body = {body}>(s) }}"
    graph = graph_of(text)
    assert_keeps_results(graph, [floats(steps, 3)], "hoist_sequences")
    apply(graph, "hoist_sequences")
    assert not any(is_scan(node) for node in graph.nodes)


def test_declines_a_loop_with_a_condition():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    after = s.body.op("Add", s.body.op("Exp", x), h)
    s.scan.body_cond = s.body.op("Less", s.body.op("ReduceSum", after, keepdims=0), s.body.constant(np.float32(3)))
    graph = s.finish([after])
    outcome = assert_keeps_results(graph, [floats(4, 3), floats(3)], "hoist_sequences")
    assert reasons(outcome, "hoist_sequences") == {"it may end before its sequences do"}


def declines(build, *arguments):
    s = ScanBuilder()
    graph = build(s)
    outcome = assert_keeps_results(graph, list(arguments), "hoist_sequences")
    return reasons(outcome, "hoist_sequences"), graph, outcome


def test_declines_sequences_of_different_directions():
    def build(s):
        made = s.body.op("Add", s.sequence("x"), s.sequence("z", reverse=True))
        return s.finish(traces=[made])

    found, _, outcome = declines(build, floats(4, 3), floats(4, 3))
    assert found == {"it reads sequences that run in different directions"}
    assert outcome.rewrites["hoist_sequences"] == 0


def test_declines_a_trimmed_trace():
    found, graph, _ = declines(
        lambda s: s.finish(traces=[(s.body.op("Exp", s.sequence("x")), TraceSpec(keep=2))]), floats(4, 3)
    )
    assert found == {"trace of exp: it is trimmed"}
    assert ops(graph)["Scan"] == 1


def test_declines_a_trace_of_fewer_steps():
    def build(s):
        s.scan.n_steps = s.b.constant(np.array(2))
        return s.finish(traces=[s.body.op("Exp", s.sequence("x"))])

    found, _, _ = declines(build, floats(4, 3))
    assert found == {"trace of exp: the number of steps is given apart from the sequences"}


def test_declines_an_op_that_it_does_not_know():
    found, _, _ = declines(
        lambda s: s.finish(traces=[s.body.op("CumSum", s.sequence("x"), s.body.constant(np.array(0)))]), floats(4, 3)
    )
    assert found == {"it is not known how to do it for all steps at once"}


def test_declines_a_product_whose_axes_do_not_fit():
    found, _, _ = declines(
        lambda s: s.finish(traces=[s.body.op("MatMul", s.body.constant(floats(2, 3)), s.sequence("x"))]), floats(4, 3)
    )
    assert found == {"the axes of its operands do not allow a product for all steps"}


def test_declines_to_join_with_a_constant():
    found, _, _ = declines(
        lambda s: s.finish(traces=[s.body.op("Concat", s.sequence("x"), s.body.constant(floats(2)), axis=0)]),
        floats(4, 3),
    )
    assert found == {"it joins a sequence with something that is the same in each step"}
