"""Models of a window on all windows of a sequence: the same bits, and what windows share is computed once."""

import numpy as np
import pytest

import webrnn
from webrnn.along_time.over_windows import over_windows
from webrnn.ir import DType, GraphBuilder, Symbol

WINDOW = 12


def window_model(build, channels=2):
    """x [batch, 12, channels] -> what `build` makes of it."""
    b = GraphBuilder("window")
    x = b.input("x", DType.FLOAT, (Symbol("batch"), WINDOW, channels))
    b.graph.outputs.append(build(b, x))
    return b.graph


def joined(model, hop, channels=2):
    b = GraphBuilder("joined")
    frames = b.input("frames", DType.FLOAT, (1, Symbol("time"), channels))
    b.graph.outputs = over_windows(b, model, frames, hop)
    return b.graph


def weights(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def convolutions(b, x):
    """12 frames -> 10 -> 5 -> 3 -> 1: a receptive field of the whole window."""
    y = b.op("Transpose", x, perm=[0, 2, 1])
    y = b.op("Relu", b.op("Conv", y, b.constant(weights(4, 2, 3)), b.constant(weights(4))))
    y = b.op("MaxPool", y, kernel_shape=[2], strides=[2])
    y = b.op("LeakyRelu", b.op("Conv", y, b.constant(weights(4, 4, 3))))
    y = b.op("Max", y, b.constant(weights(1, 4, 1)))
    y = b.op("Conv", y, b.constant(weights(3, 4, 3)))
    return b.op("Reshape", y, b.ints(-1, 1, 3))


def images(b, x):
    """As Keras' exports do it: reshaped to [batch, 1, frames, features], features padded, back at the end."""
    y = b.op("Reshape", b.op("Pad", x, b.ints(0, 0, 1, 0, 0, 1)), b.ints(-1, 1, WINDOW, 4))
    y = b.op("Conv", y, b.constant(weights(3, 1, 3, 3)))
    y = b.op("BatchNormalization", y, *(b.constant(np.abs(weights(3)) + 0.1) for _ in range(4)))
    y = b.op("AveragePool", y, kernel_shape=[2, 1], strides=[2, 1])
    return b.op("Transpose", y, perm=[0, 2, 3, 1])


def padded(b, x):
    """A convolution that pads the window is one of each window."""
    y = b.op("Transpose", x, perm=[0, 2, 1])
    return b.op("Conv", b.op("Tanh", y), b.constant(weights(3, 2, 3)), pads=[1, 1])


def softmax(b, x):
    return b.op("Softmax", b.op("Add", x, b.op("Tanh", x)), axis=1)


def positions(b, x):
    """A constant that is another one for each frame of the window."""
    return b.op("Relu", b.op("Add", x, b.constant(weights(WINDOW, 2))))


def uneven(b, x):
    """Stride 3 does not divide the hop of 2: windows are computed each for itself from there on."""
    y = b.op("Conv", b.op("Transpose", x, perm=[0, 2, 1]), b.constant(weights(2, 2, 3)))
    return b.op("MaxPool", y, kernel_shape=[3], strides=[3])


def steps_first(b, x):
    """As recurrent layers have it: [steps, batch, features], each row times weights, and sizes of the window."""
    rows = b.op("Transpose", x, perm=[1, 0, 2])
    made = b.op("Add", b.op("MatMul", rows, b.constant(weights(2, 3))), b.constant(weights(3)))
    batch = b.op("Slice", b.op("Shape", x), b.ints(0), b.ints(1))
    start = b.op("Expand", b.constant(np.float32(0.5)), b.op("Concat", b.ints(1), batch, b.ints(3), axis=0))
    summed = b.op("ReduceMax", b.op("Concat", start, made, axis=0), b.ints(0), keepdims=0)
    return b.op("Add", summed, b.op("Squeeze", b.op("Slice", made, b.ints(-1), b.ints(99), b.ints(0)), b.ints(0)))


def features_first(b, x):
    """The window behind what is between it and the batch."""
    y = b.op("Reshape", b.op("Transpose", x, perm=[2, 0, 1]), b.ints(2, -1, WINDOW))
    return b.op("Transpose", b.op("Softmax", b.op("Tanh", y), axis=2), perm=[1, 0, 2])


BUILDS = (convolutions, images, padded, softmax, positions, uneven, steps_first, features_first)


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
@pytest.mark.parametrize("hop", [1, 2, 4])
@pytest.mark.parametrize("backend", ["native", "wasm:simd"])
def test_the_bits_are_those_of_each_window(build, hop, backend):
    model = window_model(build)
    frames = np.random.default_rng(hop).standard_normal((1, 31, 2)).astype(np.float32)
    each = webrnn.InferenceSession(model.copy(), backend=backend)
    wanted = [each.run(None, {"x": frames[:, at : at + WINDOW]})[0] for at in range(0, 31 - WINDOW + 1, hop)]
    (found,) = webrnn.InferenceSession(joined(model, hop), backend=backend).run(None, {"frames": frames})
    assert found.tobytes() == np.concatenate(wanted).tobytes()


def ops(graph):
    return [node.op for node in graph.nodes]


def test_what_windows_share_runs_on_the_sequence():
    made = ops(joined(window_model(convolutions), 2))
    assert made == ["Transpose", "Conv", "Relu", "MaxPool", "Conv", "LeakyRelu", "Max", "Conv", "Transpose", "Reshape"]


def test_a_hop_that_a_stride_does_not_divide_makes_windows_before_it():
    made = ops(joined(window_model(uneven), 2))
    assert made.index("Conv") < made.index("Gather") < made.index("MaxPool")


def test_products_of_rows_are_shared():
    made = ops(joined(window_model(steps_first), 1))
    assert made.index("MatMul") < made.index("Gather")
    assert made.count("Gather") == 1


@pytest.mark.parametrize("build", [steps_first, features_first, softmax], ids=lambda build: build.__name__)
def test_windows_have_one_history(build):
    session = webrnn.InferenceSession(joined(window_model(build), 1))
    stream = session.stream(carry="internal")
    frames = np.random.default_rng(8).standard_normal((1, 30, 2)).astype(np.float32)
    parts = [stream.step({"frames": frames[:, at : at + 1]})[0] for at in range(30)]
    assert np.concatenate(parts).tobytes() == session.run(None, {"frames": frames})[0].tobytes()
    assert len([name for name in stream.state if name.endswith(".before")]) == 1


def test_it_streams():
    session = webrnn.InferenceSession(joined(window_model(convolutions), 2))
    stream = session.stream(carry="internal")
    frames = np.random.default_rng(9).standard_normal((1, 30, 2)).astype(np.float32)
    parts = [stream.step({"frames": frames[:, at : at + 2]})[0] for at in range(0, 30, 2)]
    (whole,) = session.run(None, {"frames": frames})
    assert stream.stride == 2
    assert np.concatenate([*parts, stream.flush()[0]]).tobytes() == whole.tobytes()


@pytest.mark.parametrize(("shape", "says"), [((Symbol("b"), Symbol("t"), 2), "no fixed size"), ((3,), "no fixed size")])
def test_declines_models_without_a_window(shape, says):
    b = GraphBuilder("m")
    b.graph.outputs.append(b.op("Relu", b.input("x", DType.FLOAT, shape)))
    with pytest.raises(webrnn.ModelError, match=says):
        joined(b.graph, 1)


def test_declines_models_with_several_inputs():
    b = GraphBuilder("m")
    b.graph.outputs.append(b.op("Add", *(b.input(name, DType.FLOAT, (1, 2, 2)) for name in "xy")))
    with pytest.raises(webrnn.ModelError, match="one input"):
        joined(b.graph, 1)
