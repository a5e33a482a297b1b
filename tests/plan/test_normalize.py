"""Normalizations that have instructions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.harness import check_graph, graph_of
from webrnn.ir import Node


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


def _with_statistics(b, x, axis, n_outputs):
    outputs = [b.value(f"y{i}") for i in range(n_outputs)]
    b.add(Node("LayerNormalization", [x, b.constant(vector(*(2, 7)[axis - 1 :]))], outputs, {"axis": axis}))
    return outputs


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("n_outputs", [2, 3])
def test_statistics_of_layers(axis, n_outputs):
    graph = graph_of(lambda b, x: _with_statistics(b, x, axis, n_outputs), "f n 2 7")
    check_graph(graph, sizes=[{"n": 3}, {"n": 0}])


@pytest.mark.parametrize("shapes", [[(1,)], [(7,), (3, 1, 1)], [(3, 2, 7), (1, 2, 7)], [(1, 1, 7), (1,)]])
def test_scales_that_are_repeated(shapes):
    for axis in (1, 2):
        _norm("LayerNormalization", "3 2 7", [vector(*shape, seed=i) for i, shape in enumerate(shapes)], axis=axis)


def test_batches_of_one_axis():
    _norm("BatchNormalization", "5", [vector(1, seed=i) for i in range(4)])
