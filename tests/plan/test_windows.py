"""Convolution and pooling."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.harness import check_graph, graph_of, plan_of
from webrnn.ir import Node
from webrnn.plan.lowering import NotLowered


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


CONVOLUTIONS = (
    ("n 3 9", (4, 3, 3), {}),
    ("n 3 9", (4, 3, 3), {"pads": [2, 1], "strides": [2]}),
    ("n 4 9", (6, 2, 3), {"group": 2, "dilations": [2]}),
    ("n 4 9", (4, 1, 3), {"group": 4, "auto_pad": "SAME_UPPER"}),
    ("n 4 9", (4, 4, 2), {"auto_pad": "SAME_LOWER", "strides": [2]}),
    ("n 4 9", (4, 4, 2), {"auto_pad": "VALID"}),
    ("n 2 7 5", (3, 2, 3, 2), {}),
    ("n 2 7 5", (3, 2, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2]}),
    ("n 2 30 1", (3, 2, 1, 1), {}),
    ("1 3 t", (4, 3, 3), {"pads": [1, 1]}),
    ("1 3 t", (4, 3, 3), {"pads": [2, 0], "strides": [2]}),
    ("1 3 t", (20, 3, 3), {"strides": [2]}),
    ("n 3 t", (20, 3, 4), {"strides": [3], "auto_pad": "VALID"}),
    ("n 3 t", (20, 3, 3), {"pads": [2, 1], "strides": [3], "dilations": [2]}),
)


@pytest.mark.parametrize(("shape", "weights", "attrs"), CONVOLUTIONS)
def test_convolution(shape, weights, attrs):
    w, bias = array(*weights), array(weights[0])
    sizes = [{"n": 2, "t": 9}, {"n": 1, "t": 5}, {"n": 3, "t": 40}, {"n": 0, "t": 4}]
    for operands in ([w], [w, bias]):
        graph = graph_of(lambda b, x: b.op("Conv", x, *(b.constant(o) for o in operands), **attrs), f"f {shape}")  # noqa: B023
        check_graph(graph, sizes=sizes)
    check_graph(
        graph_of(lambda b, x: b.op("Tanh", b.op("Conv", b.op("Tanh", x), b.constant(w), **attrs)), f"f {shape}"),
        sizes=sizes,
    )


def test_weights_that_are_an_input():
    check_graph(graph_of(lambda b, x, w: b.op("Conv", x, w), "f n 3 9", "f 4 3 3"))


def test_operands_with_gaps():
    graph = graph_of(
        lambda b, x: b.op(
            "Transpose", b.op("Conv", b.op("Transpose", x, perm=[0, 2, 1]), b.constant(array(4, 3, 3))), perm=[0, 2, 1]
        ),
        "f n 9 3",
    )
    check_graph(graph)


POOLS = (
    ("n 3 9", {"kernel_shape": [3]}),
    ("n 3 9", {"kernel_shape": [2], "strides": [2], "pads": [1, 1]}),
    ("n 2 7 5", {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
    ("n 2 7 5", {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}),
)


@pytest.mark.parametrize(("shape", "attrs"), POOLS)
def test_pooling(shape, attrs):
    for op, more in (("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1})):
        check_graph(graph_of(lambda b, x: b.op(op, x, **attrs, **more), f"f {shape}"))  # noqa: B023


def _indices(b, x):
    y, indices = b.value("y"), b.value("indices")
    b.add(Node("MaxPool", [x], [y, indices], {"kernel_shape": [2]}))
    return y, indices


@pytest.mark.parametrize(
    ("build", "shapes", "reason"),
    [
        (lambda b, x: b.op("MaxPool", x, kernel_shape=[2], ceil_mode=1), ["f 1 1 5"], "ceil_mode"),
        (_indices, ["f 1 1 5"], "indices"),
        (lambda b, x: b.op("Conv", x, b.constant(array(1, 1, 1, 1, 1))), ["f 1 1 5 5 5"], "one or two axes"),
        (lambda b, x, w: b.op("Conv", x, w), ["f 1 1 5", "f 1 1 n"], "kernel is not known|not known"),
        (lambda b, x: b.op("Conv", x, b.constant(array(1, 1, 3)), auto_pad="SAME_UPPER"), ["f 1 1 t"], "auto_pad"),
    ],
)
def test_reasons_to_refuse(build, shapes, reason):
    with pytest.raises(NotLowered, match=reason):
        plan_of(graph_of(build, *shapes))
