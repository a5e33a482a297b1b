"""Resize: interpolation is separable, so each axis is resized on its own by a table of source indices and weights.

Lengths and positions are computed in float32, the type of the scales, as onnxruntime and ONNX's shape inference do:
10 elements by 1.9 are 19, although the float32 next to 1.9 is a little smaller than 1.9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.errors import ModelError, ShapeError, UnsupportedOp

from . import integer_resize
from .arrays import FLOOR_OR_CEIL, Array, int_list, normalize_axes, whole_numbers
from .registry import op
from .sizes import check_size, check_steps

_TIE = np.float32(2.0**-21)
"""Positions that differ by less than this part of them differ by rounding only."""


@dataclass(frozen=True)
class _Method:
    mode: str
    nearest_mode: str
    coordinates: str
    cubic_a: float
    exclude_outside: bool
    antialias: bool
    extrapolation_value: float


@op("Resize")
def resize(
    x: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    *,
    antialias: int = 0,
    axes: list[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Array:
    chosen = list(normalize_axes(axes, x.ndim)) if axes else list(range(x.ndim))
    factors, lengths = _target(x, chosen, scales, sizes, keep_aspect_ratio_policy)
    crops = _crops(roi, len(chosen), coordinate_transformation_mode)
    output = list(x.shape)
    for axis, length in zip(chosen, lengths, strict=True):
        output[axis] = length
    check_size(output, np.float64)
    check_steps(x.shape, output, sorted(chosen, reverse=True))
    if 0 in output:
        return np.zeros(output, x.dtype)
    method = _Method(
        mode,
        nearest_mode,
        coordinate_transformation_mode,
        cubic_coeff_a,
        bool(exclude_outside),
        bool(antialias),
        extrapolation_value,
    )
    if x.dtype.kind in "iu" and mode == "linear" and not antialias and x.size:
        image = _integer_image(x, chosen, factors, lengths, crops, method)
        if image is not None:
            return image
    result = x if mode == "nearest" else x.astype(np.float64)
    # The last axis comes first: where integers are rounded in between, as in onnxruntime.
    for axis, factor, length, crop in sorted(zip(chosen, factors, lengths, crops, strict=True), reverse=True):
        unchanged = factor == 1 and length == x.shape[axis] and crop in (None, (0.0, 1.0))
        if not unchanged:
            result = _resize_axis(result, axis, factor, length, crop, method)
            if antialias and x.dtype.kind in "iu":
                result = _fitted(np.trunc(result + np.copysign(0.5, result)), x.dtype)
    if result.dtype == x.dtype:
        return result
    return _fitted(np.trunc(result), x.dtype) if x.dtype.kind in "iu" else result.astype(x.dtype)


def _integer_image(
    x: Array,
    axes: list[int],
    factors: list[float],
    lengths: list[int],
    crops: list[tuple[float, float] | None],
    method: _Method,
) -> Array | None:
    """The result if two axes beside each other are resized, as those of an image are."""
    resized = {axis: i for i, axis in enumerate(axes) if factors[i] != 1 or lengths[i] != x.shape[axis]}
    last = next((end for end in (x.ndim - 1, x.ndim - 2) if end >= 1 and resized.keys() <= {end - 1, end}), None)
    if last is None or method.coordinates == "tf_crop_and_resize":
        return None
    positions = []
    for axis in (last - 1, last):
        i = resized.get(axis)
        positions.append(
            np.arange(x.shape[axis], dtype=np.float32)
            if i is None
            else _source_positions(x.shape[axis], factors[i], lengths[i], crops[i], method.coordinates)
        )
    if last == x.ndim - 1:
        return integer_resize.bilinear(x, *positions).astype(x.dtype)
    planes = np.moveaxis(x, -1, -3)
    bits = integer_resize.bilinear_with_ten_bits if x.dtype.itemsize == 1 else integer_resize.bilinear
    return np.moveaxis(bits(planes, *positions), -3, -1).astype(x.dtype)


def _fitted(x: Array, dtype: np.dtype[Any]) -> Array:
    info = np.iinfo(dtype)
    return np.clip(x, info.min, info.max).astype(dtype)


def scaled_length(length: int, factor: float) -> int:
    """The length of an axis after scaling.

    >>> scaled_length(10, 1.9)
    19
    """
    return int(np.float32(length) * np.float32(factor))


def _target(
    x: Array, axes: list[int], scales: Array | None, sizes: Array | None, policy: str
) -> tuple[list[float], list[int]]:
    """The factor and the length of each resized axis. An empty `scales` counts as absent."""
    has_scales = scales is not None and scales.size > 0
    has_sizes = sizes is not None and sizes.size > 0
    if has_scales == has_sizes:
        raise ModelError("exactly one of scales and sizes is required")
    if has_scales and scales is not None:
        factors = [float(factor) for factor in scales.reshape(-1)]
        if len(factors) != len(axes) or not all(math.isfinite(factor) and factor > 0 for factor in factors):
            raise ShapeError(f"scales {factors} do not fit {len(axes)} axes")
        return factors, [scaled_length(x.shape[axis], factor) for axis, factor in zip(axes, factors, strict=True)]
    assert sizes is not None
    lengths = int_list(sizes, "sizes")
    if len(lengths) != len(axes) or any(x.shape[axis] == 0 for axis in axes) or min(lengths, default=1) < 0:
        raise ShapeError(f"sizes {lengths} do not fit an input of shape {list(x.shape)}")
    factors = [length / x.shape[axis] for axis, length in zip(axes, lengths, strict=True)]
    if policy == "stretch":
        return factors, lengths
    if policy not in ("not_larger", "not_smaller"):
        raise UnsupportedOp(f"{policy!r} is not supported", attribute="keep_aspect_ratio_policy")
    common = min(factors) if policy == "not_larger" else max(factors)
    return [common] * len(axes), [int(common * x.shape[axis] + 0.5) for axis in axes]


def _crops(roi: Array | None, count: int, coordinates: str) -> list[tuple[float, float] | None]:
    if coordinates != "tf_crop_and_resize":
        return [None] * count
    if roi is None or roi.size != 2 * count:
        raise ShapeError("tf_crop_and_resize needs a roi with the start and end of each axis")
    values = roi.reshape(2, count).astype(np.float64)
    return [(float(start), float(end)) for start, end in values.T]


def _resize_axis(
    x: Array, axis: int, factor: float, length: int, crop: tuple[float, float] | None, method: _Method
) -> Array:
    width = x.shape[axis]
    if width == 0 and length:
        raise ShapeError("an empty axis cannot be enlarged")
    source = _source_positions(width, factor, length, crop, method.coordinates)
    if method.mode == "nearest":
        result = x.take(_nearest(source, method.nearest_mode, factor).clip(0, width - 1), axis=axis)
    else:
        taps, weights = _taps(source, factor, method)
        if method.exclude_outside:
            weights = np.where((taps < 0) | (taps >= width), 0, weights)
            weights = weights / weights.sum(axis=1, keepdims=True)
        gathered = x.take(taps.clip(0, width - 1), axis=axis).astype(np.float64, copy=False)
        result = (gathered * weights.reshape(*weights.shape, *(1,) * (x.ndim - axis - 1))).sum(axis=axis + 1)
    if crop is not None:
        outside = ((source < 0) | (source > width - 1)).reshape(-1, *(1,) * (x.ndim - axis - 1))
        result = np.where(outside, method.extrapolation_value, result).astype(x.dtype)
    return result


def _source_positions(
    width: int, scale: float, length: int, crop: tuple[float, float] | None, coordinates: str
) -> Array:
    """Where each output element lies in the input."""
    y, factor = np.arange(length, dtype=np.float32), np.float32(scale)
    exact_length = _exact_length(width, factor)
    if coordinates == "half_pixel" or (coordinates == "pytorch_half_pixel" and length > 1):
        return (y + 0.5) / factor - 0.5
    if coordinates == "pytorch_half_pixel":
        return np.zeros(length, np.float32)
    if coordinates == "asymmetric":
        return y / factor
    if coordinates == "align_corners":
        return y * 0 if exact_length == 1 else y * (width - 1) / (exact_length - 1)
    if coordinates == "half_pixel_symmetric":
        offset = width / 2 * (1 - length / exact_length)
        return offset + (y + 0.5) / factor - 0.5
    if coordinates == "tf_half_pixel_for_nn":
        return (y + 0.5) / factor
    if coordinates == "tf_crop_and_resize" and crop is not None:
        start, end = crop
        if length == 1:
            return np.full(length, (start + end) * (width - 1) / 2, np.float32)
        return start * (width - 1) + y * (end - start) * (width - 1) / (length - 1)
    raise UnsupportedOp(f"{coordinates!r} is not supported", attribute="coordinate_transformation_mode")


def _exact_length(width: int, factor: np.float32) -> float:
    """The output width, which may be fractional; a factor that came from a size gives this size back."""
    exact = float(np.float32(width) * factor)
    return float(round(exact)) if math.isclose(exact, round(exact), rel_tol=1e-6) else exact


def _nearest(source: Array, nearest_mode: str, factor: float) -> Array:
    if nearest_mode == FLOOR_OR_CEIL:
        nearest_mode = "floor" if factor >= 1 else "ceil"
    half = np.float32(0.5) + _TIE * np.maximum(np.abs(source), 1)  # what rounding made of a tie is still a tie
    if nearest_mode == "round_prefer_floor":
        rounded = np.ceil(source - half)
    elif nearest_mode == "round_prefer_ceil":
        rounded = np.floor(source + half)
    elif nearest_mode == "floor":
        rounded = np.floor(source)
    elif nearest_mode == "ceil":
        rounded = np.ceil(source)
    else:
        raise UnsupportedOp(f"{nearest_mode!r} is not supported", attribute="nearest_mode")
    return whole_numbers(rounded)


def _taps(source: Array, factor: float, method: _Method) -> tuple[Array, Array]:
    """For each output element the source indices it reads (they may lie outside) and their weights."""
    if method.mode not in ("linear", "cubic"):
        raise UnsupportedOp(f"{method.mode!r} is not one of nearest, linear, cubic", attribute="mode")
    reach = 1 if method.mode == "linear" else 2
    shrink = min(factor, 1.0) if method.antialias else 1.0
    first = math.floor(-reach / shrink) + 1
    base = whole_numbers(np.floor(source))
    check_size((len(source), 2 - 2 * first), np.float64)
    taps = base[:, None] + np.arange(first, 2 - first)
    distance = np.abs(taps - source[:, None]) * shrink
    weights = np.clip(1 - distance, 0, None) if method.mode == "linear" else _cubic(distance, method.cubic_a)
    if method.antialias:
        weights = weights / weights.sum(axis=1, keepdims=True)
    return taps, weights


def _cubic(distance: Array, a: float) -> Array:
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    return np.where(distance <= 1, near, np.where(distance >= 2, 0, far))
