"""Pooling over windows and over all spatial axes."""

from __future__ import annotations

import numpy as np

from webrnn.errors import ModelError, ShapeError

from .arrays import Array, int_list, mean_of, require_rank_at_least, widen
from .gather_scatter import checked_indices
from .registry import op
from .sizes import check_size
from .windows import Windows, per_axis, place_windows, split_pads


@op("MaxPool")
def max_pool(
    x: Array,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    storage_order: int = 0,
    strides: list[int] | None = None,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    windows = place_windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    view = windows.view(windows.pad(x, lowest))
    y = view.max(axis=_kernel_axes(windows))
    if n_outputs == 1:
        return (y,)
    return y, _max_positions(x, view, y, windows, storage_order)


def _max_positions(x: Array, view: Array, y: Array, windows: Windows, storage_order: int) -> Array:
    """The position of each maximum, or of the first NaN, in the flattened input; order 1 counts the first spatial axis
    fastest."""
    pixel = np.arange(np.prod(x.shape[2:], dtype=np.int64))
    pixel = pixel.reshape(x.shape[2:], order="F") if storage_order else pixel.reshape(x.shape[2:])
    places = windows.view(windows.pad(pixel, -1))
    is_maximum = ((view == y.reshape(*y.shape, *(1,) * windows.rank)) | (view != view)) & (places >= 0)
    taps = int(np.prod(windows.kernel))
    first = np.argmax(is_maximum.reshape(*y.shape, taps), axis=-1)
    chosen = np.take_along_axis(
        np.broadcast_to(places.reshape(*windows.output, taps), (*y.shape, taps)), first[..., None], axis=-1
    )[..., 0]
    plane = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *(1,) * windows.rank)
    return plane * pixel.size + chosen


def _kernel_axes(windows: Windows) -> tuple[int, ...]:
    return tuple(range(-windows.rank, 0))


@op("AveragePool")
def average_pool(
    x: Array,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Array:
    """The elements that ceil_mode adds beyond the pads are never counted."""
    windows = place_windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    axes = _kernel_axes(windows)
    total = windows.view(windows.pad(widen(x), 0)).sum(axis=axes)
    counted = np.ones(x.shape[2:], total.dtype)
    if count_include_pad:
        counted = np.pad(counted, list(zip(windows.before, windows.after, strict=True)), constant_values=1)
        zero = (0,) * windows.rank
        windows = Windows(windows.kernel, windows.strides, windows.dilations, zero, zero, windows.output)
    count = windows.view(windows.pad(counted, 0)).sum(axis=axes)
    return (total / count).astype(x.dtype, copy=False)


@op("LpPool")
def lp_pool(
    x: Array,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: list[int] | None = None,
    p: int = 2,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Array:
    windows = place_windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    powers = windows.view(windows.pad(_power(x, p), 0))
    return (powers.sum(axis=_kernel_axes(windows)) ** (1 / p)).astype(x.dtype, copy=False)


def _power(x: Array, p: int) -> Array:
    if p < 1:
        raise ModelError(f"it must be positive, not {p}", attribute="p")
    return np.abs(widen(x)) ** p


@op("GlobalAveragePool")
def global_average_pool(x: Array) -> Array:
    return mean_of(widen(x), _spatial_axes(x)).astype(x.dtype, copy=False)


@op("GlobalMaxPool")
def global_max_pool(x: Array) -> Array:
    return x.max(axis=_spatial_axes(x), keepdims=True)


@op("GlobalLpPool")
def global_lp_pool(x: Array, *, p: int = 2) -> Array:
    powers = _power(x, p).sum(axis=_spatial_axes(x), keepdims=True)
    return (powers ** (1 / p)).astype(x.dtype, copy=False)


def _spatial_axes(x: Array) -> tuple[int, ...]:
    require_rank_at_least(x, 3, "the input")
    return tuple(range(2, x.ndim))


@op("MaxUnpool")
def max_unpool(
    x: Array,
    indices: Array,
    output_shape: Array | None = None,
    *,
    kernel_shape: list[int],
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Array:
    """The indices count in the shape that the attributes imply, also when a larger output_shape is given."""
    rank = x.ndim - 2
    kernel, steps = per_axis(kernel_shape, 1, rank, "kernel_shape"), per_axis(strides, 1, rank, "strides")
    before, after = split_pads(pads, rank)
    implied = [(d - 1) * s + k - b - a for d, s, k, b, a in zip(x.shape[2:], steps, kernel, before, after, strict=True)]
    y = np.zeros(check_size((*x.shape[:2], *implied), x.dtype), x.dtype)
    y.reshape(-1)[checked_indices(indices, y.size, "I")] = x
    if output_shape is None:
        return y
    shape = check_size(int_list(output_shape, "output_shape"), x.dtype)
    if len(shape) != x.ndim or any(a < b for a, b in zip(shape, y.shape, strict=True)):
        raise ShapeError(f"output_shape {list(shape)} is smaller than {list(y.shape)}")
    larger = np.zeros(shape, x.dtype)
    larger[tuple(slice(dim) for dim in y.shape)] = y
    return larger
