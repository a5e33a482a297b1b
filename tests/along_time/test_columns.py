"""Sums over channels of models for a fixed number of frames that are opened by `time=`: the order of their own run."""

import numpy as np
import pytest
from onnx.parser import parse_model

import webrnn
from webrnn.ir import DType, GraphBuilder, Symbol

from .judge import by_steps, cuttings, difference, open_stream

CHANNELS, FRAMES = 67, 6
SUMS = ["ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceProd"]
OTHERS = ["ReduceLogSum", "ReduceLogSumExp", "ReduceMax"]


def session_of(build, shape=(1, CHANNELS, FRAMES), backend="native"):
    b = GraphBuilder("g")
    x = b.input("x", DType.FLOAT, shape)
    b.graph.outputs = [b.op("Identity", build(b, x), output=b.value("y"))]
    return webrnn.InferenceSession(b.graph, backend=backend)


def assert_exact(build, shape=(1, CHANNELS, FRAMES), time=2, backend="native"):
    session = session_of(build, shape, backend)
    feeds = {"x": 1 + np.abs(np.random.default_rng(0).standard_normal(shape).astype(np.float32))}
    wanted = {"y": session.run(None, feeds)[0]}
    stream = open_stream(session, {"x": time})
    for lengths in cuttings(shape[time], stream.stride, np.random.default_rng(1)):
        stream.reset()
        assert not difference(by_steps(stream, feeds, lengths), wanted), lengths


def test_orders_differ():
    """Else there would be nothing to keep."""
    session = session_of(lambda b, x: b.op("ReduceSum", x, b.ints(1)), (1, CHANNELS, Symbol("frames")))
    x = np.random.default_rng(0).standard_normal((1, CHANNELS, FRAMES)).astype(np.float32)
    fixed = session_of(lambda b, x: b.op("ReduceSum", x, b.ints(1)))
    assert session.run(None, {"x": x})[0].tobytes() != fixed.run(None, {"x": x})[0].tobytes()


@pytest.mark.parametrize("op", SUMS + OTHERS)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("backend", ["native", "wasm:simd"])
def test_reductions(op, keepdims, backend):
    assert_exact(lambda b, x: b.op(op, x, b.ints(-2), keepdims=keepdims), backend=backend)


@pytest.mark.parametrize(
    "build",
    [
        lambda b, x: b.op("LpNormalization", x, axis=1, p=1),
        lambda b, x: b.op("LpNormalization", x, axis=-2, p=2),
        lambda b, x: b.op("MeanVarianceNormalization", x, axes=[1]),
        lambda b, x: b.op("Softmax", x, axis=1),
        lambda b, x: b.op("ReduceSum", b.op("Cast", x, to=DType.DOUBLE), b.ints(1)),
        lambda b, x: b.op("ReduceSum", b.op("Cast", x, to=DType.INT64), b.ints(1)),
        lambda b, x: b.op("ReduceSum", x, noop_with_empty_axes=1),
    ],
    ids=["L1", "L2", "mean and variance", "softmax", "doubles", "integers", "nothing"],
)
def test_norms_and_types(build):
    assert_exact(build)


@pytest.mark.parametrize(
    ("shape", "axes", "time"),
    [
        ((2, 5, 13, FRAMES), (1, 2), 3),
        ((2, 5, 13, FRAMES), (0, 2), 3),
        ((5, 13, FRAMES), (0, 1), 2),
        ((2, CHANNELS, FRAMES, 1), (1,), 2),
        ((2, CHANNELS, FRAMES, 4), (1,), 2),
        ((2, FRAMES, CHANNELS), (2,), 1),
        ((1, CHANNELS, 1), (1,), 2),
    ],
)
def test_axes(shape, axes, time):
    assert_exact(lambda b, x: b.op("ReduceMean", x, b.ints(*axes), keepdims=0), shape, time)


@pytest.mark.parametrize(
    "between",
    [
        lambda b, x: b.op("MaxPool", x, kernel_shape=[6], strides=[6]),
        lambda b, x: b.op("MaxPool", x, kernel_shape=[3], strides=[3]),
        lambda b, x: b.op("MaxPool", x, kernel_shape=[6]),
        lambda b, x: b.op("MaxPool", x, kernel_shape=[3]),
        lambda b, x: b.op("MaxPool", x, kernel_shape=[3], pads=[1, 1]),
    ],
    ids=["one frame by a stride", "two frames", "one frame by a window", "four frames", "late"],
)
def test_frames_that_are_left(between):
    """One frame that is left is a row in the model's own run."""
    assert_exact(lambda b, x: b.op("ReduceSum", between(b, x), b.ints(1), keepdims=1))


def test_what_follows_goes_on():
    def centred(b, x):
        y = b.op("Sub", x, b.op("ReduceMean", x, b.ints(1)))
        return b.op("Conv", y, b.constant(np.ones((3, CHANNELS, 3), np.float32)), pads=[1, 1])

    assert_exact(centred)


@pytest.mark.parametrize("equation", ["bct->bt", "bct->tb"])
def test_refuses_sums_that_are_written_as_einsum(equation):
    session = session_of(lambda b, x: b.op("Einsum", x, equation=equation))
    with pytest.raises(webrnn.ModelError, match="another order") as raised:
        open_stream(session, {"x": 2})
    assert raised.value.node


def test_products_that_are_written_as_einsum():
    weights = np.random.default_rng(3).standard_normal((CHANNELS, 4)).astype(np.float32)
    assert_exact(lambda b, x: b.op("Einsum", x, b.constant(weights), equation="bct,cd->bdt"))


def test_refuses_sums_in_a_branch():
    model = parse_model("""<ir_version: 8, opset_import: ["": 20]>
    g (bool c, float[1, 67, 6] x) => (float[1, 1, 6] y) {
        axes = Constant<value_ints=[1]>()
        y = If <then_branch = summed () => (float[1, 1, 6] a) { a = ReduceSum(x, axes) },
                else_branch = largest () => (float[1, 1, 6] z) { z = ReduceMax(x, axes) }>(c)
    }""")
    session = webrnn.InferenceSession(model.SerializeToString())
    with pytest.raises(webrnn.ModelError, match="open axis of time"):
        open_stream(session, {"x": 2})
