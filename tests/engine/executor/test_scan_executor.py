"""Loops in buffers against loops that run the body anew in each step."""

import os
import subprocess
import sys

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.backends import KERNELS
from tests.engine.stream_models import CARRY, feed, stateful
from tests.onnx.models import bools, floats, graph, initializer, integers, model, recurrent
from tests.passes.random_graphs import random_graph
from tests.passes.scans import ScanBuilder
from webrnn.engine.executor import scan_executor
from webrnn.engine.executor.executor import Executor
from webrnn.engine.executor.repeated_run import WRITERS, RepeatedRun
from webrnn.engine.limits import Limits
from webrnn.ir import WEBRNN, DType, GraphBuilder, Node, State, StateSpec, TraceSpec
from webrnn.ir.fused import CELLS
from webrnn.passes import run_passes


def same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        if isinstance(a, list):
            same(a, b)
            continue
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def both_ways(graph, arguments, limits=None):
    """The results of both ways, which are the same; or the error that both raise."""
    outcomes = []
    for naive in (True, False):
        try:
            outcomes.append(Executor(graph, limits, naive).run([np.array(a) for a in arguments]))
        except webrnn.Error as error:
            outcomes.append(error)
    if isinstance(outcomes[0], Exception):
        assert (type(outcomes[1]), str(outcomes[1])) == (type(outcomes[0]), str(outcomes[0]))
    else:
        same(outcomes[1], outcomes[0])
    return outcomes[1]


@pytest.fixture
def counted(monkeypatch):
    """How many loops ran in buffers."""
    counts = {"loops": 0, "given up": 0}
    original = scan_executor.ScanExecutor._in_buffers

    def counting(self, *arguments):
        counts["loops"] += 1
        try:
            return original(self, *arguments)
        except scan_executor.LayoutChanges:
            counts["given up"] += 1
            raise

    monkeypatch.setattr(scan_executor.ScanExecutor, "_in_buffers", counting)
    monkeypatch.setattr(scan_executor, "FEWEST_STEPS", 0)
    return counts


@pytest.mark.parametrize("are_optimized", [False, True])
def test_random_graphs(are_optimized, counted):
    for seed in range(150):
        case = random_graph(seed)
        if are_optimized:
            run_passes(case.graph)
        both_ways(case.graph, case.arguments)
    assert counted["loops"] > 100
    assert counted["given up"] < counted["loops"] / 2


@pytest.mark.parametrize("disable", [(), ("all",), ("fuse_cells", "fuse_exported_cells")])
@pytest.mark.parametrize("op", CARRY)
@pytest.mark.parametrize("batch", [1, 3])
def test_recurrent_ops(op, batch, disable, counted):
    data = stateful(op).SerializeToString()
    feeds = {"x": feed(20, batch)}
    results = []
    for more in ((), ("scan_buffers",)):
        stream = webrnn.InferenceSession(data, backend="numpy", disable=[*disable, *more]).stream()
        results.append([*stream.step(feeds), *stream.step(feeds), *stream.state.values()])
    same(*results)
    assert counted["loops"] == 2


@pytest.mark.parametrize("attributes", [{"direction": "reverse"}, {"direction": "bidirectional"}, {"clip": 0.3}])
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_variants_of_recurrent_ops(op, attributes):
    data = recurrent(op, steps=9, **attributes).SerializeToString()
    x = feed(9, 2)
    results = [
        webrnn.InferenceSession(data, backend="numpy", disable=["all", *more]).run(None, {"X": x})
        for more in ([], ["scan_buffers"])
    ]
    same(*results)


def of_steps(n, *others):
    rng = np.random.default_rng(0)
    return [rng.standard_normal((n, 3)).astype(np.float32), *(np.array(other, np.float32) for other in others)]


def test_states_that_change_places(counted):
    """What is carried was a state, not a result, of the step before."""
    s = ScanBuilder()
    x, a, b, c = s.sequence("x"), s.state("a"), s.state("b"), s.state("c")
    graph = s.finish(states=[b, c, s.body.op("Add", a, x)], traces=[a, b])
    both_ways(graph, of_steps(11, [1, 2, 3], [4, 5, 6], [7, 8, 9]))
    assert counted == {"loops": 1, "given up": 0}


def test_a_state_that_stays():
    s = ScanBuilder()
    x, a, b = s.sequence("x"), s.state("a"), s.state("b")
    graph = s.finish(states=[a, s.body.op("Mul", a, x)], traces=[s.body.op("Identity", a), b])
    arguments = of_steps(6, [1, 2, 3], [0, 0, 0])
    results = both_ways(graph, arguments)
    np.testing.assert_array_equal(results[0], arguments[1])


