"""Each op with a rule: one step at a time in a loop, and all steps at once before and after it."""

import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons
from tests.passes.scans import ScanBuilder
from webrnn import reference
from webrnn.ir import DType, is_scan
from webrnn.passes.over_all_steps.rewrite import RULES

STEPS = pytest.mark.parametrize("steps", [0, 1, 4])

BODIES = {
    "Unsqueeze": "t = Unsqueeze(x, last) u = Mul(t, row)",
    "Squeeze": "t = Unsqueeze(x, last) u = Squeeze(t, last)",
    "Transpose": "t = Unsqueeze(x, last) u = Transpose<perm = [1, 0]>(t)",
    "Transpose without perm": "t = Unsqueeze(x, last) u = Transpose(t)",
    "Concat": "t = Neg(x) u = Concat<axis = -1>(t, x)",
    "Slice": "u = Slice(x, zero, two, last, step)",
    "Slice without axes": "u = Slice(x, step, two)",
    "Softmax": "u = Softmax<axis = 0>(x)",
    "LogSoftmax": "u = LogSoftmax(x)",
    "Hardmax": "u = Hardmax(x)",
    "LpNormalization": "u = LpNormalization(x)",
    "Reshape": "t = Concat<axis = 0>(x, x) u = Reshape(t, table)",
    "Flatten": "t = Unsqueeze(x, last) u = Flatten<axis = 0>(t)",
    "Gemm": "t = Unsqueeze(x, zero) u = Gemm<transB = 1>(t, w, x0)",
    "Gemm without bias": "t = Unsqueeze(x, zero) u = Gemm(t, w)",
    "Where": "c = Less(x, x0) u = Where(c, x, x0)",
    "product with a matrix before": "t = Unsqueeze(x, last) u = MatMul(w, t)",
    "operands of different ranks": "t = Unsqueeze(x, zero) u = Add(t, x)",
    "Split": "t = Concat<axis = 0>(x, x) u, v = Split<axis = 0>(t, threes)",
    "PRelu": "t = Unsqueeze(x, zero) u = PRelu(t, x0)",
    "Pow": "a = Abs(x) u = Pow(a, half)",
    "Clip": "u = Clip(x, half)",
    "Clip on both sides": "u = Clip(x, half, one)",
    "LayerNormalization": "u = LayerNormalization(x, x0, x0)",
    "LayerNormalization on two axes": "t = Unsqueeze(x, last) u = LayerNormalization<axis = 0>(t, one)",
    "ReduceSum": "t = Unsqueeze(x, last) u = ReduceSum<keepdims = 0>(t, zero)",
    "ReduceSum of all": "t = Unsqueeze(x, last) u = ReduceSum(t)",
    "ReduceMean": "u = ReduceMean(x, last)",
    "ReduceMax": "u = ReduceMax<keepdims = 0>(x, last)",
    "ReduceSumSquare of nothing": "u = ReduceSumSquare<noop_with_empty_axes = 1>(x)",
    "ArgMax": "i = ArgMax<axis = -1>(x) u = Cast<to = 1>(i)",
    "Pad": "u = Pad(x, threes)",
    "Pad with a value": "u = Pad(x, threes, half)",
    "Pad on an axis": 't = Unsqueeze(x, zero) u = Pad<mode = "edge">(t, threes, , last)',
    "Expand": "u = Expand(x, wide)",
    "Tile": "u = Tile(x, two)",
    "Gather": "u = Gather<axis = -1>(x, picks)",
    "Gather in a table": "i = ArgMax<axis = -1, keepdims = 0>(x) u = Gather(w, i)",
    "Gather in a table on another axis": "i = ArgMax<axis = -1>(x) u = Gather<axis = 1>(w, i)",
    "Conv": "t = Unsqueeze(x, front) u = Conv<pads = [1, 1]>(t, kernel)",
    "MaxPool": "t = Unsqueeze(x, front) u = MaxPool<kernel_shape = [2]>(t)",
    "GlobalAveragePool": "t = Unsqueeze(x, front) u = GlobalAveragePool(t)",
    "BatchNormalization": "t = Unsqueeze(x, zero) u = BatchNormalization(t, x0, x0, x0, positive)",
    "InstanceNormalization": "t = Unsqueeze(x, front) u = InstanceNormalization(t, one, one)",
    "Div of integers": "i = ArgMax<axis = -1>(x) j = Div(i, two) u = Cast<to = 1>(j)",
}
CONSTANTS = """<int64[1] zero = {0}, int64[1] two = {2}, int64[1] last = {-1}, int64[1] step = {1},
    int64[2] table = {-1, 2}, int64[2] threes = {3, 3}, float[1, 3] row = {1, 2, 3}, float[3] x0 = {0.5, -1, 2},
    float half = {0.5}, float[1] one = {1}, int64[2] wide = {2, 3}, int64[2] picks = {2, -3}, int64[2] front = {0, 1},
    float[1, 1, 2] kernel = {1, 2}, float[3] positive = {1, 2, 3},
    float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 10}>"""


