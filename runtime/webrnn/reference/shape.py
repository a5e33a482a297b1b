"""Ops that rearrange a tensor without looking at its values."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np

from webrnn.errors import ModelError, ShapeError, UnsupportedOp

from .arrays import (
    Array,
    broadcast_shape,
    int_list,
    normalize_axes,
    normalize_axis,
)
from .registry import op
from .sizes import check_size


@op("Identity", any_type=True, may_be_none=(0,))
def identity(x: Array | list[Array] | None) -> Array | list[Array] | None:
    return x


@op("Reshape", any_type=True)
def reshape(x: Array, shape: Array, *, allowzero: int = 0) -> Array:
    dims = int_list(shape, "shape")
    if allowzero and 0 in dims and -1 in dims:
        raise ShapeError(f"shape {dims} has both 0 and -1, with allowzero")
    copied = [] if allowzero else [i for i, dim in enumerate(dims) if dim == 0]
    for i in copied:
        if i >= x.ndim:
            raise ShapeError(f"shape {dims} copies dimension {i} of an input of shape {list(x.shape)}")
        dims[i] = x.shape[i]
    if dims.count(-1) > 1 or any(dim < -1 for dim in dims):
        raise ShapeError(f"shape {dims} is not a shape")
    if -1 in dims and any(
        dims[i] == 0 for i in copied
    ):  # of an empty tensor: -1 is what the axes that are not copied hold
        rest = prod(size for i, size in enumerate(x.shape) if i not in copied)
        others = prod(dim for i, dim in enumerate(dims) if i not in copied and dim != -1)
        if others and rest % others == 0:
            dims[dims.index(-1)] = rest // others
    try:
        return x.reshape(dims)
    except ValueError:
        raise ShapeError(f"an input of shape {list(x.shape)} cannot be reshaped to {dims}") from None


@op("Flatten", any_type=True)
def flatten(x: Array, *, axis: int = 1) -> Array:
    if not -x.ndim <= axis <= x.ndim:
        raise ShapeError(f"axis {axis} is outside a tensor of rank {x.ndim}")
    axis = axis + x.ndim if axis < 0 else axis
    rows = int(np.prod(x.shape[:axis], dtype=np.int64))
    columns = int(np.prod(x.shape[axis:], dtype=np.int64))
    return x.reshape(rows, columns)


@op("Squeeze", any_type=True)
def squeeze(x: Array, axes: Array | None = None) -> Array:
    """No axes, left out or an empty list, are all axes of one element."""
    if axes is None or axes.size == 0:
        return x.squeeze()
    chosen = normalize_axes(int_list(axes, "axes"), x.ndim)
    for axis in chosen:
        if x.shape[axis] != 1:
            raise ShapeError(f"axis {axis} of an input of shape {list(x.shape)} is not 1")
    return x.squeeze(chosen)


@op("Unsqueeze", any_type=True)
def unsqueeze(x: Array, axes: Array) -> Array:
    values = int_list(axes, "axes")
    check_size((1,) * (x.ndim + len(values)), np.uint8)
    return np.expand_dims(x, normalize_axes(values, x.ndim + len(values)))


@op("Transpose", any_type=True)
def transpose(x: Array, *, perm: list[int] | None = None) -> Array:
    if perm is not None and sorted(perm) != list(range(x.ndim)):
        raise ShapeError(f"{perm} is not a permutation of the {x.ndim} axes", attribute="perm")
    return x.transpose(perm)


@op("Expand", any_type=True)
def expand(x: Array, shape: Array) -> Array:
    target = check_size(broadcast_shape(x.shape, int_list(shape, "shape")), x.dtype)
    return np.broadcast_to(x, target).copy()


@op("Tile", any_type=True)
def tile(x: Array, repeats: Array) -> Array:
    counts = int_list(repeats, "repeats")
    if len(counts) != x.ndim:
        raise ShapeError(f"{len(counts)} repeats for an input of rank {x.ndim}")
    check_size(counts, np.uint8)
    check_size([dim * count for dim, count in zip(x.shape, counts, strict=True)], x.dtype)
    return np.tile(x, counts)


@op("Concat", any_type=True)
def concat(*tensors: Array, axis: int) -> Array:
    if not tensors:
        raise ModelError("at least one input is required")
    first = tensors[0]
    axis = normalize_axis(axis, first.ndim)
    for x in tensors:
        if x.ndim != first.ndim or any(
            a != b for i, (a, b) in enumerate(zip(x.shape, first.shape, strict=True)) if i != axis
        ):
            raise ShapeError(f"{list(first.shape)} and {list(x.shape)} cannot be joined on axis {axis}")
    total = sum(x.shape[axis] for x in tensors)
    check_size([total if i == axis else dim for i, dim in enumerate(first.shape)], first.dtype)
    return np.concatenate(tensors, axis=axis)


@op("Split", any_type=True)
def split(
    x: Array, sizes: Array | None = None, *, axis: int = 0, num_outputs: int | None = None, n_outputs: int = 1
) -> tuple[Array, ...]:
    axis = normalize_axis(axis, x.ndim)
    if sizes is not None:
        lengths = int_list(sizes, "split")
        if num_outputs is not None:
            raise ModelError("both split and num_outputs are given")
        if len(lengths) != n_outputs:
            raise ShapeError(f"{len(lengths)} split sizes for {n_outputs} outputs")
        if sum(lengths) != x.shape[axis] or min(lengths, default=0) < 0:
            raise ShapeError(f"split {lengths} does not add up to axis {axis} of an input of shape {list(x.shape)}")
    else:
        parts = n_outputs if num_outputs is None else num_outputs
        if parts < 1 or parts != n_outputs:
            raise ModelError(f"it is {parts}, the node has {n_outputs} outputs", attribute="num_outputs")
        lengths = equal_parts(x.shape[axis], parts)
    return tuple(split_axis(x, lengths, axis))


def equal_parts(length: int, parts: int) -> list[int]:
    """The lengths of `parts` pieces, of which the last may be smaller.

    >>> equal_parts(7, 3)
    [3, 3, 1]
    """
    size = -(-length // parts)
    lengths = [max(0, min(size, length - i * size)) for i in range(parts)]
    if parts * size - length > size:
        raise ShapeError(f"{length} elements cannot be split into {parts} parts")
    return lengths


def split_axis(x: Array, lengths: list[int], axis: int) -> list[Array]:
    ends = np.cumsum([0, *lengths])
    return [x[(slice(None),) * axis + (slice(start, end),)] for start, end in pairwise(ends.tolist())]


@op("Slice", any_type=True)
def slice_(x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Array:
    first, last = int_list(starts, "starts"), int_list(ends, "ends")
    chosen = list(range(len(first))) if axes is None else int_list(axes, "axes")
    stride = [1] * len(first) if steps is None else int_list(steps, "steps")
    if not len(first) == len(last) == len(chosen) == len(stride):
        raise ShapeError("starts, ends, axes and steps have different lengths")
    index = [slice(None)] * x.ndim
    positions = normalize_axes(chosen, x.ndim)
    for axis, start, end, step in zip(positions, first, last, stride, strict=True):
        if step == 0:
            raise ShapeError(f"the step of axis {axis} is 0")
        index[axis] = clamped_slice(start, end, step, x.shape[axis])
    return x[tuple(index)]


def clamped_slice(start: int, end: int, step: int, length: int) -> slice:
    """As Python's, except that with a negative step an end below -length means 'beyond the first element', and a start
    below -length the first element.
    """
    if start < 0:
        start += length
    if end < 0:
        end += length
    if step > 0:
        return slice(min(max(start, 0), length), min(max(end, 0), length), step)
    if length == 0:
        return slice(0, 0)
    start, end = min(max(start, 0), length - 1), min(max(end, -1), length - 1)
    return slice(start, None if end < 0 else end, step)


@op("Pad", any_type=True)
def pad(
    x: Array, pads: Array, constant_value: Array | None = None, axes: Array | None = None, *, mode: str = "constant"
) -> Array:
    """Negative pads remove elements."""
    amounts = int_list(pads, "pads")
    chosen = range(x.ndim) if axes is None else normalize_axes(int_list(axes, "axes"), x.ndim)
    if len(amounts) != 2 * len(chosen):
        raise ShapeError(f"{len(amounts)} pads for {len(chosen)} axes")
    before, after = [0] * x.ndim, [0] * x.ndim
    for i, axis in enumerate(chosen):
        before[axis], after[axis] = amounts[i], amounts[i + len(chosen)]
    shape = check_size([d + b + a for d, b, a in zip(x.shape, before, after, strict=True)], x.dtype)
    if mode == "constant":
        return _pad_with_constant(x, before, after, constant_value)
    if any(have == 0 < made for have, made in zip(x.shape, shape, strict=True)):
        raise ShapeError(f"an empty axis cannot be padded with mode {mode}")
    if 0 in shape:
        return np.empty(shape, x.dtype)
    for axis in sorted(range(x.ndim), key=lambda axis: before[axis] + after[axis]):  # what is cut comes first
        if (before[axis], after[axis]) != (0, 0):
            x = np.take(x, _source_indices(x.shape[axis], before[axis], after[axis], mode), axis=axis)
    return x


def _pad_with_constant(x: Array, before: list[int], after: list[int], constant_value: Array | None) -> Array:
    if constant_value is None:
        fill = np.zeros((), x.dtype) if x.dtype != object else np.array("", object)
    else:
        if constant_value.size != 1:
            raise ShapeError(f"constant_value must hold one value, its shape is {list(constant_value.shape)}")
        fill = constant_value.reshape(())
    result = np.full([d + b + a for d, b, a in zip(x.shape, before, after, strict=True)], fill, x.dtype)
    inner = tuple(
        slice(max(b, 0), max(b, 0) + d + min(b, 0) + min(a, 0)) for d, b, a in zip(x.shape, before, after, strict=True)
    )
    source = tuple(slice(max(-b, 0), d - max(-a, 0)) for d, b, a in zip(x.shape, before, after, strict=True))
    result[inner] = x[source]
    return result


def _source_indices(length: int, before: int, after: int, mode: str) -> Array:
    """For each element along a padded axis, the index of the element it copies."""
    positions = np.arange(-before, length + after)
    if mode not in ("edge", "reflect", "wrap"):
        raise UnsupportedOp(f"{mode!r} is not one of constant, edge, reflect, wrap", attribute="mode")
    if mode == "edge":
        return positions.clip(0, max(length - 1, 0))
    if mode == "wrap":
        return positions % max(length, 1)
    period = max(2 * (length - 1), 1)
    folded = positions % period
    return np.where(folded < length, folded, period - folded)


@op("CenterCropPad")
def center_crop_pad(x: Array, shape: Array, *, axes: list[int] | None = None) -> Array:
    targets = int_list(shape, "shape")
    chosen = range(x.ndim) if axes is None else normalize_axes(axes, x.ndim)
    if len(targets) != len(chosen):
        raise ShapeError(f"{len(targets)} sizes for {len(chosen)} axes")
    before, after = [0] * x.ndim, [0] * x.ndim
    for axis, target in zip(chosen, targets, strict=True):
        missing = target - x.shape[axis]
        before[axis] = missing // 2 if missing >= 0 else -(-missing // 2)
        after[axis] = missing - before[axis]
    check_size([d + b + a for d, b, a in zip(x.shape, before, after, strict=True)], x.dtype)
    return _pad_with_constant(x, before, after, None)


@op("DepthToSpace")
def depth_to_space(x: Array, *, blocksize: int, mode: str = "DCR") -> Array:
    batch, channels, height, width = x.shape
    if blocksize < 1 or channels % blocksize**2:
        raise ShapeError(f"{channels} channels are not divisible by {blocksize} squared", attribute="blocksize")
    depth = channels // blocksize**2
    if mode == "DCR":
        blocks = x.reshape(batch, blocksize, blocksize, depth, height, width).transpose(0, 3, 4, 1, 5, 2)
    elif mode == "CRD":
        blocks = x.reshape(batch, depth, blocksize, blocksize, height, width).transpose(0, 1, 4, 2, 5, 3)
    else:
        raise UnsupportedOp(f"{mode!r} is neither DCR nor CRD", attribute="mode")
    return blocks.reshape(batch, depth, height * blocksize, width * blocksize)


@op("SpaceToDepth")
def space_to_depth(x: Array, *, blocksize: int, mode: str = "DCR") -> Array:
    batch, channels, height, width = x.shape
    if blocksize < 1 or height % blocksize or width % blocksize:
        raise ShapeError(f"{height} x {width} is not divisible by {blocksize}", attribute="blocksize")
    blocks = x.reshape(batch, channels, height // blocksize, blocksize, width // blocksize, blocksize)
    if mode == "DCR":
        blocks = blocks.transpose(0, 3, 5, 1, 2, 4)
    elif mode == "CRD":
        blocks = blocks.transpose(0, 1, 3, 5, 2, 4)
    else:
        raise UnsupportedOp(f"{mode!r} is neither DCR nor CRD", attribute="mode")
    return blocks.reshape(batch, channels * blocksize**2, height // blocksize, width // blocksize)


@op("Trilu", any_type=True)
def trilu(x: Array, k: Array | None = None, *, upper: int = 1) -> Array:
    diagonal = 0 if k is None else int(k.reshape(-1)[0])  # one element, whatever the rank
    rows, columns = x.shape[-2:]
    offset = np.arange(columns) - np.arange(rows)[:, None]
    keep = offset >= diagonal if upper else offset <= diagonal
    return np.where(keep, x, np.zeros((), x.dtype))


@op("ReverseSequence", any_type=True)
def reverse_sequence(x: Array, sequence_lens: Array, *, batch_axis: int = 1, time_axis: int = 0) -> Array:
    batch_axis, time_axis = normalize_axes((batch_axis, time_axis), x.ndim, "batch_axis or time_axis")
    lengths = np.array(int_list(sequence_lens, "sequence_lens"), np.int64)
    batch, steps = x.shape[batch_axis], x.shape[time_axis]
    if len(lengths) != batch or np.any((lengths < 0) | (lengths > steps)):
        raise ShapeError(f"sequence_lens {lengths.tolist()} do not fit a batch of {batch} and {steps} steps")
    time = np.arange(steps)[:, None]
    source = np.where(time < lengths, lengths - 1 - time, time)
    front = np.moveaxis(x, (time_axis, batch_axis), (0, 1))
    return np.moveaxis(front[source, np.arange(batch)], (0, 1), (time_axis, batch_axis))