def test_inputs_are_not_written_to():
    s = ScanBuilder()
    x, a = s.sequence("x"), s.state("a")
    w = s.invariant("w")
    total = s.body.op("Add", s.body.op("Mul", a, w), x)
    graph = s.finish(states=[total], traces=[w, total])
    arguments = of_steps(9, [1, 2, 3], [1, 2, 3])
    kept = [argument.copy() for argument in arguments]
    executor = Executor(graph)
    first = executor.run(arguments)
    copies = [result.copy() for result in first]
    second = executor.run(arguments)
    same(arguments, kept)
    same(first, copies)
    same(second, copies)
    assert not any(np.shares_memory(a, b) for a in first for b in second)


@pytest.mark.parametrize(
    "spec", [{"axis": 0}, {"axis": 1}, {"axis": -1}, {"reverse": True}, {"keep": 2}, {"length": 70}]
)
@pytest.mark.parametrize("steps", [1, 63, 64, 65])
def test_traces(spec, steps, counted):
    s = ScanBuilder()
    x, a = s.sequence("x"), s.state("a")
    total = s.body.op("Add", a, x)
    graph = s.finish(
        states=[total], traces=[(total, TraceSpec(**spec)), (x, TraceSpec(**spec)), (a, TraceSpec(**spec))]
    )
    both_ways(graph, of_steps(steps, [0, 0, 0]))
    assert counted["loops"] == 1


@pytest.mark.parametrize("taps", [(-2,), (-1, -2), (-3, -1), (-1, -2, -3, -4)])
def test_states_with_taps(taps, counted):
    s = ScanBuilder()
    x = s.sequence("x")
    inner = [s.body.value(f"tap{tap}") for tap in taps]
    total = x
    for tap in inner:
        total = s.body.op("Add", total, tap)
    init = s.b.input("init", DType.FLOAT, (-min(taps), 3))
    graph_state = State(StateSpec(taps), init, inner, s.body.op("Tanh", total), s.b.value("final"))
    s.scan.states.append(graph_state)
    both_ways(s.finish(traces=[total, inner[0]]), of_steps(12, np.arange(-min(taps) * 3).reshape(-1, 3)))
    assert counted == {"loops": 1, "given up": 0}


def test_layouts_that_a_copy_would_change(counted):
    """A part of a larger array is not copied: products of it might have other bits."""
    s = ScanBuilder()
    x, a = s.sequence("x"), s.state("a")
    axes, start, end = (s.body.constant(np.int64([each])) for each in (0, 0, 3))
    both = s.body.op("Concat", s.body.op("Add", a, x), x, axis=0)
    pairs = s.body.op("Reshape", both, s.body.constant(np.int64([3, 2])))
    column = s.body.op("Slice", pairs, start, s.body.constant(np.int64([1])), s.body.constant(np.int64([1])))
    graph = s.finish(states=[s.body.op("Squeeze", column, s.body.constant(np.int64([1])))], traces=[a])
    assert axes is not None
    assert end is not None
    both_ways(graph, of_steps(8, [1, 2, 3]))
    assert counted == {"loops": 1, "given up": 1}


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_condition_ends_it(is_inside):
    body = graph(
        [
            helper.make_node("Add", ["v", "v"], ["w"]),
            helper.make_node("ReduceMax", ["w"], ["most"], keepdims=0),
            helper.make_node("Less", ["most", "limit"], ["again"]),
            helper.make_node("Identity", ["w"], ["row"]),
        ],
        [integers("i", []), bools("c", []), floats("v", [3])],
        [bools("again", []), floats("w", [3]), floats("row", [3])],
    )
    trips = ["trips"] if is_inside else [""]
    nodes = [helper.make_node("Loop", [*trips, "", "x"], ["y", "rows"], body=body)]
    constants = [initializer("limit", np.float32(1e6)), initializer("trips", np.int64(1000))]
    proto = model(nodes, [floats("x", [3])], [floats("y", [3]), floats("rows", ["n", 3])], constants)
    results = [
        webrnn.InferenceSession(proto.SerializeToString(), backend="numpy", disable=["all", *more]).run(
            None, {"x": np.float32([1, 0, -1])}
        )
        for more in ([], ["scan_buffers"])
    ]
    same(*results)
    assert results[0][1].shape == (20, 3)


