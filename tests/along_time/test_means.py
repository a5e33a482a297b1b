"""Means over windows that have fewer frames at the ends, by frames and for the whole sequence."""

import numpy as np
import pytest

import webrnn
from webrnn.ir import DType, GraphBuilder, Symbol

RNG = np.random.default_rng(0)


def averaged(rank, **attributes):
    b = GraphBuilder("means")
    x = b.input("x", DType.FLOAT, (Symbol("batch"), 3, Symbol("time"), *(5,) * (rank - 3)))
    b.graph.outputs = [b.op("AveragePool", x, output=b.value("y"), name="mean", **attributes)]
    return b.graph


@pytest.mark.parametrize("backend", ["native", "wasm:simd"])
@pytest.mark.parametrize(
    ("rank", "attributes"),
    [
        (3, {"kernel_shape": [3], "pads": [1, 1]}),
        (3, {"kernel_shape": [4], "pads": [3, 0]}),
        (3, {"kernel_shape": [5], "pads": [2, 2], "strides": [2]}),
        (3, {"kernel_shape": [3], "pads": [2, 2], "dilations": [2]}),
        (3, {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}),
        (4, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        (4, {"kernel_shape": [3, 2], "pads": [2, 0, 0, 1], "strides": [1, 2]}),
    ],
)
def test_means_by_frames_are_those_of_the_whole_run(rank, attributes, backend):
    session = webrnn.InferenceSession(averaged(rank, **attributes), backend=backend)
    stream = session.stream(carry="internal")
    x = RNG.standard_normal((2, 3, 12, *(5,) * (rank - 3))).astype(np.float32)
    (whole,) = session.run(None, {"x": x})
    for n in (1, 2, 3, 12):
        step = max(1, n // stream.stride) * stream.stride
        parts = [stream.step({"x": x[:, :, at : at + step]})[0] for at in range(0, 12, step)]
        made = np.concatenate([*parts, *stream.flush()], axis=2)
        assert np.array_equal(made, whole)


def test_rounding_up_with_padding_that_counts_is_refused():
    graph = averaged(3, kernel_shape=[3], strides=[2], ceil_mode=1, count_include_pad=1)
    with pytest.raises(webrnn.ModelError, match=r"node 'mean' \(AveragePool\).*ceil_mode"):
        webrnn.InferenceSession(graph).stream(carry="internal")
