"""Sizes that are known only while running: what plans compute of them, and memory that grows."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.parser import parse_model

import webrnn
from tests.plan.harness import BUILDS, check_graph, graph_of, plan_of, run_plan, value_type
from tests.plan.test_control import branches
from webrnn.engine.executor.executor import Executor
from webrnn.errors import PlanError, ShapeError
from webrnn.ir import DType, GraphBuilder, Invariant, Scan
from webrnn.plan.file import PlanFile

FAST = [spec for spec in BUILDS if spec in ("native", "wasm:relaxed")] or BUILDS[:1]
INTS = np.int64


def check(build, inputs, *runs, **settings):
    check_graph(graph_of(build, *inputs), *runs, builds=FAST, **settings)


def test_where_elements_are_not_zero():
    x = np.array([[0, 1.5], [-0.0, np.nan], [2, 0]], np.float32)
    check(
        lambda b, x: b.op("NonZero", x),
        ["f n 2"],
        [x],
        [np.zeros((5, 2), np.float32)],
        [x[:0]],
        [np.ones((900, 2), np.float32)],
    )
    check(lambda b, x: b.op("NonZero", x), ["b 3 n"])
    check(lambda b, x: b.op("NonZero", x), ["i"], [np.int64(3)], [np.int64(0)])


def test_what_follows_has_the_sizes_that_came_out():
    def build(b, x):
        where = b.op("NonZero", x)
        rows = b.op("Gather", where, b.ints(0), axis=0)
        picked = b.op("Gather", x, b.op("Squeeze", rows, b.ints(0)), axis=0)
        return b.op("Tanh", picked), b.op("Shape", picked), b.op("Concat", picked, x, axis=0)

    check(build, ["f n 3"])


@pytest.mark.parametrize("axis", [0, 1, None])
def test_compress(axis):
    attributes = {} if axis is None else {"axis": axis}
    check(lambda b, x, c: b.op("Compress", x, c, **attributes), ["f 2 3", "b 2"])


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [
        (1, 4, 1),
        (-3, 2**62, 2),
        (5, -9, -1),
        (-1, -(2**62), -3),
        (0, 0, 1),
        (7, 9, 1),
        (-(2**63), 2**63 - 1, 2**63 - 1),
    ],
)
def test_a_slice_whose_numbers_come_with_the_inputs(start, end, step):
    numbers = [np.array([number], INTS) for number in (start, end, 1, step)]
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    check(
        lambda b, x, *numbers: b.op("Slice", x, *numbers),
        ["f n t", "i 1", "i 1", "i 1", "i 1"],
        [x, *numbers],
        [x.T.copy(), *numbers],
    )


def test_a_slice_of_a_named_size():
    check(lambda b, x: b.op("Slice", x, b.ints(1), b.ints(3), b.ints(0)), ["f n 2"])
    check(lambda b, x: b.op("Slice", x, b.ints(-2), b.ints(-9), b.ints(0), b.ints(-1)), ["f n 2"])


@pytest.mark.parametrize("shape", [[-1], [0, -1], [2, 3, -1], [6, 0, 4], [4, 6]])
def test_a_reshape_whose_shape_comes_with_the_inputs(shape):
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    given = np.array(shape, INTS)
    build = lambda b, x, shape: b.op("Reshape", x, shape)  # noqa: E731
    if shape == [6, 0, 4]:
        with pytest.raises(ShapeError, match="do not fit"):
            run_plan(plan_of(graph_of(build, "f n 4", "i 3")), FAST[0], [[x, given]])
    else:
        check(build, ["f n 4", f"i {len(shape)}"], [x, given])


def test_expand_and_broadcasts_of_sizes_that_may_be_one():
    x, row = np.ones((1, 3), np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)
    check(
        lambda b, x, shape: b.op("Expand", x, shape),
        ["f n 3", "i 2"],
        [x, np.int64([4, 1])],
        [row, np.int64([1, 3])],
    )
    check(lambda b, x, y: b.op("Add", x, y), ["f n 3", "f t 3"], [x, row], [row, x], [row, row], [x, x], [x[:0], x])
    plan = plan_of(graph_of(lambda b, x, y: b.op("Add", x, y), "f n 3", "f t 3"))
    with pytest.raises(ShapeError, match="do not fit"):
        run_plan(plan, FAST[0], [[row, row[:2]]])


def test_pads_that_come_with_the_inputs():
    build = lambda b, x, pads: b.op("Pad", x, pads, b.constant(np.float32(2)))  # noqa: E731
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    check(
        build,
        ["f n 2", "i 4"],
        [x, np.int64([1, 0, 0, 2])],
        [x, np.int64([-1, 1, -1, -1])],
        [x[:0], np.int64([2, 0, 0, 1])],
    )


def test_many_axes_that_come_with_the_inputs():
    build = lambda b, x, pads, axes: b.op("Pad", x, pads, None, axes)  # noqa: E731
    x, pads = np.ones((1, 2, 1, 3, 2), np.float32), np.arange(10, dtype=np.int64)
    check(build, ["f 1 2 1 n 2", "i 10", "i 5"], [x, pads, np.int64([0, -1, 2, -2, 1])])


@pytest.mark.parametrize("axes", [[1, 1], [-1, 1], [2, 0]])
def test_axes_that_come_with_the_inputs_are_there_and_named_once(axes):
    x, numbers = np.ones((3, 4), np.float32), np.zeros(4, INTS)
    pad = graph_of(lambda b, x, pads, axes: b.op("Pad", x, pads, None, axes), "f 3 n", "i 4", "i 2")
    cut = graph_of(lambda b, x, starts, axes: b.op("Slice", x, starts, starts, axes), "f 3 n", "i 2", "i 2")
    for graph, given in ((pad, numbers), (cut, numbers[:2])):
        with pytest.raises(ShapeError, match="do not fit"):
            run_plan(plan_of(graph), FAST[0], [[x, given, np.array(axes, INTS)]])


def test_sizes_that_come_with_the_inputs():
    check(
        lambda b, shape: b.op("ConstantOfShape", shape),
        ["i 2"],
        [np.int64([2, 3])],
        [np.int64([0, 5])],
        [np.int64([90, 40])],
    )
    plan = plan_of(graph_of(lambda b, shape: b.op("ConstantOfShape", shape), "i 2"))
    for numbers in ([2, -1], [2**40, 1]):
        with pytest.raises(ShapeError, match="negative or too large"):
            run_plan(plan, FAST[0], [[np.array(numbers, np.int64)]])


def test_branches_of_different_sizes():
    def build(b, p, x):
        return branches(b, p, [x], lambda i, x: [i.op("Concat", x, x, axis=0)], lambda i, x: [x])

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    check(build, ["b", "f n 3"], [np.array(True), x], [np.array(False), x])


def growing_states():
    """A cache, empty or not at first, that each step appends to and reads; a loop that may end early, whose trace and
    cache other nodes read."""
    b = GraphBuilder("main")
    steps, cache, row = (
        b.input(name, *value_type(text)) for name, text in (("k", "i"), ("c", "f n 3"), ("r", "f 1 3"))
    )
    body = GraphBuilder("body", b)
    scan = Scan(body.graph, n_steps=steps, name="grow")
    scan.iteration = body.value("i", DType.INT64, ())
    before, given = body.value("before"), body.value("given")
    scan.invariants.append(Invariant(row, given))
    mean = body.op("ReduceSum", before, body.ints(0), keepdims=1)
    after = body.op("Concat", before, body.op("Tanh", body.op("Add", given, mean)), axis=0)
    scan.body_cond = body.op("Less", scan.iteration, body.constant(np.int64(400)))
    scan.add_state(cache, before, after, b.value("final"))
    scan.add_trace(mean, b.value("means"), 0, False)
    node = b.add(scan.to_node())
    final, means = node.outputs
    b.graph.outputs = [final, b.op("Neg", means), b.op("Shape", final), b.op("ReduceSum", final, b.ints(0))]
    return b.graph


def test_states_that_grow():
    graph, rng = growing_states(), np.random.default_rng(5)
    row = rng.standard_normal((1, 3), dtype=np.float32)
    runs = [
        [np.array(steps, np.int64), rng.standard_normal((n, 3), dtype=np.float32), row]
        for steps, n in ((0, 0), (5, 0), (900, 2), (0, 4), (3, 0))
    ]
    check_graph(graph, *runs, builds=FAST)


def test_elements_of_a_trace_are_of_one_size():
    def build(b, k, x):
        body = GraphBuilder("body", b)
        scan = Scan(body.graph, n_steps=k, name="slices")
        scan.iteration = body.value("i", DType.INT64, ())
        inner = body.value("x")
        scan.invariants.append(Invariant(x, inner))
        start = body.op("Reshape", scan.iteration, body.ints(1))
        part = body.op("Slice", inner, start, body.op("Add", start, body.ints(2)), body.ints(0))
        scan.add_trace(part, b.value("parts"), 0, False)
        return b.add(scan.to_node()).outputs[0]

    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    check(build, ["i", "f n 2"], [np.int64(5), x], [np.int64(1), x])
    with pytest.raises(ShapeError, match="do not fit"):
        run_plan(plan_of(graph_of(build, "i", "f n 2")), FAST[0], [[np.int64(6), x]])


def test_a_branch_in_a_loop_that_is_never_taken_may_not_fit():
    """Whether it is taken is known only when it runs."""

    def build(b, x, flags):
        body = GraphBuilder("body", b)
        scan = Scan(body.graph, name="branches")
        flag, inner, h = body.value("flag"), body.value("x"), body.value("h")
        scan.invariants.append(Invariant(x, inner))
        scan.add_sequence(flags, flag)

        def folded(i, x, h):
            return [i.op("Add", h, i.op("Reshape", x, i.ints(2, 3)))]

        after = branches(body, flag, [inner, h], folded, lambda i, x, h: [i.op("Tanh", h)])[0]
        scan.add_state(b.constant(np.ones((2, 3), np.float32)), h, after, b.value("final"))
        return b.add(scan.to_node()).outputs[0]

    never, once = np.array([False, False]), np.array([False, True])
    check(build, ["f n", "b t"], [np.zeros(5, np.float32), never], [np.ones(6, np.float32), once])
    with pytest.raises(PlanError):
        run_plan(plan_of(graph_of(build, "f n", "b t")), FAST[0], [[np.zeros(5, np.float32), once]])


def test_memory_that_has_grown_stays():
    graph = graph_of(lambda b, x: b.op("NonZero", x), "f n")
    few, many = (np.ones(n, np.float32) for n in (3, 5000))
    executor = Executor(graph)
    for spec in FAST:
        for argument, result in zip(
            [few, many, few], run_plan(plan_of(graph), spec, [[few], [many], [few]]), strict=True
        ):
            np.testing.assert_array_equal(result[0], executor.run([argument])[0])


def test_what_is_late_is_not_a_size_of_the_signature():
    file = PlanFile(plan_of(graph_of(lambda b, x: b.op("NonZero", x), "f n")))
    assert [port.is_late for port in (*file.inputs, *file.outputs)] == [False, True]
    assert file.symbols == ["n"]


def test_what_runs_along_with_a_convolution_of_a_late_size():
    """The expression behind it has to be checked while running, so it runs where it stands."""
    weights = np.random.default_rng(0).standard_normal((9, 2, 3)).astype(np.float32)

    def build(b, x):
        largest = b.op("ReduceMax", x, b.ints(0, 1), keepdims=0)
        kept = b.op("Compress", x, b.op("Greater", largest, b.constant(np.float32(0))), axis=2)
        return b.op("Relu", b.op("Conv", kept, b.constant(weights), pads=[2, 2]))

    check_graph(graph_of(build, "f 1 2 t"), sizes=[{"t": 40}, {"t": 9}])


@pytest.mark.parametrize("outputs", ["int64[a, b] y, int64[b, a] n", "int64[b, a] n, int64[a, b] y"])
@pytest.mark.parametrize("backend", ["native", "wasm:simd"])
def test_an_output_that_is_another_one_turned_round(outputs, backend):
    """Their sizes are known only while running, so the first of them might take the place of the other."""
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[3, 4] x) => ({outputs})'
    model = parse_model(text + " { n = NonZero(x) y = Transpose(n) }").SerializeToString()
    x = np.float32([[1, 0, 3, 0], [0, 0, 2, 0], [0, 1, 0, 1]])
    found = dict(zip(["y", "n"] if outputs.endswith("n") else ["n", "y"], run(model, backend, x), strict=True))
    assert np.array_equal(found["n"], np.nonzero(x))
    assert np.array_equal(found["y"], np.transpose(np.nonzero(x)))


def run(model, backend, x):
    return webrnn.InferenceSession(model, backend=backend).run(None, {"x": x})


def test_an_output_that_is_a_view_of_another_output():
    def build(b, x, first):
        y = b.op("Tanh", x)
        return b.op("Slice", y, first, b.ints(2**31 - 1), b.ints(1), b.ints(2)), y

    check(build, ["f 2 n", "i 1"], [np.arange(8, dtype=np.float32).reshape(2, 4), np.array([1], np.int64)])