def test_a_state_that_grows():
    body = graph(
        [
            helper.make_node("Concat", ["past", "x_t"], ["longer"], axis=0),
            helper.make_node("ReduceSum", ["longer"], ["y_t"]),
        ],
        [floats("past", ["n"]), floats("x_t", [1])],
        [floats("longer", ["m"]), floats("y_t", [1])],
    )
    node = helper.make_node("Scan", ["past_in", "x"], ["past_out", "y"], num_scan_inputs=1, body=body)
    proto = model(
        [node], [floats("past_in", ["n"]), floats("x", ["t", 1])], [floats("past_out", None), floats("y", None)]
    )
    feeds = {"past_in": np.ones(2, np.float32), "x": feed(2, 5).reshape(-1, 1)}
    results = [
        webrnn.InferenceSession(proto.SerializeToString(), backend="numpy", disable=["all", *more]).run(None, feeds)
        for more in ([], ["scan_buffers"])
    ]
    same(*results)
    assert results[0][0].shape == (42,)


def test_errors_are_the_same():
    s = ScanBuilder()
    x, a = s.sequence("x"), s.state("a")
    table = s.body.constant(np.arange(12, dtype=np.float32).reshape(4, 3))
    index = s.body.op("Cast", s.body.op("ReduceSum", x, keepdims=0), to=7)
    graph = s.finish(states=[s.body.op("Add", a, s.body.op("Gather", table, index))])
    for bad in (0, 3, 8):
        x_values = np.zeros((9, 3), np.float32)
        x_values[bad] = 40
        error = both_ways(graph, [x_values, np.zeros(3, np.float32)])
        assert isinstance(error, webrnn.Error)
        assert "Gather" in str(error)


def test_limits_are_the_same():
    s = ScanBuilder()
    x, a = s.sequence("x"), s.state("a")
    total = s.body.op("Add", a, x)
    graph = s.finish(states=[total], traces=[total])
    error = both_ways(graph, of_steps(50, [0, 0, 0]), Limits(trace_bytes=1000))
    assert "grows beyond 1000 bytes" in str(error)
    assert "did not end within 20 steps" in str(both_ways(graph, of_steps(50, [0, 0, 0]), Limits(loop_steps=20)))


@pytest.mark.parametrize("dtype", [DType.FLOAT, DType.DOUBLE, DType.INT64, DType.FLOAT16])
@pytest.mark.parametrize("op", sorted(WRITERS.keys() - {"Linear"}))
def test_ops_that_write_into_buffers(op, dtype):
    """The same bits as the reference, also of special values; integers and half floats are not written."""
    b = GraphBuilder("main")
    n = 1 if op in ("Neg", "Abs", "Exp", "Sqrt", "Tanh", "Sigmoid", "Relu") else 2
    inputs = [b.input(f"x{i}", dtype, (4, 4)) for i in range(n)]
    b.graph.outputs = [b.op(op, *inputs)]
    executor = Executor(b.graph)
    repeated = RepeatedRun(executor, {})
    rng = np.random.default_rng(0)
    special = np.array([0.0, -0.0, 1e-40, 80, -80, 1e5, np.inf, -np.inf, np.nan])
    for _ in range(4):
        values = 10 * rng.standard_normal((n, 4, 4))
        if dtype in (DType.FLOAT, DType.DOUBLE):
            values[0].ravel()[: len(special)] = special
        arguments = [
            np.where(value == 0, 1, value).astype(dtype.array_type) if i else value.astype(dtype.array_type)
            for i, value in enumerate(values)
        ]
        try:
            with np.errstate(all="ignore"):
                expected = executor.run(arguments)
        except webrnn.Error:
            with np.errstate(all="ignore"), pytest.raises(webrnn.Error):
                repeated.run(arguments)
            continue
        with np.errstate(all="ignore"):
            same(repeated.run(arguments), expected)


@pytest.mark.parametrize("dtype", [DType.FLOAT, DType.DOUBLE, DType.FLOAT16])
@pytest.mark.parametrize("has_bias", [False, True])
def test_linear_in_buffers(has_bias, dtype):
    b = GraphBuilder("main")
    shapes = [(2, 3), (3, 4), (4,)][: 2 + has_bias]
    inputs = [b.input(f"x{i}", dtype, shape) for i, shape in enumerate(shapes)]
    output = b.value("y")
    b.add(Node("Linear", inputs, [output], {}, "", WEBRNN))
    b.graph.outputs = [output]
    executor = Executor(b.graph)
    repeated = RepeatedRun(executor, {})
    rng = np.random.default_rng(0)
    for _ in range(4):
        arguments = [rng.standard_normal(shape).astype(dtype.array_type) for shape in shapes]
        same(repeated.run(arguments), executor.run(arguments))


