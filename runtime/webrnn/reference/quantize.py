"""Quantization: integers (or narrow floats) with a scale and a zero point."""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import ModelError, ShapeError, UnsupportedOp

from . import narrow
from .arrays import Array, normalize_axis, single
from .cast import convert
from .conv import conv_integer
from .dtypes import computing_dtype, numpy_dtype
from .linear import integer_product
from .registry import op


def _values(x: Array) -> Array:
    """x as numbers that numpy can calculate with."""
    return narrow.decode(x) if narrow.narrow_type(x.dtype) else x


def integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    layout = narrow.narrow_type(dtype)
    if layout is not None and layout.is_integer:
        half = 1 << (layout.bits - 1)
        return (-half, half - 1) if layout.signed else (0, 2 * half - 1)
    if dtype.kind not in "iu" or dtype.itemsize > 2:
        raise UnsupportedOp(f"{dtype} is not a quantized type")
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _spread(parameter: Array, x: Array, axis: int, block_size: int, name: str) -> Array:
    """A scale or zero point, broadcastable to x: one value, one for each slice of the axis, or one for each block."""
    if parameter.size == 1 and parameter.ndim <= 1 and not block_size:
        return parameter.reshape(())
    axis = normalize_axis(axis, x.ndim)
    length = x.shape[axis]
    if block_size == 0:
        if parameter.shape != (length,):
            raise ShapeError(f"{name} of shape {list(parameter.shape)} does not fit axis {axis} of {list(x.shape)}")
        return parameter.reshape(-1, *(1,) * (x.ndim - 1 - axis))
    expected = tuple(-(-d // block_size) if i == axis else d for i, d in enumerate(x.shape))
    if block_size < 0 or parameter.shape != expected:
        raise ShapeError(
            f"{name} of shape {list(parameter.shape)} does not fit blocks of {block_size} of {list(x.shape)}"
        )
    return np.repeat(parameter, block_size, axis=axis).take(range(length), axis=axis)


@op("QuantizeLinear", any_type=True)
def quantize_linear(
    x: Array,
    scale: Array,
    zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Array:
    """round(x / scale) + zero point, saturated; the quotient is rounded to `precision`, or to the scale's type."""
    target = numpy_dtype(output_dtype, "output_dtype") if output_dtype else np.dtype(np.uint8)
    if zero_point is not None:
        if output_dtype and zero_point.dtype != target:
            raise ModelError(f"{target} contradicts the zero point's {zero_point.dtype}", attribute="output_dtype")
        target = zero_point.dtype
    divide_in = computing_dtype(precision, "precision") if precision else scale.dtype
    divisor = _spread(_values(scale), x, axis, block_size, "y_scale")
    if narrow.narrow_type(divide_in):
        quotient = narrow.decode(convert(_values(x) / divisor, divide_in))
    else:
        quotient = _values(x).astype(divide_in) / divisor.astype(divide_in)
    offset = None if zero_point is None else _spread(_values(zero_point), x, axis, block_size, "y_zero_point")
    layout = narrow.narrow_type(target)
    if layout is not None and not layout.is_integer:
        if offset is not None and np.any(offset):
            quotient = quotient + offset.astype(quotient.dtype)
        return convert(quotient, target, bool(saturate))
    return round_and_saturate(quotient, offset, target)


def round_and_saturate(quotient: Array, zero_point: Array | None, target: np.dtype[Any]) -> Array:
    """Half to even, then the zero point, then the limits of the integer type. NaN becomes the smallest value: ONNX
    does not say so, but onnxruntime and ONNX's reference do it.
    """
    low, high = integer_range(target)
    rounded = np.rint(quotient.astype(np.float64))
    if zero_point is not None:
        rounded = rounded + zero_point.astype(np.float64)
    whole = np.clip(np.where(np.isnan(rounded), low, rounded), low, high)
    return convert(whole.astype(np.int32), target)


@op("DequantizeLinear", any_type=True)
def dequantize_linear(
    x: Array,
    scale: Array,
    zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Array:
    target = numpy_dtype(output_dtype, "output_dtype") if output_dtype else scale.dtype
    values = _values(x)
    is_integer = values.dtype.kind in "iu"
    centred = values.astype(np.int64 if is_integer else np.float32)
    if zero_point is not None:
        if zero_point.dtype != x.dtype:
            raise ModelError(f"x is {x.dtype}, its zero point {zero_point.dtype}")
        offset = _spread(_values(zero_point), x, axis, block_size, "x_zero_point")
        centred = centred - offset.astype(centred.dtype)
    factor = _spread(_values(scale), x, axis, block_size, "x_scale")
    product_type = np.float64 if target == np.float64 else np.float32
    return convert(centred.astype(product_type) * factor.astype(product_type), target)


@op("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Array) -> tuple[Array, Array, Array]:
    if x.dtype != np.float32:
        raise ModelError(f"the input must be float32, not {x.dtype}")
    scale, zero_point = dynamic_range(x)
    return round_and_saturate(x / scale, zero_point, np.dtype(np.uint8)), scale, zero_point


def dynamic_range(x: Array) -> tuple[Array, Array]:
    """The uint8 scale and zero point that cover all of x and 0."""
    low = np.minimum(np.float32(0), x.min(initial=0))
    high = np.maximum(np.float32(0), x.max(initial=0))
    scale = np.float32(1) if low == high else np.float32((high - low) / np.float32(255))
    zero_point = np.rint(np.clip(-low / scale, 0, 255)).astype(np.uint8)
    return np.asarray(scale), np.asarray(zero_point)


@op("QLinearMatMul")
def qlinear_matmul(
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
) -> Array:
    product = integer_product(a, b, a_zero_point, b_zero_point)
    rows = a_scale.reshape(-1, 1) if a_scale.ndim == 1 and a_scale.size > 1 else a_scale
    factor = rows.astype(np.float32) * b_scale.astype(np.float32) / y_scale.astype(np.float32)
    return round_and_saturate(product.astype(np.float32) * factor, y_zero_point, y_zero_point.dtype)


@op("QLinearConv")
def qlinear_conv(
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Array:
    total = conv_integer(
        x,
        w,
        x_zero_point,
        w_zero_point,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    per_filter = (-1, *(1,) * (x.ndim - 2))
    if b is not None:
        total = total + b.reshape(per_filter)
    factor = single(x_scale, "x_scale") * w_scale.astype(np.float32) / single(y_scale, "y_scale")
    if factor.size > 1:
        factor = factor.reshape(per_filter)
    scaled = total.astype(np.float32) * factor.astype(np.float32)
    return round_and_saturate(scaled, y_zero_point.reshape(()), y_zero_point.dtype)
