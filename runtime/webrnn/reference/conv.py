"""Convolutions. X is (batch, channels, spatial...), W is (out channels, channels / group, kernel...)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from webrnn.errors import ShapeError, UnsupportedOp

from .arrays import Array, Index, exact_integers, require_rank, widen
from .registry import op
from .sizes import check_size
from .windows import Windows, per_axis, place_windows, split_pads


@op("Conv")
def conv(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Array:
    windows = place_windows(x, kernel_of(x, w, kernel_shape), strides, dilations, pads, auto_pad)
    y = convolve(widen(x), widen(w), windows, group)
    return _add_bias(y, b, w.shape[0]).astype(x.dtype, copy=False)


def kernel_of(x: Array, w: Array, kernel_shape: Sequence[int] | None) -> tuple[int, ...]:
    require_rank(w, x.ndim, "W")
    if kernel_shape is not None and tuple(kernel_shape) != w.shape[2:]:
        raise ShapeError(f"{list(kernel_shape)} contradicts W of shape {list(w.shape)}", attribute="kernel_shape")
    return w.shape[2:]


def convolve(x: Array, w: Array, windows: Windows, group: int = 1) -> Array:
    """One matrix product per group, of the gathered windows and the kernels."""
    batch, channels = x.shape[:2]
    filters, depth = w.shape[:2]
    if group < 1 or channels != depth * group or filters % group:
        raise ShapeError(f"X {list(x.shape)} and W {list(w.shape)} do not fit with group={group}")
    rank = windows.rank
    view = windows.view(windows.pad(x, 0))
    pixels, taps = int(np.prod(windows.output)), depth * int(np.prod(windows.kernel))
    check_size((batch, channels, pixels, *windows.kernel), x.dtype)
    grouped = view.reshape(batch, group, depth, *windows.output, *windows.kernel)
    columns = np.moveaxis(grouped, 2, 2 + rank).reshape(batch, group, pixels, taps)
    kernels = w.reshape(group, filters // group, taps)
    y = kernels @ columns.swapaxes(-1, -2)
    return y.reshape(batch, filters, *windows.output)


def _add_bias(y: Array, b: Array | None, filters: int) -> Array:
    if b is None:
        return y
    if b.shape != (filters,):
        raise ShapeError(f"B must have the shape [{filters}], it is {list(b.shape)}")
    return y + b.reshape(-1, *(1,) * (y.ndim - 2))


@op("ConvTranspose")
def conv_transpose(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    output_padding: list[int] | None = None,
    output_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Array:
    """W is (channels, out channels / group, kernel...)."""
    kernel = kernel_of(x, w, kernel_shape)
    rank = len(kernel)
    if rank < 1 or group < 1 or x.shape[1] != w.shape[0] or w.shape[0] % group:
        raise ShapeError(f"X {list(x.shape)} and W {list(w.shape)} do not fit with group={group}")
    steps, spread = per_axis(strides, 1, rank, "strides"), per_axis(dilations, 1, rank, "dilations")
    extra = tuple(output_padding or (0,) * rank)
    if len(extra) != rank or min(extra) < 0:
        raise ShapeError(f"{list(extra)} for {rank} spatial axes", attribute="output_padding")
    full = [(d - 1) * s + (k - 1) * g + 1 for d, s, k, g in zip(x.shape[2:], steps, kernel, spread, strict=True)]
    uncropped = [f + e for f, e in zip(full, extra, strict=True)]
    before, output = _crop(uncropped, x.shape[2:], steps, pads, auto_pad, output_shape)
    y = _spread_kernels(widen(x), widen(w), group, steps, spread, full)
    cropped = np.zeros(check_size((*y.shape[:2], *output), y.dtype), y.dtype)
    source: Index = (...,)
    target: Index = (...,)
    for start, length, size in zip(before, full, output, strict=True):
        stop = min(start + size, length)
        source += (slice(start, stop),)
        target += (slice(0, max(stop - start, 0)),)
    cropped[target] = y[source]
    return _add_bias(cropped, b, y.shape[1]).astype(x.dtype, copy=False)


def _crop(
    uncropped: Sequence[int],
    spatial: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int] | None,
    auto_pad: str,
    output_shape: Sequence[int] | None,
) -> tuple[list[int], list[int]]:
    """How much is cut off at the start of each axis, and the length that remains."""
    rank = len(uncropped)
    if auto_pad not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise UnsupportedOp(f"{auto_pad!r} is not one of NOTSET, SAME_UPPER, SAME_LOWER, VALID", attribute="auto_pad")
    if output_shape is None and not auto_pad.startswith("SAME"):
        before, after = split_pads(pads, rank) if auto_pad == "NOTSET" else ((0,) * rank, (0,) * rank)
        output = [u - b - a for u, b, a in zip(uncropped, before, after, strict=True)]
        return list(before), output
    if output_shape is None:
        output = [d * s for d, s in zip(spatial, strides, strict=True)]
    else:
        output = [int(size) for size in output_shape[-rank:]]
        if len(output) != rank or min(output) < 0:
            raise ShapeError(f"{list(output_shape)} for {rank} spatial axes", attribute="output_shape")
    total = [max(u - o, 0) for u, o in zip(uncropped, output, strict=True)]
    return [t // 2 if auto_pad == "SAME_UPPER" else t - t // 2 for t in total], output


def _spread_kernels(
    x: Array, w: Array, group: int, strides: Sequence[int], dilations: Sequence[int], full: Sequence[int]
) -> Array:
    """Add each input pixel times the kernel at the pixel's place; one matrix product for each kernel position."""
    batch, channels, *spatial = x.shape
    depth, filters = channels // group, w.shape[1]
    pixels = x.reshape(batch, group, depth, math.prod(spatial))
    y = np.zeros(check_size((batch, group, filters, *full), x.dtype), x.dtype)
    for position in product(*(range(k) for k in w.shape[2:])):
        tap: Index = (slice(None), slice(None), *position)
        taps = w[tap].reshape(group, depth, filters)
        places: Index = (
            ...,
            *(
                slice(p * g, p * g + (d - 1) * s + 1 if d else p * g, s)
                for p, g, d, s in zip(position, dilations, spatial, strides, strict=True)
            ),
        )
        y[places] += (taps.swapaxes(-1, -2) @ pixels).reshape(batch, group, filters, *spatial)
    return y.reshape(batch, group * filters, *full)


@op("ConvInteger")
def conv_integer(
    x: Array,
    w: Array,
    x_zero_point: Array | None = None,
    w_zero_point: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Array:
    windows = place_windows(x, kernel_of(x, w, kernel_shape), strides, dilations, pads, auto_pad)
    centred = subtract_zero_point(x, x_zero_point, "x_zero_point")
    kernels = subtract_zero_point(w, w_zero_point, "w_zero_point", per_row=True)
    return exact_integers(convolve(centred, kernels, windows, group))


def subtract_zero_point(x: Array, zero_point: Array | None, name: str, per_row: bool = False) -> Array:
    """x - zero point in float64, in which products of 8- and 16-bit integers and their sums are exact."""
    wide = x.astype(np.float64)
    if zero_point is None:
        return wide
    if zero_point.size != 1:
        if not per_row or zero_point.shape != x.shape[:1]:
            raise ShapeError(f"{name} of shape {list(zero_point.shape)} does not fit {list(x.shape)}")
        zero_point = zero_point.reshape(-1, *(1,) * (x.ndim - 1))
    return wide - zero_point.reshape(zero_point.shape if per_row and zero_point.size > 1 else ()).astype(np.float64)
