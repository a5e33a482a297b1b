import numpy as np
import pytest

import webrnn
from tests.onnx.models import recurrent
from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from tests.passes.scans import ScanBuilder
from webrnn.ir import Scan, TraceSpec, is_scan
from webrnn.passes import run_passes

PLAIN = TraceSpec()
ARGUMENTS = [floats(4, 3), floats(3), floats(3, 3, seed=2)]


def loop(spec=PLAIN, *, other_weights=False, frugal=False, constant=None):
    """h' = tanh(x + h w), and behind the loop h w of all steps, of the states before or behind them."""
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    if constant is None:
        w = s.invariant("w", shape=(3, 3))
        outer = s.scan.invariants[-1].outer
    else:
        w, outer = s.body.constant(constant, "w"), None
    after = s.body.op("Tanh", s.body.op("Add", x, s.body.op("MatMul", h, w)))
    s.scan.frugal = frugal
    graph = s.finish([after], [(h, spec)])
    outer = s.b.constant(constant.copy(), "w") if outer is None else outer
    if other_weights:
        outer = s.b.op("Add", outer, outer)
    graph.outputs.append(s.b.op("MatMul", graph.outputs[-1], outer))
    return graph


def traces(graph):
    (node,) = (node for node in graph.nodes if is_scan(node))
    return Scan.of(node).traces


@pytest.mark.parametrize("spec", [TraceSpec(), TraceSpec(reverse=True), TraceSpec(keep=2)])
def test_a_product_of_each_step_is_traced(spec):
    graph = loop(spec)
    assert_keeps_results(graph, ARGUMENTS, "reuse_steps")
    apply(graph, "reuse_steps")
    assert ops(graph)["MatMul"] == 1
    assert [trace.spec for trace in traces(graph)] == [spec, spec]


def test_constants():
    graph = loop(constant=floats(3, 3, seed=2))
    assert_keeps_results(graph, ARGUMENTS[:2], "reuse_steps")
    apply(graph, "reuse_steps")
    assert ops(graph)["MatMul"] == 1


@pytest.mark.parametrize("changed", ["weights", "axis"])
def test_what_is_another_product_stays(changed):
    graph = loop(TraceSpec(axis=1 if changed == "axis" else 0), other_weights=changed == "weights")
    arguments = ARGUMENTS if changed == "weights" else [floats(3, 3), *ARGUMENTS[1:]]
    assert not assert_keeps_results(graph, arguments, "reuse_steps").rewrites["reuse_steps"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"spec": TraceSpec(length=6)}, "the trace is filled up with zeros"), ({"frugal": True}, "it saves memory")],
)
def test_declines(options, reason):
    outcome = assert_keeps_results(loop(**options), ARGUMENTS, "reuse_steps")
    assert not outcome.rewrites["reuse_steps"]
    assert reasons(outcome, "reuse_steps") == {reason}


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("batch", [1, 2])
def test_a_gradient_makes_each_product_once(op, batch):
    """Those of the input and of the states, and for each the gradients of both factors."""
    options = {"linear_before_reset": 1} if op == "GRU" else {}
    proto = recurrent(op, batch=batch, **options)
    graph = webrnn.gradient(proto.SerializeToString(), loss="mse", prediction="Y", wrt=["X", "W", "R"])
    run_passes(graph)
    counted = sum(node.op in ("MatMul", "Linear") for inner in graph.walk() for node in inner.nodes)
    assert counted == 6, ops(graph)
    assert np.isfinite(webrnn.InferenceSession(graph, backend="numpy").run(None, feeds(graph))[0])


def feeds(graph):
    return {value.name: floats(*value.shape, seed=index) for index, value in enumerate(graph.inputs)}
