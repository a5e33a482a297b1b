"""Sampling and assembling images: GridSample, AffineGrid, DeformConv, Col2Im."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from webrnn.errors import ShapeError, UnsupportedOp

from .arrays import Array, Index, int_list, require_rank, require_rank_at_least, require_shape, whole_numbers, widen
from .conv import kernel_of
from .registry import op
from .sizes import check_size
from .windows import per_axis, place_windows, split_pads


@op("GridSample")
def grid_sample(
    x: Array, grid: Array, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Array:
    """X is (batch, channels, spatial...), the grid (batch, output..., coordinates), from -1 to 1, last axis first."""
    require_rank_at_least(x, 3, "X")
    rank = x.ndim - 2
    require_rank(grid, x.ndim, "grid")
    if grid.shape[0] != x.shape[0] or grid.shape[-1] != rank:
        raise ShapeError(f"grid {list(grid.shape)} does not fit X {list(x.shape)}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise UnsupportedOp(f"{padding_mode!r} is not one of zeros, border, reflection", attribute="padding_mode")
    check_size((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    margin = 0.0 if align_corners else 0.5
    positions = []
    for axis, length in enumerate(x.shape[2:]):
        unit = grid[..., rank - 1 - axis].astype(np.float64)
        position = (unit + 1) / 2 * (length - 1) if align_corners else ((unit + 1) * length - 1) / 2
        if mode == "nearest":
            position = np.rint(position)
        positions.append(_inside(position, length, margin, padding_mode))
    return sample(x, positions, mode, padding_mode, margin)


def _inside(position: Array, length: int, margin: float, padding_mode: str) -> Array:
    outside = (position < -margin) | (position > length - 1 + margin)
    if padding_mode == "border":
        return np.where(outside, position.clip(0, length - 1), position)
    if padding_mode == "reflection":
        return np.where(outside, _reflect(position, length, margin), position)
    return position


def _reflect(position: Array, length: int, margin: float) -> Array:
    low, span = -margin, length - 1 + 2 * margin
    if span == 0:
        return np.zeros_like(position)
    folded = np.mod(position - low, 2 * span)
    too_far = ~(np.abs(position - low) < 2.0**52)
    return np.where(too_far, np.nan, low + np.minimum(folded, 2 * span - folded))


def sample(x: Array, positions: list[Array], mode: str, padding_mode: str, margin: float = 0.0) -> Array:
    """The values of x (batch, channels, spatial...) at fractional positions, one (batch, output...) for each axis."""
    reach = {"nearest": (0, 0), "linear": (0, 1), "cubic": (-1, 2)}.get(mode)
    if reach is None:
        raise UnsupportedOp(f"{mode!r} is not one of nearest, linear, cubic", attribute="mode")
    offsets = range(reach[0], reach[1] + 1)
    base = [whole_numbers(np.floor(position)) for position in positions]
    fraction = [position - floor for position, floor in zip(positions, base, strict=True)]
    output = positions[0].shape[1:]
    total = np.zeros((*x.shape[:2], *output), np.float64)
    for corner in product(offsets, repeat=len(positions)):
        weight = np.ones(positions[0].shape)
        for part, offset in zip(fraction, corner, strict=True):
            weight = weight * _tap_weight(part, offset, mode)
        index = [floor + offset for floor, offset in zip(base, corner, strict=True)]
        total += weight[:, None] * _pixels(x, index, padding_mode, margin)
    return total.astype(x.dtype)


def _tap_weight(fraction: Array, offset: int, mode: str) -> Array:
    distance = np.abs(offset - fraction)
    if mode == "nearest":
        return np.ones_like(fraction)
    if mode == "linear":
        return 1 - distance
    a = -0.75
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance >= 2, 0, far))


def _pixels(x: Array, index: list[Array], padding_mode: str, margin: float) -> Array:
    flat = np.zeros(index[0].shape, np.int64)
    valid = np.ones(index[0].shape, np.bool_)
    for position, length in zip(index, x.shape[2:], strict=True):
        if padding_mode == "reflection":
            position = whole_numbers(np.floor(_reflect(position, length, margin)))
        valid &= (position >= 0) & (position < length)
        flat = flat * length + position.clip(0, length - 1)
    columns = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    rows = flat.reshape(x.shape[0], 1, math.prod(flat.shape[1:]))
    values = np.take_along_axis(columns, rows, axis=2).reshape(*x.shape[:2], *flat.shape[1:])
    return np.where(valid[:, None], values, 0) if padding_mode == "zeros" else values


@op("AffineGrid")
def affine_grid(theta: Array, size: Array, *, align_corners: int = 0) -> Array:
    """theta is (batch, rank, rank + 1), size is (batch, channels, spatial...)."""
    require_rank(theta, 3, "theta")
    batch, _, *spatial = check_size(int_list(size, "size"), theta.dtype)
    rank = len(spatial)
    check_size((rank + 1, *spatial), np.float64)
    require_shape(theta, (batch, rank, rank + 1), "theta")
    ticks = []
    for length in spatial:
        step = np.arange(length)
        if align_corners:
            ticks.append(2 * step / max(length - 1, 1) - 1)
        else:
            ticks.append((2 * step + 1) / length - 1)
    mesh = np.meshgrid(*ticks, indexing="ij")
    points = np.stack([*reversed(mesh), np.ones(spatial)], axis=-1)
    grid = np.einsum("nij,...j->n...i", theta.astype(np.float64), points)
    return grid.astype(theta.dtype)


@op("DeformConv")
def deform_conv(
    x: Array,
    w: Array,
    offset: Array,
    b: Array | None = None,
    mask: Array | None = None,
    *,
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    offset_group: int = 1,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Array:
    """A convolution whose taps are moved by `offset` and weighted by `mask`, both given for each output pixel."""
    require_rank(x, 4, "X")
    windows = place_windows(x, kernel_of(x, w, kernel_shape), strides, dilations, pads)
    batch, channels = x.shape[:2]
    filters, depth = w.shape[:2]
    taps = windows.kernel[0] * windows.kernel[1]
    if group < 1 or offset_group < 1 or channels != depth * group or filters % group or channels % offset_group:
        raise ShapeError(f"X {list(x.shape)} and W {list(w.shape)} do not fit with group={group}")
    require_shape(offset, (batch, offset_group * taps * 2, *windows.output), "offset")
    moves = offset.reshape(batch, offset_group, taps, 2, *windows.output)
    strength = np.ones((batch, offset_group, taps, *windows.output), x.dtype)
    if mask is not None:
        require_shape(mask, (batch, offset_group * taps, *windows.output), "mask")
        strength = mask.reshape(strength.shape)
    rows, columns = np.meshgrid(
        *(np.arange(o) * s - p for o, s, p in zip(windows.output, windows.strides, windows.before, strict=True)),
        indexing="ij",
    )
    check_size((batch, channels, taps, *windows.output), np.float64)
    samples = np.empty((batch, channels, taps, *windows.output))
    width = channels // offset_group
    for part, tap in product(range(offset_group), range(taps)):
        row, column = divmod(tap, windows.kernel[1])
        at = [
            rows + row * windows.dilations[0] + moves[:, part, tap, 0],
            columns + column * windows.dilations[1] + moves[:, part, tap, 1],
        ]
        members = slice(part * width, (part + 1) * width)
        values = sample(widen(x)[:, members], at, "linear", "zeros")
        samples[:, members, tap] = values * strength[:, part, tap][:, None]
    pixels = samples.reshape(batch, group, depth * taps, math.prod(windows.output))
    y = w.reshape(group, filters // group, depth * taps).astype(np.float64) @ pixels
    y = y.reshape(batch, filters, *windows.output)
    if b is not None:
        require_shape(b, (filters,), "B")
        y = y + b.reshape(-1, 1, 1)
    return y.astype(x.dtype)


@op("Col2Im")
def col2im(
    x: Array,
    image_shape: Array,
    block_shape: Array,
    *,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Array:
    """Add columns of blocks (batch, channels * block, positions) up to the image they were taken from."""
    require_rank(x, 3, "input")
    image, block = int_list(image_shape, "image_shape"), int_list(block_shape, "block_shape")
    rank = len(image)
    kernel = per_axis(block, 1, rank, "block_shape")
    spread, steps = per_axis(dilations, 1, rank, "dilations"), per_axis(strides, 1, rank, "strides")
    before, after = split_pads(pads, rank)
    padded = [length + b + a for length, b, a in zip(image, before, after, strict=True)]
    counts = [(p - (k - 1) * d - 1) // s + 1 for p, k, d, s in zip(padded, kernel, spread, steps, strict=True)]
    size = int(np.prod(kernel))
    if x.shape[1] % size or x.shape[2] != int(np.prod(counts)) or min(counts) < 1:
        raise ShapeError(f"input {list(x.shape)} does not fit blocks of {block} in an image of {image}")
    channels = x.shape[1] // size
    columns = x.reshape(x.shape[0], channels, *kernel, *counts)
    y = np.zeros(check_size((x.shape[0], channels, *padded), x.dtype), x.dtype)
    for position in product(*(range(k) for k in kernel)):
        steps_along = (
            slice(p * d, p * d + (c - 1) * s + 1, s) for p, d, c, s in zip(position, spread, counts, steps, strict=True)
        )
        places: Index = (..., *steps_along)
        tap: Index = (slice(None), slice(None), *position)
        y[places] += columns[tap]
    inner: Index = (..., *(slice(b, b + length) for b, length in zip(before, image, strict=True)))
    return y[inner]
