"""Reductions, softmax and normalizations."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.harness import check_graph, graph_of, plan_of
from webrnn.ir import Node
from webrnn.plan.lowering import NotLowered

SUMS = ("ReduceSum", "ReduceSumSquare", "ReduceProd")
REDUCTIONS = (*SUMS, "ReduceMean", "ReduceMax", "ReduceMin")
AXES = ((0,), (1,), (2,), (-1,), (0, 1), (1, 2), (0, 2), (0, 1, 2), None)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reduce(op):
    for axes in AXES:
        for keepdims in (0, 1):

            def build(b, x):
                return b.op(op, x, None if axes is None else b.ints(*axes), keepdims=keepdims)  # noqa: B023

            check_graph(graph_of(build, "f 2 5 3"))
            check_graph(graph_of(lambda b, x: b.op("Tanh", build(b, b.op("Transpose", x))), "f 9 2 40"), tolerance=1e-4)


@pytest.mark.parametrize("op", SUMS)
def test_reduce_of_named_sizes(op):
    for axes in AXES:
        check_graph(graph_of(lambda b, x: b.op(op, x, None if axes is None else b.ints(*axes)), "f n t 3"))  # noqa: B023


def test_mean_of_named_sizes():
    check_graph(
        graph_of(lambda b, x: b.op("ReduceMean", x, b.ints(1)), "f n t"), sizes=[{"n": 2, "t": 3}, {"n": 0, "t": 1}]
    )


def test_reduce_of_nothing():
    for op in SUMS:
        check_graph(graph_of(lambda b, x: b.op(op, x, b.ints(1)), "f 2 0 3"))  # noqa: B023
    check_graph(graph_of(lambda b, x: b.op("ReduceMax", x, b.ints(1)), "f 0 2 3"))


def test_no_axes_may_mean_none():
    check_graph(graph_of(lambda b, x: b.op("ReduceSum", x, b.ints(), noop_with_empty_axes=1), "f n 3"))
    check_graph(graph_of(lambda b, x: b.op("ReduceSum", x, b.ints()), "f n 3"))


def test_reduce_of_rank_zero():
    check_graph(graph_of(lambda b, x: b.op("ReduceSum", x), "f"))


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(op):
    for shape in ("n 5", "7", "2 n 33", "n 1"):
        check_graph(graph_of(lambda b, x: b.op(op, x, axis=-1), f"f {shape}"))
    check_graph(graph_of(lambda b, x: b.op("Transpose", b.op(op, b.op("Transpose", x), axis=-1)), "f 5 n"))


def _norm(op, x, vectors, **attrs):
    def build(b, value):
        return b.op(op, value, *(b.constant(vector) for vector in vectors), **attrs)

    check_graph(graph_of(build, f"f {x}"), sizes=[{"n": 3, "t": 5}, {"n": 1, "t": 1}, {"n": 0, "t": 2}], tolerance=1e-4)
    check_graph(
        graph_of(lambda b, value: b.op("Tanh", build(b, b.op("Tanh", value))), f"f {x}"),
        sizes=[{"n": 3, "t": 5}, {"n": 1, "t": 1}],
        tolerance=1e-4,
    )


def vector(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 2, shape).astype(np.float32)


def test_layer_norm():
    _norm("LayerNormalization", "n 7", [vector(7), vector(7)])
    _norm("LayerNormalization", "2 n 70", [vector(70)], epsilon=0.1)
    _norm("LayerNormalization", "n 2 7", [vector(2, 7), vector(2, 7)], axis=1)


def test_instance_norm():
    _norm("InstanceNormalization", "n 3 7", [vector(3), vector(3)])
    _norm("InstanceNormalization", "n 3 t 2", [vector(3), vector(3)], epsilon=0.01)


def test_batch_norm():
    _norm("BatchNormalization", "n 3 7", [vector(3, seed=i) for i in range(4)])
    _norm("BatchNormalization", "n 3", [vector(3, seed=i) for i in range(4)])
    _norm("BatchNormalization", "n 3 t 2", [vector(3, seed=i) for i in range(4)])


def _mean_asked(b, x):
    y, mean = b.value("y"), b.value("mean")
    b.add(Node("LayerNormalization", [x, b.constant(vector(3))], [y, mean]))
    return y, mean


@pytest.mark.parametrize(
    ("build", "shape", "reason"),
    [
        (lambda b, x: b.op("ReduceMax", x, b.ints(0)), "f n", "may reduce nothing"),
        (lambda b, x: b.op("ReduceSum", x, b.ints(0)), "i 3", "not of float"),
        (lambda b, x: b.op("Softmax", x, axis=0), "f 2 3", "not the last"),
        (_mean_asked, "f 2 3", "mean or deviation"),
        (lambda b, x: b.op("LayerNormalization", x, b.constant(vector(1))), "f 2 3", "broadcast"),
    ],
)
def test_reasons_to_refuse(build, shape, reason):
    with pytest.raises(NotLowered, match=reason):
        plan_of(graph_of(build, shape))
