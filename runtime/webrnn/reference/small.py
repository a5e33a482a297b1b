"""Small weights: integers with a scale for each output, and products with them.

A product rounds each row of its other operand to 16-bit integers, by the largest magnitude in that row. The sum of the
products of integers is exact, whatever its order, and what comes behind it is two products and a sum of floats, each
rounded by itself. So all builds on all machines give the same bits, and a row gives the same with any other rows.

    range      the integers of a row of x are from -range to range
    row scale  largest magnitude of the row / range; 0 if it is below FEEBLE, NaN if it is not finite
    q          round(x * (range / largest magnitude)), halves to even
    y          float(sum(q * w)) * (row scale * scale of the output) + bias
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .arrays import Array
from .conv import kernel_of
from .windows import place_windows

FEEBLE = np.float32(2.0**-100)
"""Rows and weights that are all below this count as zeros: their scale could not be inverted."""
_LARGEST_SUM = 2**31 - 1

INT8, INT16 = "int8", "int16"
FORMS = (INT8, INT16)


class SmallMatrix(NamedTuple):
    weights: Array
    """int8 or int16 [k, n]"""
    scales: Array
    """float32 [n]"""
    range: int


def range_for(form: str, k: int) -> int:
    """Of the integers of a row with k terms: it depends on nothing else, so that products that are merged, cut or
    hoisted round their rows as before."""
    if form == INT8:
        return max(1, min(2**15 - 1, _LARGEST_SUM // (127 * max(k, 1))))
    return 2**13 - 1 if k <= 2**9 else 2**12 - 1 if k <= 2**11 else 2**11 - 1


def small_matrix(weights: Array, form: str) -> SmallMatrix:
    """float32 [k, n] as integers, each column with the finest scale with which no sum overflows.

    >>> small_matrix(np.float32([[1, 0], [-0.25, 0]]), "int8")
    SmallMatrix(weights=array([[127,   0],
           [-32,   0]], dtype=int8), scales=array([0.00787402, 0.        ], dtype=float32), range=32767)
    """
    k = weights.shape[0]
    range_ = range_for(form, k)
    magnitudes = np.abs(weights.astype(np.float64))
    peaks = magnitudes.max(axis=0, initial=0.0)
    peaks[peaks < FEEBLE] = 0.0
    totals = np.zeros_like(peaks)
    for row in magnitudes:  # one after the other: numpy's own sum depends on the machine
        totals += row
    most = np.iinfo(form).max
    room = _LARGEST_SUM // range_ - (k + 1) // 2 - 1
    with np.errstate(all="ignore"):
        finest = np.where(totals > 0, np.floor(room * peaks / totals), most)
    steps = np.clip(finest, 1, most)
    scales = (peaks / steps).astype(np.float32)
    rounded = _rounded(weights, scales, steps, form)
    if form == INT8:  # no sum overflows, whatever the weights are: range_for takes all of them for 127
        rounded = _with_kept_sums(rounded, weights, scales)
    return SmallMatrix(rounded, scales, range_)


def small_table(table: Array, form: str) -> tuple[Array, Array]:
    """float32 [rows, ...] as integers, and the scale of each row."""
    axes = tuple(range(1, table.ndim))
    peaks = np.abs(table.astype(np.float64)).max(axis=axes, initial=0.0, keepdims=True)
    peaks[peaks < FEEBLE] = 0.0
    most = np.iinfo(form).max
    scales = (peaks / most).astype(np.float32)
    return _rounded(table, scales, np.full_like(peaks, most), form), scales


def _rounded(weights: Array, scales: Array, steps: Array, form: str) -> Array:
    divisors = np.where(scales > 0, scales, 1).astype(np.float64)
    rounded = np.clip(np.rint(weights / divisors), -steps, steps)
    return np.where(scales > 0, rounded, 0).astype(form)


def _with_kept_sums(rounded: Array, weights: Array, scales: Array) -> Array:
    """The sum of each column is kept to within half a step, by rounding the other way those few weights that were
    nearest to the middle of two steps. Most operands have a mean, as what comes out of a Relu has, and then errors of
    weights would add up."""
    most = np.iinfo(rounded.dtype).max
    errors = rounded - weights / np.where(scales > 0, scales, 1).astype(np.float64)
    errors[:, scales == 0] = 0
    totals = np.zeros(errors.shape[1])
    for row in errors:  # as above
        totals += row
    counts = np.rint(totals)
    signs, turned = np.sign(counts), rounded.T.astype(np.int16)
    nearest = np.argsort((-signs * errors).T, axis=1, kind="stable")
    is_turned = np.arange(len(weights)) < np.abs(counts)[:, None]
    columns, places = np.nonzero(is_turned)
    turned[columns, nearest[columns, places]] -= signs[columns].astype(np.int16)
    return np.clip(turned.T, -most, most).astype(rounded.dtype)


def small_product(rows: Array, weights: Array, scales: Array, range_: int) -> Array:
    """float32 [..., k] times integers [k, n]: the rule above without its bias."""
    largest = np.abs(rows).max(axis=-1, keepdims=True, initial=np.float32(0))
    is_there = (largest >= FEEBLE) & np.isfinite(largest)
    divisor = np.where(is_there, largest, np.float32(1))
    factor = np.where(is_there, np.float32(range_) / divisor, np.float32(0))
    row_scale = np.where(is_there, divisor / np.float32(range_), np.float32(0))
    row_scale = np.where(largest < np.float32(np.inf), row_scale, np.float32(np.nan))
    with np.errstate(all="ignore"):
        rounded = np.rint(np.where(is_there, rows, np.float32(0)) * factor)
        sums = np.matmul(rounded.astype(np.float64), weights.astype(np.float64))  # exact: below 2 ** 53
        return sums.astype(np.float32) * (row_scale * scales)


def small_linear(x: Array, weights: Array, scales: Array, bias: Array | None, range_: int) -> Array:
    y = small_product(x, weights, scales, range_)
    return y if bias is None else y + bias


def small_conv(x: Array, weights: Array, scales: Array, bias: Array | None, attrs: dict[str, object]) -> Array:
    """A convolution whose windows are the rows: x [batch, channels, ...], weights [filters, depth, ...]."""
    geometry = {name: attrs[name] for name in ("strides", "dilations", "pads", "auto_pad") if name in attrs}
    windows = place_windows(x, kernel_of(x, weights, attrs.get("kernel_shape")), **geometry)  # type: ignore[arg-type]
    group = attrs.get("group", 1)
    assert isinstance(group, int)
    filters, depth = weights.shape[:2]
    n, rank = filters // group, windows.rank
    view = windows.view(windows.pad(x, 0)).reshape(x.shape[0], group, depth, *windows.output, *windows.kernel)
    terms = depth * int(np.prod(windows.kernel))
    rows = np.moveaxis(view, 2, 2 + rank).reshape(x.shape[0], group, *windows.output, terms)
    parts = []
    for g in range(group):
        own = slice(g * n, (g + 1) * n)
        kernels = weights[own].reshape(n, -1).T
        parts.append(small_product(rows[:, g], kernels, scales[own], attrs["range"]))  # type: ignore[arg-type]
    y = np.concatenate(parts, axis=-1)
    return np.moveaxis(y if bias is None else y + bias, -1, 1)
