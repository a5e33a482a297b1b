from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrnn.checks import arrays
from webrnn.errors import ShapeError

from .onnxruntime_oracle import check


@st.composite
def pools(draw):
    rank = draw(st.integers(1, 2))
    kernel = draw(st.lists(st.integers(2, 4), min_size=rank, max_size=rank))
    return {
        "spatial": draw(st.lists(st.integers(5, 10), min_size=rank, max_size=rank)),
        "attrs": {
            "kernel_shape": kernel,
            "strides": draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)),
            "pads": draw(st.lists(st.integers(0, min(kernel) - 1), min_size=2 * rank, max_size=2 * rank)),
            "ceil_mode": draw(st.integers(0, 1)),
        },
        "seed": draw(st.integers(0, 1000)),
    }


def _input(pool, dtype=np.float32):
    shape = (2, 3, *pool["spatial"])
    return (np.random.default_rng(pool["seed"]).standard_normal(shape) * 50).astype(dtype)


@given(pools(), st.integers(0, 1), st.booleans())
@settings(max_examples=60, deadline=None)
def test_max_pool_with_indices(pool, storage_order, dilated):
    if dilated:
        pool["attrs"]["dilations"] = [2] * len(pool["spatial"])
        pool["spatial"] = [length + 4 for length in pool["spatial"]]
    check("MaxPool", _input(pool), n_outputs=2, storage_order=storage_order, **pool["attrs"])


@given(pools())
@settings(max_examples=20, deadline=None)
def test_max_pool_of_bytes(pool):
    check("MaxPool", _input(pool, np.int8), **pool["attrs"])


@given(pools(), st.integers(0, 1))
@settings(max_examples=60, deadline=None)
def test_average_pool(pool, count_include_pad):
    check("AveragePool", _input(pool), count_include_pad=count_include_pad, atol=1e-4, **pool["attrs"])


@given(pools(), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_lp_pool(pool, p):
    pool["attrs"]["ceil_mode"] = 0
    check("LpPool", _input(pool), p=p, rtol=1e-4, **pool["attrs"])


@pytest.mark.parametrize("op_type", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pools(op_type):
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    check(op_type, x)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
def test_auto_pad(op_type, auto_pad):
    x = np.random.default_rng(0).standard_normal((1, 2, 7, 6)).astype(np.float32)
    check(op_type, x, kernel_shape=[3, 2], strides=[2, 2], auto_pad=auto_pad)


def test_a_window_that_does_not_fit_raises():
    with pytest.raises(ShapeError, match="MaxPool"):
        arrays.call("MaxPool", "", [np.zeros((1, 1, 3), np.float32)], {"kernel_shape": [5]})
