"""Scans as loops: their steps, axes, traces, and what is inside them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.parser import parse_model

import webrnn
from tests.backends import KERNELS
from tests.passes.differential import floats
from tests.passes.scans import ScanBuilder
from tests.plan.harness import BUILDS, arguments_of, check_graph, graph_of, plan_of, run_plan
from tests.plan.test_control import branches
from webrnn.engine.executor.executor import Executor
from webrnn.errors import ModelError, ShapeError
from webrnn.ir import DType, GraphBuilder, Invariant, Scan, Trace, TraceSpec
from webrnn.plan.lower import lower
from webrnn.plan.lowering import NotLowered

STEPS = [{"steps": n} for n in (4, 0, 1, 7)]


def check(graph, *runs, **settings):
    settings.setdefault("sizes", STEPS)
    check_graph(graph, *runs, **settings)
    check_graph(graph, *runs, **{**settings, "options": frozenset({"fused_sequences"})})


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("reverse", [False, True])
def test_axes_and_directions(axis, reverse):
    s = ScanBuilder()
    x, y, h = s.sequence("x", axis=axis % 2, reverse=reverse), s.sequence("y"), s.state("h")
    after = s.body.op("Add", s.body.op("Mul", x, y), h)
    spec = TraceSpec(axis, not reverse)
    check(s.finish(states=[after], traces=[(after, spec), (x, TraceSpec(axis, reverse)), (h, spec)]))


def test_trace_of_a_matrix_on_every_axis():
    for axis in (0, 1, 2):
        for reverse in (False, True):
            b = GraphBuilder("main")
            whole, init = b.input("x", *_type("steps 2 3")), b.input("h", *_type("2 3"))
            body = GraphBuilder("body", b)
            scan = Scan(body.graph, name="scan")
            x, h = body.value("x"), body.value("h")
            after = body.op("Tanh", body.op("Sub", x, h))
            scan.add_sequence(whole, x)
            scan.add_state(init, h, after, b.value("final"))
            scan.add_trace(after, b.value("trace"), axis, reverse)
            scan.add_trace(body.op("Transpose", after), b.value("turned"), axis, reverse)
            node = b.add(scan.to_node())
            b.graph.outputs = list(node.outputs)
            check(b.graph)


def _type(text):
    from tests.plan.harness import value_type

    return value_type(f"f {text}")


@pytest.mark.parametrize("keep", [1, 2, 3, 4])
@pytest.mark.parametrize("reverse", [False, True])
def test_trimmed_traces(keep, reverse):
    for axis in (0, 1):
        s = ScanBuilder()
        x, h = s.sequence("x", whole=s.b.input("x", *_type("4 3"))), s.state("h")
        after = s.body.op("Add", x, h)
        doubled = s.body.op("Add", after, after)
        traces = [(after, TraceSpec(axis, reverse, keep)), (doubled, TraceSpec(axis, reverse, keep)), doubled]
        check(s.finish(states=[after], traces=traces))


def test_an_unread_trace_keeps_its_state():
    """What a state follows lives through the loop, also where nothing reads it behind the loop."""
    s = ScanBuilder()
    x, h = s.sequence("x", whole=s.b.input("x", *_type("4 3"))), s.state("h")
    after = s.body.op("Add", s.body.op("Tanh", s.body.op("Exp", x)), h)
    graph = s.finish(states=[after], traces=[after])
    graph.outputs.pop()
    check(graph)


def test_a_final_that_is_a_trace_too():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    after = s.body.op("Add", x, h)
    check(s.finish(states=[after], traces=[after, (after, TraceSpec(1)), (after, TraceSpec(0, True)), h]))


def test_an_iteration_count():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    s.scan.iteration = s.body.value("i", DType.INT64, ())
    number = s.body.op("Cast", s.scan.iteration, to=1)
    after = s.body.op("Add", s.body.op("Mul", x, number), h)
    check(s.finish(states=[after], traces=[after, number]))


def _counting(b, init, limit, cond=None, n_steps=None, step=1.0):
    """Add `step` until the sum is not below `limit`."""
    body = GraphBuilder("body", b)
    scan = Scan(body.graph, n_steps=n_steps, cond=cond, name="count")
    h = body.value("h")
    after = body.op("Add", h, body.constant(np.float32(step)))
    inner = body.value("limit")
    scan.invariants.append(Invariant(limit, inner))
    scan.body_cond = body.op("Less", after, inner)
    scan.add_state(init, h, after, b.value("final"))
    scan.iteration = body.value("i", DType.INT64, ())
    taken = body.value("n", DType.INT64, ())
    zero = b.constant(np.int64(0))
    scan.add_state(zero, taken, body.op("Add", scan.iteration, body.constant(np.int64(1))), b.value("taken"))
    node = b.add(scan.to_node())
    return list(node.outputs)


def scalars(*numbers):
    return [np.float32(n).reshape(()) for n in numbers]


def test_a_condition_ends_a_loop():
    graph = graph_of(lambda b, x, limit: _counting(b, x, limit), "f", "f")
    check(graph, scalars(0, 5), scalars(3, 3.5), scalars(9, 1))


def test_a_condition_before_the_first_step():
    graph = graph_of(lambda b, x, limit, p: _counting(b, x, limit, p), "f", "f", "b")
    check(graph, [*scalars(0, 5), np.array(True)], [*scalars(0, 5), np.array(False)])


def test_a_trip_count_that_is_an_input():
    graph = graph_of(lambda b, x, limit, n: _counting(b, x, limit, None, n), "f", "f", "i")
    check(graph, *([*scalars(0, 5), np.array(n)] for n in (3, 0, 1, 5, 6, 100, -1)))


def test_a_constant_trip_count():
    graph = graph_of(lambda b, x, limit: _counting(b, x, limit, None, b.constant(np.int64(3))), "f", "f")
    check(graph, scalars(0, 5), scalars(0, 2))


def test_a_trip_count_alone():
    def build(b, x, n):
        body = GraphBuilder("body", b)
        scan = Scan(body.graph, n_steps=n, name="count")
        h = body.value("h")
        scan.add_state(x, h, body.op("Tanh", h), b.value("final"))
        return list(b.add(scan.to_node()).outputs)

    graph = graph_of(build, "f 3", "i")
    check(graph, *([np.ones(3, np.float32), np.array(n)] for n in (3, 0, 1, 50, -7, -(2**63))))


@pytest.mark.parametrize("spec", [TraceSpec(), TraceSpec(1), TraceSpec(-1), TraceSpec(0, True), TraceSpec(1, True)])
def test_outputs_that_are_as_long_as_steps_were_taken(spec):
    def build(b, x, limit):
        body = GraphBuilder("body", b)
        scan = Scan(body.graph, n_steps=b.constant(np.int64(8)), name="scan")
        h, inner = body.value("h"), body.value("limit")
        after = body.op("Add", h, body.constant(np.float32(1)))
        scan.invariants.append(Invariant(limit, inner))
        scan.body_cond = body.op("Less", body.op("ReduceSum", after, keepdims=0), inner)
        scan.add_state(x, h, after, b.value("final"))
        scan.traces.append(Trace(spec, after, b.value("trace")))
        scan.traces.append(Trace(spec, body.op("Neg", h), b.value("before")))
        final, trace, before = b.add(scan.to_node()).outputs
        return [final, trace, b.op("Exp", before)]

    graph = graph_of(build, "f 2", "f")
    x = np.zeros(2, np.float32)
    check(graph, *([x, np.array(limit, np.float32)] for limit in (7, 0, 3, 100, 1)))


@pytest.mark.parametrize("spec", [TraceSpec(keep=2), TraceSpec(length=9)])
def test_refuses_an_output_that_is_cut_or_filled_up_when_it_is_known_how_long_it_is(spec):
    s = ScanBuilder()
    h = s.state("h")
    after = s.body.op("Add", h, s.body.constant(np.float32(1)))
    s.scan.body_cond = s.body.op("Less", s.body.op("ReduceSum", after, keepdims=0), s.body.constant(np.float32(9)))
    with pytest.raises(NotLowered, match="cut or filled up"):
        lower(s.finish(states=[after], traces=[(after, spec)]))


def test_a_loop_that_does_not_end_raises():
    graph = graph_of(lambda b, x, limit: _counting(b, x, limit, step=0.0), "f", "f")
    data = plan_of(graph, most_steps=100)
    for spec in BUILDS:
        with pytest.raises(ModelError, match="did not end"):
            run_plan(data, spec, [scalars(0, 5)])


def test_a_loop_that_ends_at_its_limit():
    graph = graph_of(lambda b, x, limit: _counting(b, x, limit), "f", "f")
    data = plan_of(graph, most_steps=5)
    for spec in BUILDS:
        assert run_plan(data, spec, [scalars(0, 5)])[0][0] == 5
        with pytest.raises(ModelError, match="did not end"):
            run_plan(data, spec, [scalars(0, 5.5)])


def test_fewer_steps_than_elements():
    for n in (0, 2, 4):
        s = ScanBuilder()
        x, h = s.sequence("x"), s.state("h")
        s.scan.n_steps = s.b.constant(np.int64(n))
        after = s.body.op("Add", x, h)
        check(s.finish(states=[after], traces=[after]), sizes=[{"steps": 4}, {"steps": 5}])
    for n in (0, 2):
        s = ScanBuilder()
        x, h = s.sequence("x", reverse=True), s.state("h")
        s.scan.n_steps = s.b.constant(np.int64(n))
        after = s.body.op("Add", x, h)
        check(s.finish(states=[after]), sizes=[{"steps": 4}, {"steps": 5}])


def test_more_steps_than_elements_raise():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    s.scan.n_steps = s.b.input("n", DType.INT64, ())
    graph = s.finish(states=[s.body.op("Add", x, h)])
    arguments = arguments_of(graph, {"steps": 4})
    position = [value.name for value in graph.inputs].index("n")

    def with_steps(n):
        return [np.array(n) if i == position else a for i, a in enumerate(arguments)]

    check(graph, with_steps(4), with_steps(2), with_steps(0), with_steps(-3))
    for n in (5, 2**40):
        with pytest.raises(ShapeError):
            Executor(graph).run(with_steps(n))
        for spec in BUILDS:
            with pytest.raises(ShapeError, match="more steps"):
                run_plan(plan_of(graph), spec, [with_steps(n)])


def _nested(inner_traced, outer_traced, inner_reverse=False, finals=True):
    """For each row of x, all steps of another loop that starts at the outer state and scans the elements of the row."""
    b = GraphBuilder("main")
    whole, init = b.input("x", *_type("steps 4 3")), b.input("h", *_type("3"))
    body = GraphBuilder("body", b)
    scan = Scan(body.graph, name="outer")
    x, h = body.value("x"), body.value("h")
    rows = GraphBuilder("rows", body)
    inner = Scan(rows.graph, name="inner")
    row, g = rows.value("row"), rows.value("g")
    inner.add_sequence(x, row, 0, inner_reverse)
    after_row = rows.op("Tanh", rows.op("Add", row, g))
    final = body.value("inner_final")
    inner.add_state(h, g, after_row, final)
    trace = body.value("inner_trace")
    if inner_traced:
        inner.add_trace(after_row, trace)
    body.add(inner.to_node())
    after = body.op("Mul", final, body.constant(np.float32(0.9)))
    scan.add_sequence(whole, x)
    scan.add_state(init, h, after, b.value("final") if finals else None)
    if outer_traced:
        scan.add_trace(after, b.value("trace"))
    if inner_traced:
        scan.add_trace(trace, b.value("traces"))
    node = b.add(scan.to_node())
    b.graph.outputs = [value for value in node.outputs if value is not None]
    return b.graph


@pytest.mark.parametrize("inner_traced", [False, True])
@pytest.mark.parametrize("outer_traced", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_nested_loops(inner_traced, outer_traced, reverse):
    check(_nested(inner_traced, outer_traced, reverse))
    if outer_traced:
        check(_nested(inner_traced, outer_traced, reverse, finals=False))


def test_a_state_that_an_inner_loop_takes_apart():
    """The outer state, kept as a trace, is the sequence of the inner loop."""
    for outer_traced in (False, True):
        b = GraphBuilder("main")
        whole, init = b.input("x", *_type("steps 2 3")), b.input("h", *_type("2 3"))
        body = GraphBuilder("body", b)
        scan = Scan(body.graph, name="outer")
        x, h = body.value("x"), body.value("h")
        rows = GraphBuilder("rows", body)
        inner = Scan(rows.graph, name="inner")
        row, g = rows.value("row"), rows.value("g")
        inner.add_sequence(h, row, 0, True)
        inner.add_state(body.constant(np.zeros(3, np.float32)), g, rows.op("Sub", row, g), total := body.value("total"))
        body.add(inner.to_node())
        after = body.op("Add", body.op("Tanh", x), total)
        scan.add_sequence(whole, x)
        scan.add_state(init, h, after, b.value("final"))
        if outer_traced:
            scan.add_trace(after, b.value("trace"))
        node = b.add(scan.to_node())
        b.graph.outputs = [value for value in node.outputs if value is not None]
        check(b.graph)


def test_a_branch_in_a_loop():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    p = s.body.op("Less", s.body.op("ReduceSum", x, keepdims=0), s.body.constant(np.float32(0)))
    (after,) = branches(s.body, p, [x, h], lambda i, x, h: [i.op("Add", x, h)], lambda i, x, h: [h])
    check(s.finish(states=[after], traces=[after]))
    s = ScanBuilder()
    x, h, g = s.sequence("x"), s.state("h"), s.state("g")
    p = s.body.op("Less", s.body.op("ReduceSum", x, keepdims=0), s.body.constant(np.float32(0)))
    outputs = branches(s.body, p, [x, h, g], lambda i, x, h, g: [g, h], lambda i, x, h, g: [i.op("Add", h, x), h], 2)
    check(s.finish(states=outputs, traces=[outputs[1]]))


def test_a_loop_in_a_branch():
    def build(b, p, x, h):
        def then(i, x, h):
            body = GraphBuilder("body", i)
            scan = Scan(body.graph, name="scan")
            element, state = body.value("element"), body.value("state")
            after = body.op("Tanh", body.op("Add", element, state))
            scan.add_sequence(x, element)
            scan.add_state(h, state, after, i.value("final"))
            scan.add_trace(after, i.value("trace"))
            return list(i.add(scan.to_node()).outputs)

        return branches(b, p, [x, h], then, lambda i, x, h: [h, i.op("Neg", x)], 2)

    graph = graph_of(build, "b", "f steps 3", "f 3")
    x, h = np.float32(np.random.default_rng(0).standard_normal((4, 3))), np.zeros(3, np.float32)
    check(graph, *([np.array(p), x[:n], h] for p in (True, False) for n in (4, 0, 2)))


def test_two_loops_one_after_the_other():
    b = GraphBuilder("main")
    whole = b.input("x", *_type("steps 3"))
    init = b.input("h", *_type("3"))
    for index in range(3):
        body = GraphBuilder("body", b)
        scan = Scan(body.graph, name=f"scan{index}")
        x, h = body.value("x"), body.value("h")
        after = body.op("Tanh", body.op("Add", x, h))
        scan.add_sequence(whole, x, 0, index == 1)
        scan.add_state(init, h, after, b.value("final"))
        scan.add_trace(after, b.value("trace"), 0, index == 1)
        init, whole = b.add(scan.to_node()).outputs
    b.graph.outputs = [init, whole]
    check(b.graph)


def test_integers_and_bools_in_loops():
    b = GraphBuilder("main")
    whole, init = b.input("x", DType.BOOL, _type("steps 3")[1]), b.input("h", DType.INT64, (3,))
    body = GraphBuilder("body", b)
    scan = Scan(body.graph, name="scan")
    x, h = body.value("x"), body.value("h")
    after = body.op("Add", h, body.op("Cast", x, to=int(DType.INT64)))
    scan.add_sequence(whole, x)
    scan.add_state(init, h, after, b.value("final"))
    scan.add_trace(after, b.value("trace"), 1)
    scan.add_trace(body.op("Not", x), b.value("flags"))
    b.graph.outputs = list(b.add(scan.to_node()).outputs)
    check(b.graph)


def test_a_loop_over_transposed_operands():
    s = ScanBuilder()
    turned = s.b.op("Transpose", s.b.input("raw", *_type("3 steps")))
    x, h = s.sequence("x", whole=turned), s.state("h")
    after = s.body.op("Add", x, h)
    check(s.finish(states=[after], traces=[after]))


def test_a_trace_that_is_used_further():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    after = s.body.op("Tanh", s.body.op("Add", x, h))
    graph = s.finish(states=[after], traces=[after, (after, TraceSpec(1))])
    final, trace, turned = graph.outputs
    graph.outputs = [
        s.b.op("Add", s.b.op("Transpose", turned), trace),
        s.b.op("Neg", final),
        s.b.op("Transpose", trace),
    ]
    check(graph)


@pytest.mark.parametrize("backend", KERNELS)
def test_the_last_steps_of_an_open_number(backend):
    """Keras' `y[-1]` is a Slice and a Squeeze. The plan holds where there is a step; of none there is no last one."""
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[T,B,2] x, float[1,9,2] first, float[1,9,3] again) => (y)
        <int64[1] last = {-1}, int64[1] end = {2147483647}, int64[1] axis = {0}, int64[1] directions = {1}> {
        all = GRU<hidden_size=3>(x, first, again) only = Squeeze(all, directions)
        cut = Slice(only, last, end, axis) y = Squeeze(cut, axis) }"""
    weights = floats(1, 9, 2), floats(1, 9, 3)
    sessions = [
        webrnn.InferenceSession(parse_model(text).SerializeToString(), backend=each) for each in (backend, "numpy")
    ]
    assert "a plan for all sizes" in sessions[0].report()
    for steps in (1, 4):
        feeds = {"x": floats(steps, 2, 2), "first": weights[0], "again": weights[1]}
        result, wanted = (session.run(None, feeds)[0] for session in sessions)
        np.testing.assert_allclose(result, wanted, atol=1e-6)
    for session in sessions:
        with pytest.raises(ShapeError, match="Squeeze"):
            session.run(None, {"x": floats(0, 2, 2), "first": weights[0], "again": weights[1]})
