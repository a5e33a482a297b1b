"""Pools over windows and planes, and normalizations by neighbours and planes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.backends import BACKENDS
from tests.onnx.models import floats, integers, model
from tests.plan.harness import check_graph, graph_of
from webrnn.ir import Node

POOLS = (
    ("n 3 9", {"kernel_shape": [3]}),
    ("n 3 9", {"kernel_shape": [2], "strides": [2], "pads": [1, 1]}),
    ("n 2 7 5", {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
    ("n 2 7 5", {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}),
    ("n 2 7 6", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 1, 0, 0]}),
    ("n 2 5 6 4", {"kernel_shape": [2, 3, 2], "strides": [2, 2, 1], "dilations": [2, 1, 2], "ceil_mode": 1}),
    ("n 2 t", {"kernel_shape": [3], "strides": [2], "auto_pad": "SAME_LOWER"}),
    ("n 2 t 4", {"kernel_shape": [2, 2], "strides": [2, 1], "pads": [1, 1, 0, 1]}),
    ("n 2 t", {"kernel_shape": [3], "strides": [4], "pads": [1, 2], "ceil_mode": 1}),
    ("n 2 3 t", {"kernel_shape": [2, 2], "pads": [2, 1, 2, 3]}),
    ("n 5 t 6", {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [0, 1, 1, 2]}),
    ("n 20 7 t", {"kernel_shape": [3, 2], "strides": [1, 2], "dilations": [2, 1]}),
    ("n 17 t", {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    ("n 2 3 2 3 4", {"kernel_shape": [2, 1, 2, 3], "pads": [1, 0, 0, 1, 0, 0, 1, 1]}),
)
SIZES = [{"n": 2, "t": 7}, {"n": 1, "t": 4}, {"n": 0, "t": 3}]


@pytest.mark.parametrize("p", [4095, 4096, 2**63 - 1])
def test_large_powers(p):
    x = np.float32([[[1, -1, 0.5, 2, 1, 0]]])
    with np.errstate(over="ignore"):
        check_graph(graph_of(lambda b, x: b.op("LpPool", x, kernel_shape=[2], p=p), "f 1 1 6"), [x])


@pytest.mark.parametrize(("shape", "attrs"), POOLS)
def test_pooling(shape, attrs):
    kinds = (
        ("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1}), ("LpPool", {}),
        ("LpPool", {"p": 1}), ("LpPool", {"p": 3}),
    )  # fmt: skip
    for op, more in kinds:
        check_graph(graph_of(lambda b, x: b.op(op, x, **attrs, **more), f"f {shape}"), sizes=SIZES)  # noqa: B023


def _with_indices(b, x, **attrs):
    y, indices = b.value("y"), b.value("indices")
    b.add(Node("MaxPool", [x], [y, indices], attrs))
    return y, indices


@pytest.mark.parametrize(("shape", "attrs"), POOLS)
@pytest.mark.parametrize("storage_order", [0, 1])
def test_indices_of_maxima(shape, attrs, storage_order):
    graph = graph_of(lambda b, x: _with_indices(b, x, **attrs, storage_order=storage_order), f"f {shape}")
    check_graph(graph, sizes=SIZES)


def test_the_first_of_equal_maxima_and_nan():
    graph = graph_of(lambda b, x: _with_indices(b, x, kernel_shape=[2, 3], pads=[0, 1, 0, 1]), "f 1 1 2 4")
    nan, inf = np.nan, np.inf
    for rows in ([[1, 1, 0, 1], [1, 2, 2, 1]], [[1, nan, 0, 1], [nan, 2, 2, 1]], [[-inf] * 4] * 2):
        check_graph(graph, [np.array(rows, np.float32).reshape(1, 1, 2, 4)])


@pytest.mark.parametrize("shape", ["n 3 5", "n 3 4 t", "n 2 3 2 4"])
def test_pools_of_planes(shape):
    for op, more in (
        ("GlobalAveragePool", {}),
        ("GlobalMaxPool", {}),
        ("GlobalLpPool", {}),
        ("GlobalLpPool", {"p": 3}),
    ):
        check_graph(graph_of(lambda b, x: b.op(op, x, **more), f"f {shape}"), sizes=SIZES)  # noqa: B023


@pytest.mark.parametrize("attrs", [{"size": 3}, {"size": 4, "beta": 0.6, "alpha": 0.5, "bias": 2.0}, {"size": 9}])
def test_local_response(attrs):
    check_graph(graph_of(lambda b, x: b.op("LRN", x, **attrs), "f n 5 t 2"), sizes=SIZES)


@pytest.mark.parametrize("axes", [[0, 2, 3], [1], [-1, 1]])
def test_mean_and_variance(axes):
    graph = graph_of(lambda b, x: b.op("MeanVarianceNormalization", x, axes=axes), "f n 3 4 t")
    check_graph(graph, sizes=SIZES[:2], tolerance=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_unpooling(backend):
    """The indices may count from the end; they and the stated shape are looked at while running."""
    node = helper.make_node("MaxUnpool", ["x", "i", "shape"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    inputs = [floats("x", ["n", 1, 2, 2]), integers("i", ["n", 1, 2, 2]), integers("shape", [4])]
    proto = model([node], inputs, [floats("y", None)])
    session = webrnn.InferenceSession(proto.SerializeToString(), backend=backend)
    x, places = (
        np.arange(1, 5, dtype=np.float32).reshape(1, 1, 2, 2),
        np.int64([5, 7, 13, -1]).reshape(1, 1, 2, 2),
    )
    for shape in ([1, 1, 4, 4], [1, 1, 5, 6]):
        (y,) = session.run(None, {"x": x, "i": places, "shape": np.array(shape, np.int64)})
        assert list(y.shape) == shape
        assert y[0, 0, :4, :4].reshape(-1)[[5, 7, 13, 15]].tolist() == [1, 2, 3, 4]
        assert y.sum() == 10
    for bad, shape in ((16, [1, 1, 4, 4]), (-17, [1, 1, 4, 4]), (0, [1, 1, 4, 3]), (0, [1, 1, -1, 4])):
        with pytest.raises(webrnn.ShapeError):
            session.run(None, {"x": x, "i": np.full_like(places, bad), "shape": np.array(shape, np.int64)})
    assert backend == "numpy" or "in numpy" not in session.report()
