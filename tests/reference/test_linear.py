from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrnn.checks import arrays
from webrnn.errors import Error

from .onnxruntime_oracle import check


def _random(seed, shape, dtype=np.float32):
    return (np.random.default_rng(seed).standard_normal(shape) * 3).astype(dtype)


@pytest.mark.parametrize(
    ("a", "b"),
    [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 1, 2, 3), (4, 3, 2)), ((0, 3), (3, 2))],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_matmul(a, b, dtype):
    check("MatMul", _random(0, a, dtype), _random(1, b, dtype), atol=1e-5)


def test_matmul_over_an_empty_inner_dimension_is_zero():
    (y,) = arrays.call("MatMul", "", [np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)], {})
    assert y.tolist() == [[0, 0, 0]] * 2


@given(st.booleans(), st.booleans(), st.sampled_from([None, (), (4,), (1, 4), (3, 1), (3, 4)]), st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_gemm(trans_a, trans_b, c_shape, seed):
    a, b = _random(seed, (2, 3) if trans_a else (3, 2)), _random(seed + 1, (4, 2) if trans_b else (2, 4))
    c = None if c_shape is None else np.asarray(_random(seed + 2, c_shape), np.float32)
    check("Gemm", a, b, c, transA=int(trans_a), transB=int(trans_b), alpha=0.5, beta=1.5, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij, bjk -> bik", [(2, 2, 3), (2, 3, 4)]),
        ("ii->i", [(3, 3)]),
        ("...ij,...jk", [(2, 2, 3), (2, 3, 4)]),
        ("i,i->", [(3,), (3,)]),
    ],
)
def test_einsum(equation, shapes):
    check("Einsum", *(_random(i, shape) for i, shape in enumerate(shapes)), equation=equation, atol=1e-5)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("per_column", [False, True])
def test_matmul_integer(signed, per_column):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (5, 7), np.uint8)
    # Small weights: without VNNI onnxruntime saturates the sum of two products of full range.
    b = rng.integers(-60, 60, (7, 3)).astype(np.int8) if signed else rng.integers(0, 60, (7, 3)).astype(np.uint8)
    zero_point = np.array([1, 2, 3] if per_column else 2, b.dtype)
    check("MatMulInteger", a, b, np.uint8(130), zero_point)


def test_half_floats_accumulate_in_float32():
    ones = np.ones((1, 5000), np.float16)
    (y,) = arrays.call("MatMul", "", [ones, ones.T], {})
    assert y.dtype == np.float16
    assert y == 5000


@pytest.mark.parametrize(
    ("op_type", "shapes", "attrs"),
    [
        ("MatMul", [(2, 3), (2, 3)], {}),
        ("MatMul", [(), (3,)], {}),
        ("MatMul", [(2, 2, 3), (3, 3, 2)], {}),
        ("Gemm", [(2, 3), (2, 3)], {}),
        ("Gemm", [(2, 3, 1), (2, 3)], {}),
        ("Gemm", [(2, 3), (3, 2), (3,)], {}),
        ("Einsum", [(2, 3), (2, 3)], {"equation": "ij,jk->ik"}),
        ("Einsum", [(2, 3)], {"equation": "i!->"}),
        ("Einsum", [(2, 3)], {}),
    ],
)
def test_mistakes_raise(op_type, shapes, attrs):
    with pytest.raises(Error, match=op_type):
        arrays.call(op_type, "", [np.zeros(shape, np.float32) for shape in shapes], attrs)