def scan_of(body):
    body = "body (float[3] x) => (float[a] u) { " + body + " }"
    return graph_of(
        f"g (float[n, 3] s) => (float[p] y) {CONSTANTS} {{ y = Scan<num_scan_inputs = 1, body = {body}>(s) }}"
    )


@STEPS
@pytest.mark.parametrize("op", BODIES)
def test_before_the_loop(op, steps):
    graph = scan_of(BODIES[op])
    assert_keeps_results(graph, [floats(steps, 3)], "hoist_sequences")
    apply(graph, "hoist_sequences")
    assert not any(is_scan(node) for node in graph.nodes)


@STEPS
@pytest.mark.parametrize("op", BODIES)
def test_behind_the_loop(op, steps):
    body = "body (float[3] h, float[3] e) => (float[3] x, float[a] u) { x = Add(h, e) " + BODIES[op] + " }"
    text = "g (float[3] h0, float[n, 3] s) => (float[3] final, float[p] y)"
    graph = graph_of(f"{text} {CONSTANTS} {{ final, y = Scan<num_scan_inputs = 1, body = {body}>(h0, s) }}")
    outcome = assert_keeps_results(graph, [floats(3), floats(steps, 3)], "sink_outputs")
    assert reasons(outcome, "sink_outputs") <= {"what it reads is larger than what it gives"}


def test_every_rule_is_a_known_op():
    assert RULES.keys() <= {"Linear", *(name for domain, name in reference.registered() if not domain)}


def declines(build, *arguments):
    s = ScanBuilder()
    graph = build(s)
    outcome = assert_keeps_results(graph, list(arguments), "hoist_sequences")
    assert ops(graph)["Scan"] == 1
    return reasons(outcome, "hoist_sequences")


def traced(make):
    return lambda s: s.finish(traces=[make(s, s.sequence("x"))])


LONE = {
    "it is not known how to do it for all steps at once": lambda s, x: s.body.op(
        "CumSum", x, s.body.constant(np.array(0, np.int64))
    ),
    "the axes of its operands do not allow a product for all steps": lambda s, x: s.body.op(
        "MatMul", s.body.constant(floats(2, 3)), x
    ),
    "it joins a sequence with something that is the same in each step": lambda s, x: s.body.op(
        "Concat", x, s.body.constant(floats(2)), axis=0
    ),
    "an operand other than the first is a sequence": lambda s, x: s.body.op(
        "LayerNormalization", s.body.constant(floats(3)), x
    ),
    "alpha, beta or transA of a Gemm": lambda s, x: s.body.op(
        "Gemm", s.body.op("Unsqueeze", x, s.body.ints(0)), s.body.constant(floats(3, 2)), alpha=2.0
    ),
    "its operand has no axes": lambda s, x: s.body.op("ReduceSum", s.body.op("ReduceSum", x, keepdims=0), keepdims=0),
    "a power of integers can fail": lambda s, x: s.body.op(
        "Pow", s.body.op("ArgMax", x, axis=0), s.body.constant(np.array(2, np.int64))
    ),
}


@pytest.mark.parametrize("reason", LONE)
def test_declines(reason):
    assert declines(traced(LONE[reason]), floats(4, 3)) == {reason}


def test_declines_axes_that_are_inputs():
    def make(s, x):
        axes = s.b.input("axes", DType.INT64, (1,))
        return s.body.op("ReduceSum", x, s.invariant("axes", axes))

    assert declines(traced(make), floats(4, 3), np.int64([0])) == {"its axes or sizes are not constants"}


def test_declines_sizes_that_are_not_known():
    def make(s, x):
        target = s.b.input("target", DType.INT64, (2,))
        return s.body.op("Reshape", x, s.invariant("target", target))

    assert declines(traced(make), floats(4, 3), np.int64([3, 1])) == {"the shape of its operand or result is not known"}


def test_declines_ranks_that_are_not_known():
    def make(s, x):
        bias = s.b.input("bias", DType.FLOAT, None)
        return s.body.op("Add", x, s.invariant("bias", bias))

    assert declines(traced(make), floats(4, 3), floats(3)) == {"the rank of its operands is not known"}


def test_declines_what_could_fail_on_elements_that_no_step_takes():
    s = ScanBuilder()
    numbers = s.b.input("numbers", DType.INT64, (4,))
    divisor = s.sequence("divisor", whole=numbers)
    s.scan.n_steps = s.b.constant(np.array(2, np.int64))
    picked = s.body.op("Gather", s.body.constant(floats(5, 3)), divisor)
    graph = s.finish(traces=[s.body.op("Div", s.body.constant(np.array(6, np.int64)), divisor), picked])
    outcome = assert_keeps_results(graph, [np.int64([1, 2, 0, 99])], "hoist_sequences")
    assert reasons(outcome, "hoist_sequences") == {"it could fail on elements that no step takes"}


def test_declines_an_index_that_is_beyond_the_axis():
    """With no steps there is no error, and none is made."""
    make = traced(lambda s, x: s.body.op("Gather", x, s.body.constant(np.array(3, np.int64))))
    assert declines(make, floats(0, 3)) == {"its indices are beyond the axis"}