def test_shapes_and_types_may_change_between_runs():
    b = GraphBuilder("main")
    x = b.input("x", DType.FLOAT, (None, 2))
    b.graph.outputs = [b.op("Tanh", b.op("Add", x, x))]
    executor = Executor(b.graph)
    repeated = RepeatedRun(executor, {})
    for rows in (1, 1, 3, 3, 1):
        x_value = np.full((rows, 2), rows, np.float32)
        same(repeated.run([x_value]), executor.run([x_value]))


def test_results_are_written_to_the_same_place():
    b = GraphBuilder("main")
    x = b.input("x", DType.FLOAT, (2,))
    b.graph.outputs = [b.op("Add", x, x)]
    repeated = RepeatedRun(Executor(b.graph), {})
    places = {repeated.run([np.ones(2, np.float32)])[0].ctypes.data for _ in range(5)}
    assert len(places) == 2  # the first run checks, and finds out what to make room for


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(
    ("op", "functions"),
    [
        ("RnnCell", ["tanh"]),
        ("GruCell", ["sigmoid", "tanh"]),
        ("LstmCell", ["sigmoid", "tanh", "tanh"]),
        ("GruCell", ["sigmoid", "relu"]),
    ],
)
def test_cells_run_again_and_again(op, functions, rows, dtype):
    hidden, form = 37, CELLS[op]
    b = GraphBuilder("cell")
    widths = [form.gates * hidden, form.gates * hidden, *[hidden] * (form.required - 2)]
    inputs = [b.input(f"x{k}") for k in range(len(widths))]
    outputs = [b.value(f"y{k}") for k in range(form.outputs)]
    params = [np.inf, *[0.0] * (2 * form.activations)]
    b.add(Node(op, inputs, outputs, {"activations": functions, "params": params, "couple": 0}, "", WEBRNN))
    b.graph.outputs += outputs
    executor = Executor(b.graph)
    repeated, rng = RepeatedRun(executor, {}), np.random.default_rng(0)
    for count in (rows, rows, rows, rows + 1, rows + 1):
        arguments = [rng.standard_normal((count, width)).astype(dtype) * 9 for width in widths]
        found = repeated.run(arguments)
        same(found, executor.run(arguments))


def test_cells_keep_the_layout_of_their_operands():
    b = GraphBuilder("cell")
    x, y = b.input("x"), b.input("y")
    b.graph.outputs.append(b.value("h"))
    b.add(Node("RnnCell", [x, y], b.graph.outputs[:], {"activations": ["tanh"], "params": [np.inf, 0, 0]}, "", WEBRNN))
    executor = Executor(b.graph)
    repeated, along = RepeatedRun(executor, {}), np.asfortranarray(np.ones((3, 4), np.float32))
    for _ in range(2):
        [found], [expected] = repeated.run([along, along]), executor.run([along, along])
        assert found.strides == expected.strides


def test_the_switch_of_the_environment():
    program = (
        "import sys; from webrnn.passes.pipeline import disabled_passes, disabled_switches;"
        "print(sorted(disabled_switches()), sorted(disabled_passes()))"
    )
    environment = {**os.environ, "WEBRNN_DISABLE": "scan_buffers,fold_constants"}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['scan_buffers'] ['fold_constants']"


def test_the_switch_of_a_session(counted):
    data = stateful("GRU").SerializeToString()
    feeds = {"x": feed(9, 1), "h_in": np.zeros((1, 1, 5), np.float32)}
    webrnn.InferenceSession(data, backend="numpy", disable=["scan_buffers"]).run(None, feeds)
    assert counted["loops"] == 0
    webrnn.InferenceSession(data, backend="numpy").run(None, feeds)
    assert counted["loops"] == 1


@pytest.mark.parametrize("backend", KERNELS)
def test_loops_of_plans_without_fused_sequences(backend):
    data = stateful("RNN").SerializeToString()
    feeds = {"x": feed(9, 2), "h_in": np.zeros((1, 2, 5), np.float32)}
    sessions = [webrnn.InferenceSession(data, backend=backend, disable=names) for names in ([], ["fused_sequences"])]
    same(*[s.run(None, feeds) for s in sessions])
    assert sessions[0].report() != sessions[1].report()
