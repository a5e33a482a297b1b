"""Linear interpolation of images of integers, to the bit as onnxruntime does it.

ONNX does not say how an interpolated integer is rounded (onnx/onnx issue 3390). onnxruntime computes in float32 and
cuts the fraction off; where channels come last, it computes 8-bit images with weights of ten bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import Array

_UNIT = 1 << 10


@dataclass(frozen=True)
class _Neighbours:
    """For each position along an axis the two elements around it, and their weights."""

    first: Array
    second: Array
    of_first: Array
    of_second: Array


def bilinear(x: Array, rows: Array, columns: Array) -> Array:
    """x (..., height, width) at all pairs of positions, which are float32."""
    return _cut(x, _neighbours(rows, x.shape[-2]), _neighbours(columns, x.shape[-1]), np.float32, 1)


def bilinear_with_ten_bits(x: Array, rows: Array, columns: Array) -> Array:
    """As `bilinear`, in fixed point."""
    down, right = (
        _Neighbours(n.first, n.second, *_fixed_point(n))
        for n in (_neighbours(rows, x.shape[-2]), _neighbours(columns, x.shape[-1]))
    )
    return _cut(x, down, right, np.int64, _UNIT * _UNIT)


def _cut(x: Array, down: _Neighbours, right: _Neighbours, kind: type, unit: int) -> Array:
    """The order of products and sums decides about the last bit."""

    def part(row: Array, row_weight: Array, column: Array, column_weight: Array) -> Array:
        return (column_weight * row_weight[:, None]) * x[..., row[:, None], column].astype(kind)

    total = part(down.first, down.of_first, right.first, right.of_first)
    total = total + part(down.first, down.of_first, right.second, right.of_second)
    total = total + part(down.second, down.of_second, right.first, right.of_first)
    total = total + part(down.second, down.of_second, right.second, right.of_second)
    return np.trunc(total / unit)


def _neighbours(positions: Array, length: int) -> _Neighbours:
    inside = positions.clip(0, length - 1).astype(np.float32)
    first = inside.astype(np.int64)
    second = np.minimum(first + 1, length - 1)
    half = np.where(first == second, np.float32(0.5), np.float32(0))
    return _Neighbours(
        first, second, second.astype(np.float32) - inside + half, inside - first.astype(np.float32) + half
    )


def _fixed_point(n: _Neighbours) -> tuple[Array, Array]:
    of_second = np.floor(n.of_second * _UNIT).astype(np.int64)
    return _UNIT - of_second, of_second
