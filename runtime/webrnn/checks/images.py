"""Sampling and assembling images: operands that fit each other. Images are (batch, channels, spatial...)."""

from __future__ import annotations

from math import isfinite, prod

from webrnn.errors import ModelError
from webrnn.ir import Dim
from webrnn.ir.dims import floor_divide

from .check import ANY, Check, spell
from .registry import check
from .windows import bias, fits, kernel_of, pads, per_axis, spatial_rank


@check("Resize")
def resize(c: Check) -> None:
    x, axes = c.shape(0), c.attribute("axes")
    chosen = c.axes(axes or (None if x is None else range(len(x))), c.rank(0), attribute="axes")
    counts = [_count(c, index) for index in (1, 2, 3)]
    if None not in counts[1:]:
        has_one = (counts[1] == 0) != (counts[2] == 0)
        c.that(has_one, "exactly one of scales and sizes is required", kind=ModelError)
    if c.given(3) and counts[2] != 0:
        c.is_list(3, "sizes")
        for size in c.content(3) or ():
            c.at_least(size, 0, f"sizes hold {size}")
    factors = c.fact(2).floats or ()
    c.that(all(isfinite(factor) and factor > 0 for factor in factors), f"scales {list(factors)} are not positive")
    if x is None or chosen is None:
        return
    for name, count in zip(("scales", "sizes"), counts[1:], strict=True):
        if count != 0:
            c.equal(count, len(chosen), f"{count} {name} for {len(chosen)} axes")
    if c.attribute("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
        c.equal(counts[0], 2 * len(chosen), "tf_crop_and_resize needs a roi with the start and end of each axis")
    if counts[2] is not None and counts[2] != 0:
        for axis in chosen:
            c.at_least(x[axis], 1, f"an input of shape {spell(x)} has an empty axis")


def _count(c: Check, index: int) -> Dim | None:
    """How many elements an operand has; none if it is left out."""
    if not c.given(index):
        return 0
    shape = c.shape(index)
    return None if shape is None else _product(shape)


@check("GridSample")
def grid_sample(c: Check) -> None:
    c.has_rank(0, "X", 3, ANY)
    x, grid = c.shape(0), c.shape(1)
    if x is not None:
        c.has_rank(1, "grid", len(x))
    if x is not None and grid is not None:
        message = f"grid {spell(grid)} does not fit X {spell(x)}"
        c.equal(grid[0], x[0], message)
        c.equal(grid[-1], len(x) - 2, message)


@check("AffineGrid")
def affine_grid(c: Check) -> None:
    c.has_rank(0, "theta", 3)
    c.is_list(1, "size")
    size = c.content(1)
    if size is None:
        return
    c.that(len(size) >= 3, f"size {spell(size)} has no spatial axes")
    for entry in size:
        c.at_least(entry, 0, f"size {spell(size)} is not a shape")
    c.has_shape(0, (size[0], len(size) - 2, len(size) - 1), "theta")


@check("NonMaxSuppression")
def non_max_suppression(c: Check) -> None:
    c.has_rank(0, "boxes", 3)
    c.has_rank(1, "scores", 3)
    boxes, scores = c.shape(0), c.shape(1)
    if boxes is not None and scores is not None:
        message = f"boxes {spell(boxes)} and scores {spell(scores)} do not fit"
        for have, need in ((boxes[2], 4), (scores[0], boxes[0]), (scores[2], boxes[1])):
            c.equal(have, need, message)
    for index, name in ((2, "max_output_boxes_per_class"), (3, "iou_threshold"), (4, "score_threshold")):
        if c.given(index):
            c.is_single(index, name)


@check("RoiAlign")
def roi_align(c: Check) -> None:
    c.has_rank(0, "X", 4)
    c.has_rank(1, "rois", 2)
    c.one_of("coordinate_transformation_mode", "half_pixel", ("half_pixel", "output_half_pixel"))
    rois, images = c.shape(1), c.content(2)
    if rois is not None:
        c.equal(rois[1], 4, f"rois of shape {spell(rois)} are not regions")
        c.has_shape(2, rois[:1], "batch_indices")
    x = c.shape(0)
    for image in images or ():
        if x is not None and x[0] is not None and image is not None:
            c.at_least(image, -x[0], f"batch_indices hold {image}, out of range for {x[0]} elements")
            c.at_least(x[0] - 1, image, f"batch_indices hold {image}, out of range for {x[0]} elements")
    for name in ("output_height", "output_width"):
        c.that(c.attribute(name, 1) >= 0, f"{c.attribute(name, 1)} is negative", name)


@check("DeformConv")
def deform_conv(c: Check) -> None:
    c.has_rank(0, "X", 4)
    rank = spatial_rank(c, 1)
    kernel = kernel_of(c, 1, rank)
    fits(c, rank, kernel)
    group, parts = c.attribute("group", 1), c.attribute("offset_group", 1)
    c.that(group >= 1, f"{group} is not positive", "group")
    c.that(parts >= 1, f"{parts} is not positive", "offset_group")
    x, w = c.shape(0), c.shape(1)
    if x is None or w is None:
        return
    message = f"X {spell(x)} and W {spell(w)} do not fit with group={group}"
    c.multiple(w[0], group, message, "group")
    c.multiple(x[1], parts, message, "offset_group")
    if w[1] is not None:
        c.equal(x[1], w[1] * group, message, "group")
    bias(c, 3, w[0])
    taps = _product(kernel or ())
    counts: list[Dim | None] = [None, None] if kernel is None else _window_counts(c, x, kernel)
    channels = None if taps is None else taps * parts
    c.has_shape(2, (x[0], None if channels is None else channels * 2, *counts), "offset")
    c.has_shape(4, (x[0], channels, *counts), "mask")


def _product(sizes: object) -> Dim | None:
    known = [size for size in sizes if size is not None]  # type: ignore[attr-defined]
    return prod(known) if len(known) == len(sizes) else None  # type: ignore[arg-type]


def _window_counts(c: Check, x: tuple[Dim | None, ...], kernel: object) -> list[Dim | None]:
    strides, dilations, around = per_axis(c, "strides", 2), per_axis(c, "dilations", 2), pads(c, 2)
    assert strides is not None
    assert dilations is not None
    assert around is not None
    counts: list[Dim | None] = []
    for axis, (length, size) in enumerate(zip(x[2:], kernel, strict=True)):  # type: ignore[call-overload]
        if length is None or size is None:
            counts.append(None)
            continue
        room = length + around[0][axis] + around[1][axis] - (size - 1) * dilations[axis] - 1
        counts.append(floor_divide(room, strides[axis]) + 1)
    return counts


def _length(c: Check, index: int) -> Dim | None:
    """Of a list."""
    shape = c.shape(index)
    return None if shape is None else shape[0] if shape else 1


@check("Col2Im")
def col2im(c: Check) -> None:
    c.has_rank(0, "input", 3)
    c.is_list(1, "image_shape")
    c.is_list(2, "block_shape")
    x, image, block = c.shape(0), c.content(1), c.ints(2)
    rank = _length(c, 1)
    c.equal(rank, _length(c, 2), f"{rank} sizes of an image for {_length(c, 2)} sizes of a block")
    known = rank if isinstance(rank, int) else None
    strides, dilations, around = per_axis(c, "strides", known), per_axis(c, "dilations", known), pads(c, known)
    if x is None or image is None or block is None:
        return
    message = f"input {spell(x)} does not fit blocks of {list(block)} in an image of {spell(image)}"
    c.that(len(image) >= 1 and min(block) >= 1, message)
    if strides is None or dilations is None or around is None:
        return
    counts: list[Dim | None] = []
    for axis, length in enumerate(image):
        if length is None:
            counts.append(None)
            continue
        room = length + around[0][axis] + around[1][axis] - (block[axis] - 1) * dilations[axis] - 1
        counts.append(floor_divide(room, strides[axis]) + 1)
        c.at_least(length, 0, message)
        c.at_least(counts[-1], 1, message)
    c.multiple(x[1], prod(block), message)
    c.equal(x[2], _product(counts), message)
