"""The pullback of Scan: each part of a loop beside finite differences, and what the forward loop keeps for it."""

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.backends import MAIN
from tests.onnx.models import floats, recurrent
from tests.passes.differential import ops
from webrnn.engine.executor.executor import Executor
from webrnn.gradients.api import derive, gradient
from webrnn.ir import (
    DType,
    Graph,
    GraphBuilder,
    Invariant,
    Node,
    Scan,
    SequenceInput,
    SequenceSpec,
    State,
    StateSpec,
    Symbol,
    Trace,
    TraceSpec,
)
from webrnn.passes import run_passes

from .arrays import given
from .finite import assert_right
from .models import onnx_model

SIZE = 3
RNG = np.random.default_rng(0)


class Loop:
    """h' = tanh(h w + x), with a trace of h' and the last h'; tests change it before it is built."""

    def __init__(self, taps=(-1,), reverse=False, axis=0, trace=None, n_steps=None, open_sizes=True):
        self.b = b = GraphBuilder("g")
        steps = Symbol("steps") if open_sizes else 5
        sizes = [2, SIZE]
        sizes.insert(axis, steps)
        depth = -min(taps)
        self.start = b.input("start", DType.DOUBLE, (2, SIZE) if taps == (-1,) else (depth, 2, SIZE))
        self.x = b.input("x", DType.DOUBLE, tuple(sizes))
        self.w = b.input("w", DType.DOUBLE, (SIZE, SIZE))
        self.body = body = GraphBuilder("body", b)
        self.scan = Scan(body.graph, name="loop")
        befores = [body.value("h", DType.DOUBLE, (2, SIZE)) for _ in taps]
        element, w = body.value("x_t"), body.value("w")
        self.scan.sequences.append(SequenceInput(SequenceSpec(axis, reverse), self.x, element))
        self.scan.invariants.append(Invariant(self.w, w))
        total = element
        for place, before in enumerate(befores):
            total = body.op("Add", total, body.op("MatMul", before, w) if place == 0 else before)
        self.befores, self.after, self.element = befores, body.op("Tanh", total), element
        self.last, self.trace = b.value("last"), b.value("trace")
        self.scan.states.append(State(StateSpec(taps), self.start, befores, self.after, self.last))
        self.scan.traces.append(Trace(trace or TraceSpec(), self.after, self.trace))
        if n_steps is not None:
            self.scan.n_steps = b.constant(n_steps)

    def arguments(self, steps=5):
        sizes = [2, SIZE]
        sizes.insert(self.scan.sequences[0].spec.axis, steps)
        return [RNG.standard_normal(item) * 0.7 for item in (self.start.shape, sizes, (SIZE, SIZE))]

    def graph(self, *outputs) -> Graph:
        self.b.add(self.scan.to_node())
        self.b.graph.outputs = list(outputs) or [self.last, self.trace]
        return self.b.graph


