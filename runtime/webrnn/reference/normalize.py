"""Normalizations. Half floats are normalized in float32."""

from __future__ import annotations

import math

import numpy as np

from webrnn.errors import ModelError, ShapeError, UnsupportedOp

from .arrays import (
    Array,
    mean_of,
    normalize_axes,
    normalize_axis,
    require_shape,
    single,
    variance_of,
    widen,
)
from .dtypes import FLOAT
from .registry import op


@op("BatchNormalization")
def batch_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    var: Array,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> tuple[Array, ...]:
    channels = x.shape[1] if x.ndim > 1 else 1
    for name, value in (("scale", scale), ("B", bias), ("input_mean", mean), ("input_var", var)):
        require_shape(value, (channels,), name)
    if not training_mode:
        y = _scale_channels(_standardize_channels(widen(x), mean, var, epsilon), scale, bias)
        return (y.astype(x.dtype, copy=False),)
    axes = tuple(i for i in range(x.ndim) if i != 1)
    batch_mean, batch_var = (measure(widen(x), axes).reshape(channels) for measure in (mean_of, variance_of))
    y = _scale_channels(_standardize_channels(widen(x), batch_mean, batch_var, epsilon), scale, bias)
    running_mean = mean * momentum + batch_mean * (1 - momentum)
    running_var = var * momentum + batch_var * (1 - momentum)
    return (
        y.astype(x.dtype, copy=False),
        running_mean.astype(mean.dtype, copy=False),
        running_var.astype(var.dtype, copy=False),
    )


def _per_channel(values: Array, x: Array) -> Array:
    return values.reshape(-1, *(1,) * (x.ndim - 2)) if x.ndim > 1 else values


def _standardize_channels(x: Array, mean: Array, var: Array, epsilon: float) -> Array:
    return (x - _per_channel(mean, x)) / np.sqrt(_per_channel(var, x) + epsilon)


def _scale_channels(x: Array, scale: Array, bias: Array) -> Array:
    return x * _per_channel(scale, x) + _per_channel(bias, x)


def _standardize(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    return (x - mean_of(x, axes)) / np.sqrt(variance_of(x, axes) + epsilon)


@op("InstanceNormalization")
def instance_normalization(x: Array, scale: Array, bias: Array, *, epsilon: float = 1e-5) -> Array:
    y = _scale_channels(_standardize(widen(x), tuple(range(2, x.ndim)), epsilon), scale, bias)
    return y.astype(x.dtype, copy=False)


@op("GroupNormalization")
def group_normalization(
    x: Array, scale: Array, bias: Array, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = FLOAT
) -> Array:
    _require_float_stash(stash_type)
    batch, channels = x.shape[:2]
    if num_groups < 1 or channels % num_groups:
        raise ShapeError(f"{channels} channels cannot be divided into {num_groups} groups", attribute="num_groups")
    groups = widen(x).reshape(batch, num_groups, math.prod(x.shape[1:]) // num_groups)
    y = _scale_channels(_standardize(groups, (2,), epsilon).reshape(x.shape), scale, bias)
    return y.astype(x.dtype, copy=False)


@op("LayerNormalization")
def layer_normalization(
    x: Array, scale: Array, bias: Array | None = None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = FLOAT
) -> tuple[Array, Array, Array]:
    _require_float_stash(stash_type)
    axes = tuple(range(normalize_axis(axis, x.ndim), x.ndim))
    wide = widen(x)
    middle, inverse = mean_of(wide, axes), 1 / np.sqrt(variance_of(wide, axes) + epsilon)
    y = ((wide - middle) * inverse).astype(x.dtype, copy=False) * scale
    if bias is not None:
        y = y + bias
    return y.astype(x.dtype, copy=False), middle.astype(np.float32), inverse.astype(np.float32)


@op("RMSNormalization")
def rms_normalization(
    x: Array, scale: Array, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = FLOAT
) -> Array:
    _require_float_stash(stash_type)
    axes = tuple(range(normalize_axis(axis, x.ndim), x.ndim))
    wide = widen(x)
    normalized = wide / np.sqrt(mean_of(wide * wide, axes) + epsilon)
    y = normalized.astype(x.dtype, copy=False) * scale
    return y.astype(scale.dtype, copy=False)


def _require_float_stash(stash_type: int) -> None:
    if stash_type != FLOAT:
        raise UnsupportedOp(f"{stash_type} is not float32 (1)", attribute="stash_type")


@op("MeanVarianceNormalization")
def mean_variance_normalization(x: Array, *, axes: tuple[int, ...] | list[int] = (0, 2, 3)) -> Array:
    chosen = normalize_axes(axes, x.ndim)
    wide = widen(x)
    return ((wide - mean_of(wide, chosen)) / (np.sqrt(variance_of(wide, chosen)) + 1e-9)).astype(x.dtype, copy=False)


@op("LpNormalization")
def lp_normalization(x: Array, *, axis: int = -1, p: int = 2) -> Array:
    """A slice whose norm is 0 stays 0."""
    axis = normalize_axis(axis, x.ndim)
    if p not in (1, 2):
        raise UnsupportedOp(f"{p} is neither 1 nor 2", attribute="p")
    wide = widen(x)
    norm = np.sum(np.abs(wide) ** p, axis=axis, keepdims=True) ** (1 / p)
    return np.where(norm == 0, 0, wide / norm).astype(x.dtype, copy=False)


@op("LRN")
def local_response_normalization(
    x: Array, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Array:
    if size < 1:
        raise ModelError(f"it must be positive, not {size}", attribute="size")
    wide, channels = widen(x), x.shape[1]
    square_sum = np.zeros_like(wide)
    for channel in range(channels):
        first, last = max(0, channel - (size - 1) // 2), min(channels, channel + math.ceil((size - 1) / 2) + 1)
        square_sum[:, channel] = np.sum(wide[:, first:last] ** 2, axis=1)
    return (wide / (bias + alpha / size * square_sum) ** beta).astype(x.dtype, copy=False)


@op("Dropout")
def dropout(
    x: Array, ratio: Array | None = None, training_mode: Array | None = None, *, seed: int | None = None
) -> tuple[Array, Array]:
    """The identity, unless it trains; then the random mask would differ from any other implementation's."""
    drops = ratio is None or single(ratio, "ratio") != 0
    if training_mode is not None and single(training_mode, "training_mode") and drops:
        raise UnsupportedOp("training_mode drops random elements, which is not supported")
    return x, np.ones(x.shape, np.bool_)
