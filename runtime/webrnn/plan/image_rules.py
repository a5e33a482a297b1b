"""operand_rules.py for windows and images."""

from __future__ import annotations

from collections.abc import Sequence

from .bound import BoundTensor, Maybe, fits, is_block, is_dense, is_vector, packed_floats
from .instructions import COORDINATES, INTERPOLATIONS, NEAREST_MODES, PADDINGS, POOLINGS, UNITS
from .opcodes import DTYPES, ITEM_BYTES


def along_axis(x: BoundTensor, y: BoundTensor) -> bool:
    """[outer, n, inner] and [outer, m, inner]"""
    return is_dense(x, 3) and is_dense(y, 3) and (x.shape[0], x.shape[2]) == (y.shape[0], y.shape[2])


def ring(
    kept: BoundTensor, rows: BoundTensor, position: BoundTensor, following: BoundTensor, windows: BoundTensor,
    rate: int, history: int, kernel: int, dilation: int, stride: int,
) -> bool:  # fmt: skip
    """Whether all windows lie among the last frames of the ring and the new ones."""
    if not all(each.dtype == kept.dtype and along_axis(kept, each) for each in (rows, following, windows)):
        return False
    outer, slots, inner = kept.shape
    if following.shape != kept.shape or rate < 0 or not 0 <= history <= slots or slots < 1:
        return False
    if min(kernel, dilation, stride) < 1 or windows.shape[1] % kernel:
        return False
    if not position.is_contiguous or position.count < 1 or outer % position.count:
        return False
    last = (windows.shape[1] // kernel - 1) * stride + (kernel - 1) * dilation
    frames = history + rows.shape[1]
    return fits(inner * ITEM_BYTES[DTYPES.index(kept.dtype)]) and fits(frames) and last < frames


def _has_channels_last(t: BoundTensor) -> bool:
    return t.rank == 4 and (t.strides[3] == 1 or t.shape[3] == 1)


def has_windows(x: BoundTensor, y: BoundTensor, steps: Sequence[int]) -> bool:
    """Whether all windows lie inside x. steps: kernel, stride, dilation, of the height and the width each."""
    if not (_has_channels_last(x) and _has_channels_last(y) and x.shape[0] == y.shape[0]):
        return False
    kernel, stride, dilation = steps[:2], steps[2:4], steps[4:]
    if not all(1 <= number < 2**15 for number in steps):
        return False
    ends = [(y.shape[1 + a] - 1) * stride[a] + (kernel[a] - 1) * dilation[a] for a in range(2)]
    return not y.count or (ends[0] < x.shape[1] and ends[1] < x.shape[2])


def conv_rows(x: BoundTensor, packed: BoundTensor, bias: Maybe, y: BoundTensor, *numbers: int) -> bool:
    steps = numbers[:6]
    if not has_windows(x, y, steps):
        return False
    terms = steps[0] * steps[1] * x.shape[3]
    return (
        fits(terms)
        and is_dense(packed, 1)
        and packed.count >= packed_floats(y.shape[3], terms)
        and (bias is None or is_vector(bias, y.shape[3]))
    )


def depthwise(x: BoundTensor, w: BoundTensor, bias: Maybe, y: BoundTensor, *numbers: int) -> bool:
    steps = numbers[:6]
    return (
        has_windows(x, y, steps)
        and x.shape[3] == y.shape[3]
        and is_dense(w, 2)
        and w.shape[1] == x.shape[3]
        and w.shape[0] == steps[0] * steps[1]
        and (bias is None or is_vector(bias, y.shape[3]))
    )


def slides(x: tuple[int, ...], y: tuple[int, ...], window: tuple[int, ...]) -> bool:
    """Heights and widths, and: kernel, stride, pads before, dilation, of the height and the width each."""
    kernel, stride, pads, dilation = (window[i : i + 2] for i in range(0, 8, 2))
    if not all(1 <= number < 2**15 for number in (*kernel, *stride, *dilation)):
        return False
    positions = ((y[a] + 1) * stride[a] + kernel[a] * dilation[a] + x[a] + pads[a] for a in range(2))
    return all(0 <= pad < 2**15 for pad in pads) and all(map(fits, positions))


def pool_rows(x: BoundTensor, y: BoundTensor, kind: int, *window: int) -> bool:
    return (
        _has_channels_last(x)
        and _has_channels_last(y)
        and (x.shape[0], x.shape[3]) == (y.shape[0], y.shape[3])
        and 0 <= kind < POOLINGS.index("sum")
        and slides(x.shape[1:3], y.shape[1:3], window)
    )


def pool_axis(
    x: BoundTensor, places: Maybe, y: BoundTensor, index: Maybe, kind: int, kernel: int, stride: int, dilation: int,
    pad: int, after: int, scale: int, plane: int,
) -> bool:  # fmt: skip
    return (
        along_axis(x, y)
        and 0 <= kind < len(POOLINGS)
        and min(kernel, stride, dilation) > 0
        and min(pad, after) >= 0
        and (places is None or (places.is_contiguous and places.shape == x.shape))
        and (index is None or (index.is_contiguous and index.shape == y.shape))
    )


def overlap_add(x: BoundTensor, y: BoundTensor, stride: int, dilation: int, pad: int) -> bool:
    if not (is_dense(x, 5) and is_dense(y, 4) and min(stride, dilation) > 0 and pad >= 0):
        return False
    outer, _, middle, _, inner = x.shape
    return (outer, middle, inner) == (y.shape[0], y.shape[1], y.shape[3])


def resize(
    x: BoundTensor, scale: Maybe, roi: Maybe, y: BoundTensor, mode: int, nearest: int, coordinates: int, *numbers: int
) -> bool:
    names = ((mode, INTERPOLATIONS), (nearest, NEAREST_MODES), (coordinates, COORDINATES))
    return (
        along_axis(x, y)
        and x.dtype == y.dtype
        and (x.shape[1] > 0 or y.count == 0)
        and all(0 <= number < len(known) for number, known in names)
        and (scale is None or scale.count == 1)
        and (roi is not None) == (COORDINATES[coordinates] == "tf_crop_and_resize")
        and (roi is None or roi.shape == (2,))
        and (x.dtype == "f32" or (mode == 0 and roi is None))
    )


def grid_sample(x: BoundTensor, grid: BoundTensor, y: BoundTensor, mode: int, padding: int, units: int) -> bool:
    return (
        x.rank >= 3
        and x.is_contiguous
        and is_dense(grid, 3)
        and is_dense(y, 3)
        and (x.count > 0 or y.count == 0)
        and y.shape == (x.shape[0], x.shape[1], grid.shape[1])
        and (grid.shape[0], grid.shape[2]) == (x.shape[0], x.rank - 2)
        and 0 <= mode < len(INTERPOLATIONS)
        and 0 <= padding < len(PADDINGS)
        and 0 <= units < len(UNITS)
    )


def affine_grid(theta: BoundTensor, y: BoundTensor, align_corners: int) -> bool:
    axes = y.rank - 2
    return (
        axes >= 1
        and is_dense(theta, 3)
        and y.is_contiguous
        and theta.shape == (y.shape[0], axes, axes + 1)
        and y.shape[-1] == axes
    )


def roi_align(x: BoundTensor, rois: BoundTensor, images: BoundTensor, y: BoundTensor, *numbers: int) -> bool:
    return (
        is_dense(x, 4)
        and is_dense(y, 4)
        and is_block(rois, y.shape[0], 4)
        and is_vector(images, y.shape[0])
        and x.shape[1] == y.shape[1]
        and (x.count > 0 or y.count == 0)
    )


def det(x: BoundTensor, scratch: BoundTensor, y: BoundTensor) -> bool:
    return (
        is_dense(x, 3)
        and x.shape[1] == x.shape[2]
        and is_vector(y, x.shape[0])
        and is_dense(scratch, 1)
        and scratch.count >= x.shape[1] ** 2
    )
