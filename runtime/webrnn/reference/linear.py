"""Matrix products."""

from __future__ import annotations

import math

import numpy as np

from webrnn.errors import ModelError, ShapeError

from .arrays import Array, broadcast_shape, exact_integers, require_rank_at_least, require_shape, widen
from .registry import op
from .sizes import check_size


@op("MatMul")
def matmul(a: Array, b: Array) -> Array:
    _require_inner_dimension(a, b)
    return np.matmul(widen(a), widen(b)).astype(a.dtype, copy=False)


def _require_inner_dimension(a: Array, b: Array) -> None:
    require_rank_at_least(a, 1, "A")
    require_rank_at_least(b, 1, "B")
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise ShapeError(f"A {list(a.shape)} and B {list(b.shape)} differ in their inner dimension")
    batch = broadcast_shape(a.shape[:-2], b.shape[:-2])
    check_size((*batch, *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ())), a.dtype)


@op("Gemm")
def gemm(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    left, right = (a.T if transA else a), (b.T if transB else b)
    _require_inner_dimension(left, right)
    product = widen(left) @ widen(right)
    y = product if alpha == 1 else _scaled(product, alpha)
    if c is not None:
        if broadcast_shape(c.shape, y.shape) != y.shape:
            raise ShapeError(f"C {list(c.shape)} cannot be broadcast to {list(y.shape)}")
        if beta != 0:  # C is not looked at, even if it is not finite
            y = y + (widen(c) if beta == 1 else _scaled(widen(c), beta))
    return y.astype(a.dtype, copy=False)


def _scaled(x: Array, factor: float) -> Array:
    if x.dtype.kind == "f":
        return x * x.dtype.type(factor)
    return (x * factor).astype(x.dtype)


@op("Einsum")
def einsum(*tensors: Array, equation: str) -> Array:
    if not tensors:
        raise ModelError("at least one input is required")
    result = np.einsum(equation.replace(" ", ""), *(widen(x) for x in tensors), optimize=len(tensors) > 2)
    return np.asarray(result).astype(tensors[0].dtype, copy=False)


@op("MatMulInteger")
def matmul_integer(a: Array, b: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None) -> Array:
    return integer_product(a, b, a_zero_point, b_zero_point)


def integer_product(a: Array, b: Array, a_zero_point: Array | None, b_zero_point: Array | None) -> Array:
    """int32 product of (a - its zero point) and (b - its zero point).

    It is calculated in float64, in which products of 8-bit integers and their sums are exact: numpy has no fast
    integer product.
    """
    if a.dtype.itemsize != 1 or b.dtype.itemsize != 1:
        raise ModelError(f"the inputs must be 8-bit integers, not {a.dtype} and {b.dtype}")
    _require_inner_dimension(a, b)
    left, right = a.astype(np.float64), b.astype(np.float64)
    if a_zero_point is not None:
        left -= _zero_point_of_rows(a_zero_point, a)
    if b_zero_point is not None:
        right -= _zero_point_of_columns(b_zero_point, b)
    return exact_integers(np.matmul(left, right))


def _zero_point_of_rows(zero_point: Array, a: Array) -> Array:
    if zero_point.size == 1:
        return zero_point.reshape(())
    if zero_point.ndim == 1 and a.ndim > 1 and len(zero_point) == a.shape[-2]:
        return zero_point[:, None]
    if zero_point.ndim == a.ndim and zero_point.shape == (*a.shape[:-1], 1):
        return zero_point
    raise ShapeError(f"a zero point of shape {list(zero_point.shape)} does not fit A {list(a.shape)}")


def _zero_point_of_columns(zero_point: Array, b: Array) -> Array:
    if zero_point.size == 1:
        return zero_point.reshape(())
    if zero_point.ndim == 1 and b.ndim > 1 and len(zero_point) == b.shape[-1]:
        return zero_point
    if zero_point.ndim == b.ndim and zero_point.shape == (*b.shape[:-2], 1, b.shape[-1]):
        return zero_point
    raise ShapeError(f"a zero point of shape {list(zero_point.shape)} does not fit B {list(b.shape)}")


@op("Det")
def determinant(x: Array) -> Array:
    require_rank_at_least(x, 2, "X")
    require_shape(x, (*x.shape[:-1], x.shape[-2]), "X")
    matrices = x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:]).astype(np.float64)
    return np.array([_eliminated(matrix) for matrix in matrices]).reshape(x.shape[:-2]).astype(x.dtype)


def _eliminated(a: Array) -> float:
    """The determinant of a matrix, which is used up. The order is that of run_det in images.c, so that infinities and
    NaN come out alike."""
    det = 1.0
    for k in range(len(a)):
        size = np.abs(a[k:, k])
        pivot = k if np.isnan(size[0]) else k + int(np.argmax(np.where(np.isnan(size), -1, size)))
        a[[k, pivot]] = a[[pivot, k]]
        det *= a[k, k] if pivot == k else -a[k, k]
        if a[k, k] == 0:
            break
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k] / a[k, k], a[k, k + 1 :])
    return det