OPTIONS = [{}, {"every": 2}, {"truncate": 8}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("taps", [(-1,), (-1, -2), (-2,), (-3, -1), (-1, -4)], ids=str)
def test_taps(taps, steps, options):
    loop = Loop(taps)
    assert assert_right(loop.graph(), loop.arguments(steps), **options) == 3


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reverse", [False, True])
def test_sequences(reverse, axis, options):
    loop = Loop(reverse=reverse, axis=axis)
    assert assert_right(loop.graph(), loop.arguments(), **options) == 3


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n_steps", [0, 2, 5])
def test_fewer_steps_than_elements(n_steps, reverse, options):
    loop = Loop(reverse=reverse, n_steps=n_steps)
    assert assert_right(loop.graph(), loop.arguments(), **options) == 3


@pytest.mark.parametrize("truncate", [None, 2, 9])
@pytest.mark.parametrize(
    "spec",
    [
        TraceSpec(reverse=True),
        TraceSpec(axis=1),
        TraceSpec(axis=-1, reverse=True),
        TraceSpec(keep=2),
        TraceSpec(keep=2, reverse=True),
        TraceSpec(keep=9),
        TraceSpec(keep=3, axis=1),
        TraceSpec(length=7),
        TraceSpec(length=5, reverse=True),
    ],
    ids=str,
)
def test_traces(spec, truncate):
    """Truncated, the gradient is that of the steps that are taken back, from the state before them on."""
    loop = Loop(trace=spec)
    arguments = loop.arguments()
    graph = loop.graph()
    if truncate is None or truncate >= 5:
        options = {} if truncate is None else {"truncate": truncate}
        assert assert_right(graph, arguments, **options) == 3
        return
    found = _with_loss(graph, arguments, truncate)
    first = 5 - truncate
    start, x, w = arguments
    (last, _) = Executor(Loop().graph()).run([start, x[:first], w])
    rest = Loop(trace=spec)
    weights = _weights(graph, arguments)
    cut = _with_loss(rest.graph(), [last, x[first:], w], None, _kept(weights, spec, truncate))
    np.testing.assert_allclose(found[0], 0)
    np.testing.assert_allclose(found[1][first:], cut[1], atol=1e-12)
    np.testing.assert_allclose(found[1][:first], 0)
    np.testing.assert_allclose(found[2], cut[2], atol=1e-12)


def _weights(graph, arguments):
    rng = np.random.default_rng(7)
    return [rng.standard_normal(item.shape) for item in Executor(graph).run(arguments)]


def _kept(weights, spec, steps):
    """The weights of the trace's last steps."""
    last, trace = weights
    axis = spec.axis % 3
    along = np.moveaxis(trace, axis, 0)
    if spec.length is not None:
        along = along[:5]
    along = along[:steps] if spec.reverse else along[-steps:]
    if spec.length is not None:
        along = np.concatenate([along, np.zeros((spec.length - len(along), *along.shape[1:]))])
    return [last, np.moveaxis(along, 0, axis)]


def _with_loss(graph, arguments, truncate, weights=None):
    b = GraphBuilder("loss")
    b.graph = graph.copy()
    weights = _weights(graph, arguments) if weights is None else weights
    parts = []
    for value, weight in zip(b.graph.outputs, weights, strict=True):
        part = b.value(f"part_of_{value.name}")
        b.add(
            Node("ReduceSum", [b.op("Mul", value, b.constant(weight), name=f"m_{value.name}")], [part], {"keepdims": 0})
        )
        parts.append(part)
    b.graph.outputs = [b.op("Add", *parts, output=b.value("loss"))]
    names = [value.name for value in graph.inputs]
    return Executor(gradient(b.graph, "loss", names, truncate=truncate)).run(arguments)[1:]


@pytest.mark.parametrize("options", [{}, {"truncate": 9}], ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_loop_that_ends_when_it_likes(reverse, options):
    """How many steps it takes depends on the data: the first few here."""
    loop = Loop(reverse=reverse)
    total = loop.body.op("ReduceSum", loop.body.op("Abs", loop.after), keepdims=0)
    loop.scan.body_cond = loop.body.op("Less", total, loop.body.constant(np.float64(3)))
    loop.scan.cond = loop.b.constant(np.array(True))
    arguments = loop.arguments(12)
    graph = loop.graph()
    taken = len(Executor(graph).run(arguments)[1])
    assert 0 < taken < 12
    assert assert_right(graph, arguments, **options) == 3


def test_a_loop_of_no_sequences_that_ends_when_it_likes():
    loop = Loop()
    b, body, arguments = loop.b, loop.body, loop.arguments()
    loop.scan.sequences.clear()
    whole = body.value("all")
    loop.scan.invariants.append(Invariant(loop.x, whole))
    loop.scan.iteration = body.value("i")
    body.graph.nodes.insert(0, Node("Gather", [whole, loop.scan.iteration], [loop.element], {"axis": 0}))
    still = body.op("Less", loop.scan.iteration, body.constant(2))
    loop.scan.body_cond, loop.scan.cond = still, b.constant(np.array(True))
    assert assert_right(loop.graph(), arguments) == 3


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_number_of_the_step(options):
    loop = Loop()
    body = loop.body
    loop.scan.iteration = body.value("i")
    number = body.op("Cast", loop.scan.iteration, to=int(DType.DOUBLE))
    product = body.op("Mul", loop.after, number)
    whole = loop.b.value("numbered")
    loop.scan.add_trace(product, whole)
    assert assert_right(loop.graph(whole), loop.arguments(), **options) == 3


def test_a_state_of_integers_beside():
    loop = Loop()
    body = loop.body
    before = body.value("count")
    after = body.op("Add", before, body.constant(2))
    loop.scan.add_state(loop.b.constant(1), before, after, None)
    number = body.op("Cast", before, to=int(DType.DOUBLE))
    whole = loop.b.value("numbered")
    loop.scan.add_trace(body.op("Mul", loop.after, number), whole)
    assert assert_right(loop.graph(whole, loop.last), loop.arguments()) == 3


def _loops(graph):
    return [Scan.of(node) for node in graph.nodes if node.op == "Scan"]


def test_a_state_that_nobody_needs_is_not_kept():
    """h' = h + x: no forward value is needed at all."""
    b = GraphBuilder("g")
    x = b.input("x", DType.FLOAT, (Symbol("n"), SIZE))
    body = GraphBuilder("body", b)
    scan = Scan(body.graph)
    before, element, last = body.value("h"), body.value("x_t"), b.value("last")
    scan.add_sequence(x, element)
    start = b.input("start", DType.FLOAT, (SIZE,))
    scan.add_state(start, before, body.op("Add", before, element), last)
    b.add(scan.to_node())
    loss = b.value("loss", DType.FLOAT, ())
    b.add(Node("ReduceSumSquare", [last], [loss], {"keepdims": 0}))
    b.graph.outputs = [loss]
    made = gradient(b.graph, "loss", ["x", "start"])
    forward, back = _loops(made)
    assert not forward.traces
    assert not back.sequences
    arguments = [np.float32([[1, 2, 3], [4, 5, 6]]), np.float32([1, 1, 1])]
    loss, of_x, of_start = Executor(made).run(arguments)
    assert of_start.tolist() == [12, 16, 20]
    assert of_x.tolist() == [[12, 16, 20]] * 2


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_weights_take_one_product_behind_the_loop(op):
    case = op, 8, 7
    made = gradient(onnx_model(*case), "loss", ["W", "R", "B"])
    run_passes(made)
    forward, back = _loops(made)
    assert ops(back.body)[f"{op.capitalize()}CellBackward"] == 1
    # In the loop: one product with the recurrent weights, for the state before.
    assert ops(back.body)["Linear"] + ops(back.body)["MatMul"] == 1
    # Its states are the cotangents of the states, and no sums.
    assert len(back.states) == len(forward.states)
    # Outside: forward W, and the gradients of W and R.
    outside = sum(node.op in ("Linear", "MatMul") for node in made.nodes)
    assert outside == 3
    # The states before each step are kept, their product with R (reuse_steps), and what the model gives.
    kept = [trace for trace in forward.traces if trace.whole is not None]
    assert len(kept) == len(forward.states) + 2


def _with_square(loop, steps):
    """A loss of the last state, of a loop whose number of steps is known."""
    loop.x.shape = (steps, 2, SIZE)
    graph = loop.graph(loop.last)
    loss = loop.b.value("loss", DType.DOUBLE, ())
    loop.b.add(Node("ReduceSumSquare", [loop.last], [loss], {"keepdims": 0}))
    graph.outputs = [loss]
    return graph


@pytest.mark.parametrize("steps", [40, 400])
def test_truncated_loops_keep_the_steps_that_go_back(steps):
    made = gradient(_with_square(Loop(open_sizes=False), steps), "loss", ["w", "start"], truncate=5)
    run_passes(made)
    first, last, back = _loops(made)
    assert not any(trace.whole is not None for trace in first.traces)
    assert _longest(last) == 5
    assert max(item.whole.shape[item.spec.axis] for item in back.sequences) == 5


def test_memory_of_a_truncated_layer_does_not_grow_with_the_sequence():
    found = []
    for steps in (60, 600):
        proto = recurrent("GRU", steps=steps, linear_before_reset=1)
        proto.graph.node.append(helper.make_node("ReduceSumSquare", ["Y_h"], ["loss"], keepdims=0))
        proto.graph.output.append(floats("loss", []))
        graph = gradient(proto.SerializeToString(), "loss", truncate=10)
        session = webrnn.InferenceSession(graph, backend=MAIN)
        session.run(None, {"X": RNG.standard_normal((steps, 2, 4)).astype(np.float32)})
        line = next(line for line in session.report().splitlines() if "arena" in line)
        found.append(int(line.split()[1]))
    # Chunks of the projection differ by a step or two.
    assert found[1] < 1.1 * found[0]


@pytest.mark.parametrize(("steps", "every"), [(49, 7), (50, 7), (100, 10)])
def test_checkpoints_keep_two_roots(steps, every):
    """States are kept of each part, and inside a part of each of its steps."""
    loop = Loop(open_sizes=False)
    graph = _with_square(loop, steps)
    made = gradient(graph, "loss", ["w"], every=every)
    run_passes(made)
    kept = sum(_longest(scan) for scan in _loops(made)[:1])
    inner = max(
        _longest(Scan.of(node)) for item in made.walk() if item is not made for node in item.nodes if node.op == "Scan"
    )
    assert kept == steps // every
    assert inner == every
    assert kept + inner <= 2 * np.sqrt(steps) + 1
    plain = gradient(graph, "loss", ["w"])
    arguments = loop.arguments(steps)
    for found, wanted in zip(Executor(made).run(arguments), Executor(plain).run(arguments), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


def _longest(scan):
    return max([trace.whole.shape[0] for trace in scan.traces if trace.whole is not None], default=0)


def test_weights_as_inputs():
    """What a trainer takes: the same gradients, with weights that are fed."""
    case = "stacked", 8, 7
    found = derive(onnx_model(*case), "loss")
    feeds = {"x": given(*case)["x"], **found.weights}
    assert set(found.weights) == set(found.gradients) == set(given(*case)) - {"x"}
    fed = webrnn.InferenceSession(found.graph, backend="numpy").run(None, feeds)
    bound = webrnn.InferenceSession(gradient(onnx_model(*case), "loss"), backend="numpy").run(None, {"x": feeds["x"]})
    for one, other in zip(fed, bound, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
