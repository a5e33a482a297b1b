"""Normalizations that are made of simpler ops."""

import numpy as np
import pytest

from tests.passes.differential import apply, ops
from tests.passes.expansions.harness import check_node, proto_of
from webrnn.onnx.reader import read_model


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_rms(axis):
    scale = floats(*(3, 4, 5)[axis:])
    check_node("RMSNormalization", floats(3, 4, 5), scale, axis=axis, epsilon=0.01)
    check_node("RMSNormalization", floats(3, 4, 5), scale, sizes=[["n", 4, 5], scale.shape] if axis else (), axis=axis)


@pytest.mark.parametrize("shape", [(2, 6, 5), (2, 6), (1, 6, 2, 3), (0, 6, 4)])
def test_groups(shape):
    operands = floats(*shape), floats(6, seed=1), floats(6, seed=2)
    check_node("GroupNormalization", *operands, num_groups=3)
    check_node("GroupNormalization", *operands, num_groups=6, sizes=[["n", 6, *shape[2:]], [6], [6]])


def test_mean_and_variance():
    check_node("MeanVarianceNormalization", floats(2, 3, 4, 5))
    check_node("MeanVarianceNormalization", floats(2, 3, 4), axes=[1, -1], sizes=[["n", 3, "t"]])


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_norms(p, axis):
    x = floats(3, 4, 2)
    x[1] = 0
    check_node("LpNormalization", x, p=p, axis=axis, sizes=[["a", "b", "c"]])


@pytest.mark.parametrize("shape", [(4, 3, 5), (6, 3), (2, 3, 2, 2)])
def test_batches_that_train(shape):
    vectors = [np.abs(floats(3, seed=seed)) for seed in range(4)]
    check_node("BatchNormalization", floats(*shape), *vectors, n_outputs=3, training_mode=1, momentum=0.7)


def test_dropout_of_nothing():
    y, mask = check_node("Dropout", floats(2, 3), n_outputs=2, sizes=[["n", 3]])
    assert (y == floats(2, 3)).all()
    assert mask.all()


def test_declines():
    graph = read_model(proto_of("BatchNormalization", [floats(2, 3), *[np.ones(3, np.float32)] * 4]))
    apply(graph, "infer_shapes", "expand_ops")
    assert ops(graph) == {"BatchNormalization": 1}
