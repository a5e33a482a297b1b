"""Models for whole sequences by frames, on the kernels that there are: inside Pyodide too."""

import numpy as np
import pytest

import webrnn
from tests.backends import KERNELS
from webrnn.ir import DType, GraphBuilder, Symbol

FRAMES = 24
CHANNELS = 6


def weights(b, *shape):
    return b.constant(np.random.default_rng(len(shape) + shape[-1]).normal(0, 0.4, shape).astype(np.float32))


def centred(b, x):
    y = b.op("Relu", b.op("Conv", x, weights(b, CHANNELS, CHANNELS, 3), pads=[1, 1]))
    return b.op("Add", b.op("Conv", y, weights(b, CHANNELS, CHANNELS, 5), pads=[2, 2]), x)


def dilated(b, x):
    """A history that is kept as a ring."""
    return b.op("Conv", x, weights(b, CHANNELS, CHANNELS, 3), pads=[16, 0], dilations=[8])


def down_and_up(b, x):
    y = b.op("Conv", x, weights(b, 8, CHANNELS, 4), pads=[1, 1], strides=[2])
    z = b.op("MaxPool", y, kernel_shape=[3], pads=[1, 1], strides=[1])
    up = b.op("ConvTranspose", z, weights(b, 8, CHANNELS, 4), pads=[1, 1], strides=[2])
    return b.op("Concat", up, x, axis=1)


def mirrored(b, x):
    return b.op("Conv", b.op("Pad", x, b.ints(0, 0, 4, 0, 0, 4), mode="reflect"), weights(b, 3, CHANNELS, 9))


def differences(b, x):
    later = b.op("Slice", x, b.ints(1), b.ints(2**31), b.ints(2))
    return b.op("Sub", later, b.op("Slice", x, b.ints(0), b.ints(-1), b.ints(2)))


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize(
    ("build", "stride", "delay"),
    [(centred, 1, 3), (dilated, 1, 0), (down_and_up, 2, 5), (mirrored, 1, 4), (differences, 1, 1)],
)
def test_steps_and_the_flush_are_the_whole_run(build, stride, delay, backend):
    b = GraphBuilder(build.__name__)
    x = b.input("x", DType.FLOAT, (Symbol("batch"), CHANNELS, Symbol("time")))
    b.graph.outputs = [build(b, x)]
    session = webrnn.InferenceSession(b.graph, backend=backend)
    feed = np.random.default_rng(7).standard_normal((2, CHANNELS, FRAMES)).astype(np.float32)
    (whole,) = session.run(None, {"x": feed})
    stream = session.stream(carry="internal")
    assert (stream.stride, stream.delay) == (stride, delay)
    for n in (stride, 3 * stride, FRAMES):
        parts = [stream.step({"x": feed[:, :, at : at + n]})[0] for at in range(0, FRAMES, n)]
        assert np.array_equal(np.concatenate([*parts, *stream.flush()], axis=2), whole)
