"""Reductions over axes, ArgMax and ArgMin, running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from webrnn.errors import ShapeError

from .arrays import Array, int_list, normalize_axes, normalize_axis, single, widen
from .registry import op

Axes = tuple[int, ...]


def _register(
    name: str, reduce: Callable[[Array, Axes], Array], prepare: Callable[[Array], Array] | None = None
) -> None:
    """A reduction op: `reduce` keeps the reduced dimensions; `prepare` is what remains when no axis is reduced."""

    def reduction(data: Array, axes: Array | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Array:
        chosen = () if axes is None else normalize_axes(int_list(axes, "axes"), data.ndim)
        if not chosen:
            if noop_with_empty_axes:
                return prepare(data) if prepare else data
            chosen = tuple(range(data.ndim))
        reduced = np.asarray(reduce(widen(data), chosen)).astype(data.dtype, copy=False)
        return reduced if keepdims else reduced.squeeze(chosen)

    op(name)(reduction)


def _sum(x: Array, axes: Axes) -> Array:
    return np.sum(x, axis=axes, keepdims=True, dtype=x.dtype)


def _product(x: Array, axes: Axes) -> Array:
    return np.prod(x, axis=axes, keepdims=True, dtype=x.dtype)


def _mean(x: Array, axes: Axes) -> Array:
    count = int(np.prod([x.shape[axis] for axis in axes]))
    if x.dtype.kind in "iu":
        if count == 0:
            raise ShapeError("the mean of no integers is not defined")
        return np.trunc(np.sum(x, axis=axes, keepdims=True) / count)
    return _sum(x, axes) / x.dtype.type(count)


def _max(x: Array, axes: Axes) -> Array:
    return np.max(x, axis=axes, keepdims=True, initial=_extreme(x, -1))


def _min(x: Array, axes: Axes) -> Array:
    return np.min(x, axis=axes, keepdims=True, initial=_extreme(x, 1))


def _extreme(x: Array, sign: int) -> Any:
    """The neutral element of min (sign 1) and max (sign -1)."""
    if x.dtype.kind == "f":
        return sign * np.inf
    if x.dtype.kind == "b":
        return sign > 0
    info = np.iinfo(x.dtype)
    return info.max if sign > 0 else info.min


def _l2(x: Array, axes: Axes) -> Array:
    return np.sqrt(_sum(x * x, axes))


def _log_sum_exp(x: Array, axes: Axes) -> Array:
    wide = x if x.dtype.kind == "f" else x.astype(np.float64)
    top = _max(wide, axes)
    finite_top = np.where(np.isfinite(top), top, 0)
    return np.log(_sum(np.exp(wide - finite_top), axes)) + finite_top


_register("ReduceSum", _sum)
_register("ReduceProd", _product)
_register("ReduceMean", _mean)
_register("ReduceMax", _max)
_register("ReduceMin", _min)
_register("ReduceL1", lambda x, axes: _sum(np.abs(x), axes), np.abs)
_register("ReduceL2", _l2, np.abs)
_register("ReduceSumSquare", lambda x, axes: _sum(x * x, axes), np.square)
_register("ReduceLogSum", lambda x, axes: np.log(_sum(x, axes)), np.log)
_register("ReduceLogSumExp", _log_sum_exp)


@op("ArgMax")
def arg_max(data: Array, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    return _arg_extreme(np.argmax, data, axis, keepdims, select_last_index)


@op("ArgMin")
def arg_min(data: Array, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    return _arg_extreme(np.argmin, data, axis, keepdims, select_last_index)


def _arg_extreme(function: Callable[..., Any], data: Array, axis: int, keepdims: int, select_last: int) -> Array:
    axis = normalize_axis(axis, data.ndim)
    if select_last:
        found = data.shape[axis] - 1 - function(np.flip(data, axis), axis=axis, keepdims=bool(keepdims))
    else:
        found = function(data, axis=axis, keepdims=bool(keepdims))
    return np.asarray(found).astype(np.int64, copy=False)


@op("CumSum")
def cum_sum(x: Array, axis: Array, *, exclusive: int = 0, reverse: int = 0) -> Array:
    return _running(np.cumsum, 0, x, single(axis, "axis"), exclusive, reverse)


@op("CumProd")
def cum_prod(x: Array, axis: Array, *, exclusive: int = 0, reverse: int = 0) -> Array:
    return _running(np.cumprod, 1, x, single(axis, "axis"), exclusive, reverse)


def _running(function: Callable[..., Any], neutral: int, x: Array, axis: int, exclusive: int, reverse: int) -> Array:
    axis = normalize_axis(axis, x.ndim)
    if reverse:
        return np.flip(_running(function, neutral, np.flip(x, axis), axis, exclusive, 0), axis)
    total = function(widen(x), axis=axis, dtype=widen(x).dtype)
    if exclusive:
        first = np.full_like(total.take([0], axis), neutral) if x.shape[axis] else total
        total = np.concatenate([first, total.take(range(x.shape[axis] - 1), axis)], axis=axis)
    return total.astype(x.dtype, copy=False)
