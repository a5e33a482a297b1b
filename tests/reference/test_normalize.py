from __future__ import annotations

import numpy as np
import pytest

from webrnn.checks import arrays
from webrnn.errors import ShapeError, UnsupportedOp

from .onnxruntime_oracle import check


def _random(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("spatial", [(), (5,), (4, 3), (2, 3, 2)])
def test_batch_normalization(spatial):
    x = _random(2, 3, *spatial)
    scale, bias, mean, var = _random(3), _random(3), _random(3), np.abs(_random(3)) + 0.1
    check("BatchNormalization", x, scale, bias, mean, var, epsilon=1e-3)


@pytest.mark.parametrize("spatial", [(5,), (4, 3)])
def test_instance_and_group_normalization(spatial):
    x = _random(2, 4, *spatial)
    check("InstanceNormalization", x, _random(4), _random(4), atol=1e-5)
    check("GroupNormalization", x, _random(4), _random(4), num_groups=2, atol=1e-5)


@pytest.mark.parametrize("axis", [-1, 1, 0, -2])
@pytest.mark.parametrize("with_bias", [False, True])
def test_layer_normalization(axis, with_bias):
    x = _random(2, 3, 4)
    rest = x.shape[axis:]
    check("LayerNormalization", x, _random(*rest), _random(*rest) if with_bias else None, axis=axis, n_outputs=3)


def test_the_others():
    x = _random(2, 6, 3, 4)
    for p in (1, 2):
        check("LpNormalization", x, axis=1, p=p)
    check("MeanVarianceNormalization", x, atol=1e-5)
    for size in (1, 3, 5):
        check("LRN", x, size=size, alpha=0.3, beta=0.6, bias=1.5)


def test_dropout_is_the_identity_and_refuses_to_train():
    x = _random(2, 3)
    check("Dropout", x, n_outputs=2)
    with pytest.raises(UnsupportedOp, match="Dropout"):
        arrays.call("Dropout", "", [x, np.float32(0.5), np.array(True)], {}, 1)


def test_wrong_parameter_shapes_raise():
    x = _random(2, 3, 4)
    with pytest.raises(ShapeError, match="scale"):
        arrays.call("BatchNormalization", "", [x, *[_random(4)] * 4], {})
    with pytest.raises(ShapeError, match="LayerNormalization"):
        arrays.call("LayerNormalization", "", [x, _random(5)], {})
    with pytest.raises(ShapeError, match="num_groups"):
        arrays.call("GroupNormalization", "", [x, _random(3), _random(3)], {"num_groups": 2})
