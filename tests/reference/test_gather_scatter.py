from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrnn.checks import arrays
from webrnn.errors import ShapeError

from .onnxruntime_oracle import check, ints


def _rng(seed):
    return np.random.default_rng(seed)


@given(st.integers(0, 10**6), st.integers(-3, 2), st.lists(st.integers(0, 3), max_size=2))
@settings(max_examples=40, deadline=None)
def test_gather(seed, axis, index_shape):
    data = _rng(seed).standard_normal((4, 3, 5)).astype(np.float32)
    length = data.shape[axis]
    indices = np.asarray(_rng(seed).integers(-length, length, index_shape), np.int32)
    check("Gather", data, indices, axis=axis)


@given(st.integers(0, 10**6), st.integers(-2, 1))
@settings(max_examples=40, deadline=None)
def test_gather_and_scatter_elements(seed, axis):
    rng = _rng(seed)
    data = rng.standard_normal((4, 5)).astype(np.float32)
    indices = rng.permuted(np.tile(np.arange(4), (3, 1)), axis=1)[:, :2] if axis % 2 else None
    if indices is None:
        indices = rng.permuted(np.tile(np.arange(4), (5, 1)), axis=1).T[:2]
    updates = rng.standard_normal(indices.shape).astype(np.float32)
    check("GatherElements", data, indices.astype(np.int64), axis=axis)
    for reduction in ("none", "add", "mul", "max", "min"):
        check("ScatterElements", data, indices - 4 * (axis == 0), updates, axis=axis, reduction=reduction)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
def test_scatter_with_repeated_indices(reduction):
    data, updates = np.ones((3, 3), np.float32), np.float32([[2, 3, 4]])
    check("ScatterElements", data, np.int64([[1, 1, 0]]), updates, axis=1, reduction=reduction)
    check("ScatterND", data, np.int64([[1], [1]]), np.float32([[2, 3, 4], [5, 6, 7]]), reduction=reduction)


@pytest.mark.parametrize(("index_shape", "batch_dims"), [((2, 2), 0), ((2, 4, 1), 1), ((2, 3), 0), ((2, 1), 1)])
def test_gather_nd(index_shape, batch_dims):
    data = _rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    check("GatherND", data, _rng(0).integers(-2, 2, index_shape), batch_dims=batch_dims)


def test_scatter_nd_of_slices():
    data = np.zeros((4, 2, 3), np.float32)
    check("ScatterND", data, np.int64([[0], [-1]]), np.ones((2, 2, 3), np.float32))


def test_compress_nonzero_onehot_topk_unique():
    x = _rng(3).integers(0, 4, (3, 4)).astype(np.float32)
    check("Compress", x, np.array([True, False, True]), axis=1)
    check("Compress", x, np.array([False, True]))
    check("NonZero", x)
    check("NonZero", np.float32(3).reshape(()))
    check("OneHot", ints(0, -1, 7), np.array(3, np.int64), np.float32([5, 9]), axis=0)
    for largest in (0, 1):
        check("TopK", x, ints(3), axis=1, largest=largest, n_outputs=2)
    for is_sorted in (0, 1):
        check("Unique", x, n_outputs=4, sorted=is_sorted)
        check("Unique", x, n_outputs=4, sorted=is_sorted, axis=0)


def test_inputs_are_not_written_to():
    data = np.zeros((3, 3), np.float32)
    arrays.call("ScatterND", "", [data, np.int64([[0, 0]]), np.float32([1])], {})
    assert not data.any()


@pytest.mark.parametrize(
    ("op_type", "inputs"),
    [
        ("Gather", (np.zeros(3), ints(3))),
        ("Gather", (np.zeros(3), ints(-4))),
        ("GatherElements", (np.zeros((2, 2)), np.int64([[0, 2]]))),
        ("GatherElements", (np.zeros((2, 2)), ints(0))),
        ("GatherND", (np.zeros((2, 2)), np.int64([[0, 2]]))),
        ("GatherND", (np.zeros((2, 2)), np.int64([[0, 1, 0]]))),
        ("ScatterElements", (np.zeros((2, 2)), np.int64([[5]]), np.zeros((1, 1)))),
        ("ScatterElements", (np.zeros((2, 2)), np.int64([[0]]), np.zeros((1, 2)))),
        ("ScatterND", (np.zeros((2, 2)), np.int64([[5]]), np.zeros((1, 2)))),
        ("ScatterND", (np.zeros((2, 2)), np.int64([[0]]), np.zeros((1, 3)))),
        ("TopK", (np.zeros(3), ints(4))),
    ],
)
def test_indices_out_of_range_raise(op_type, inputs):
    with pytest.raises(ShapeError, match=op_type):
        arrays.call(op_type, "", list(inputs), {})
