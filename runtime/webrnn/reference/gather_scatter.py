"""Reading and writing elements by index."""

from __future__ import annotations

import numpy as np

from webrnn.errors import ModelError, ShapeError, UnsupportedOp

from .arrays import Array, normalize_axis, require_rank, require_rank_at_least
from .registry import op
from .sizes import check_size


def checked_indices(indices: Array, length: int | Array, name: str = "indices") -> Array:
    """Indices counted from the front, or ShapeError if one is out of range."""
    if indices.dtype.kind not in "iu":
        raise ModelError(f"{name} must be integers, not {indices.dtype}")
    outside = (indices < -length) | (indices >= length)
    if np.any(outside):
        bad = indices[outside].reshape(-1)[0]
        raise ShapeError(f"{name} hold {bad}, out of range for {np.asarray(length).reshape(-1).tolist()} elements")
    return np.where(indices < 0, indices + length, indices)


@op("Gather", any_type=True)
def gather(data: Array, indices: Array, *, axis: int = 0) -> Array:
    axis = normalize_axis(axis, data.ndim)
    check_size((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]), data.dtype)
    return np.take(data, checked_indices(indices, data.shape[axis]), axis=axis)


@op("GatherElements", any_type=True)
def gather_elements(data: Array, indices: Array, *, axis: int = 0) -> Array:
    return data[_element_index(data, indices, axis)]


@op("GatherND", any_type=True)
def gather_nd(data: Array, indices: Array, *, batch_dims: int = 0) -> Array:
    if not 0 <= batch_dims < min(data.ndim, indices.ndim):
        raise ShapeError(f"{batch_dims} is too many for the inputs", attribute="batch_dims")
    if data.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ShapeError(f"data {list(data.shape)} and indices {list(indices.shape)} differ in their batch dimensions")
    batch = np.indices(indices.shape[:batch_dims]).reshape(
        batch_dims, *indices.shape[:batch_dims], *_ones(indices, batch_dims)
    )
    index = _tuple_index(data.shape[batch_dims:], indices)
    check_size((*indices.shape[:-1], *data.shape[batch_dims + len(index) :]), data.dtype)
    return data[(*batch, *index)]


def _ones(indices: Array, batch_dims: int) -> tuple[int, ...]:
    return (1,) * (indices.ndim - 1 - batch_dims)


def _tuple_index(shape: tuple[int, ...], indices: Array) -> tuple[Array, ...]:
    """One index array for each of the leading dimensions that the last axis of `indices` names."""
    depth = indices.shape[-1]
    if depth > len(shape):
        raise ShapeError(f"indices of shape {list(indices.shape)} are too deep for {len(shape)} dimensions")
    return tuple(checked_indices(indices[..., i], shape[i]) for i in range(depth))


def _element_index(data: Array, indices: Array, axis: int) -> tuple[Array, ...]:
    """For each element of `indices` its own position, with the index in the place of `axis`."""
    require_rank_at_least(data, 1, "data")
    require_rank(indices, data.ndim, "indices")
    axis = normalize_axis(axis, data.ndim)
    for i in range(data.ndim):
        if i != axis and indices.shape[i] > data.shape[i]:
            raise ShapeError(f"indices of shape {list(indices.shape)} exceed data of shape {list(data.shape)}")
    position: list[Array] = list(np.indices(indices.shape, sparse=True))
    position[axis] = checked_indices(indices, data.shape[axis])
    return tuple(position)


_COMBINE: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter(data: Array, index: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    result = data.copy()
    if reduction == "none":
        result[index] = updates
    elif reduction in _COMBINE and data.dtype.kind in "fiub":
        _COMBINE[reduction].at(result, index, updates)
    else:
        raise UnsupportedOp(f"{reduction!r} of {data.dtype} is not supported", attribute="reduction")
    return result


@op("ScatterElements", any_type=True)
def scatter_elements(data: Array, indices: Array, updates: Array, *, axis: int = 0, reduction: str = "none") -> Array:
    if updates.shape != indices.shape:
        raise ShapeError(f"updates {list(updates.shape)} and indices {list(indices.shape)} differ in shape")
    return _scatter(data, _element_index(data, indices, axis), updates, reduction)


@op("ScatterND", any_type=True)
def scatter_nd(data: Array, indices: Array, updates: Array, *, reduction: str = "none") -> Array:
    index = _tuple_index(data.shape, indices)
    expected = indices.shape[:-1] + data.shape[indices.shape[-1] :]
    if updates.shape != expected:
        raise ShapeError(f"updates must have the shape {list(expected)}, it is {list(updates.shape)}")
    return _scatter(data, index, updates, reduction)


@op("TensorScatter", any_type=True)
def tensor_scatter(
    past_cache: Array, update: Array, write_indices: Array | None = None, *, axis: int = -2, mode: str = "linear"
) -> Array:
    """Write `update` into each batch row of the cache, from the row's write index on."""
    axis = normalize_axis(axis, past_cache.ndim)
    if axis == 0:
        raise ShapeError("it must not be the batch dimension", attribute="axis")
    if any(a != b for i, (a, b) in enumerate(zip(past_cache.shape, update.shape, strict=True)) if i != axis):
        raise ShapeError(f"update {list(update.shape)} does not fit the cache {list(past_cache.shape)}")
    batch, length, capacity = update.shape[0], update.shape[axis], past_cache.shape[axis]
    start = np.zeros(batch, np.int64) if write_indices is None else write_indices
    if start.shape != (batch,):
        raise ShapeError(f"write_indices must have the shape [{batch}], it is {list(start.shape)}")
    target = start[:, None] + np.arange(length)
    if mode == "circular":
        target %= max(capacity, 1)
    elif mode != "linear":
        raise UnsupportedOp(f"{mode!r} is neither linear nor circular", attribute="mode")
    result = past_cache.copy()
    rows = np.moveaxis(result, axis, 1)
    rows[np.arange(batch)[:, None], checked_indices(target, capacity, "write_indices")] = np.moveaxis(update, axis, 1)
    return result


@op("Compress", any_type=True)
def compress(x: Array, condition: Array, *, axis: int | None = None) -> Array:
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = normalize_axis(axis, x.ndim)
    chosen = np.flatnonzero(condition[: x.shape[axis]])
    return np.take(x, chosen, axis=axis)


@op("NonZero", any_type=True)
def non_zero(x: Array) -> Array:
    from .narrow import decode, narrow_type  # few models have such types

    x = decode(x) if narrow_type(x.dtype) else x
    return np.array(np.nonzero(np.atleast_1d(x)), np.int64).reshape(max(x.ndim, 1), -1)
