"""Resizing and sampling of images, affine grids, regions, columns of blocks, and determinants."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from webrnn.ir import Dim, Node, Value
from webrnn.ir.dims import floor_divide
from webrnn.reference.arrays import FLOOR_OR_CEIL

from ..draft import ExpressionOp
from ..instructions import COORDINATES, INTERPOLATIONS, NEAREST_MODES, PADDINGS, UNITS
from ..lowering import Lowering, attribute, present, rule
from ..numbers import Numbers
from ..views import View, count_of
from .axes import Axis, axes_of
from .pads import sizes_of
from .windows import convolve

Factor = float | View | None
"""The scale of an axis: a number, a tensor of one element, or the quotient of the sizes after and before."""


def _floats(l: Lowering, *values: Value | None) -> list[View]:
    views = [l.dense(l.view(present(value))) for value in values]
    if any(view.dtype != "f32" for view in views):
        raise l.refuse("it is not of float")
    return views


def _operand(node: Node, index: int) -> Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


# --- Resize ----------------------------------------------------------------------------------------------------------


@rule("Resize")
def _resize(l: Lowering, node: Node) -> None:
    view = l.view(present(node.inputs[0]))
    _resize_by(l, node, _factors(l, node, [view.shape[axis] for axis in _axes(node, view.rank)]))


def _axes(node: Node, rank: int) -> list[int]:
    return [axis % rank for axis in attribute(node, "axes", None) or range(rank)]


def _resize_by(l: Lowering, node: Node, factors: Sequence[Factor]) -> None:
    """Axis by axis, the last one first."""
    x, output = present(node.inputs[0]), present(node.outputs[0])
    view, shape = l.view(x), l.shape(output)
    _require_type(l, node, view)
    axes, is_cut = _axes(node, view.rank), _is_cut(node)
    roi = l.view(present(_operand(node, 1))) if is_cut else None
    if roi is not None and (roi.dtype != "f32" or roi.shape != (2 * len(axes),)):
        raise l.refuse("its roi is not a start and an end of float for each axis")
    for i, axis in sorted(enumerate(axes), key=lambda pair: -pair[1]):
        size, length, factor = view.shape[axis], shape[axis], factors[i]
        if size == length and factor in (1, None) and not is_cut:
            continue
        l.require_not_negative(length)
        if isinstance(factor, float) and not is_cut and _repeats(node, factor, size, length):
            view = _repeated(l, view, axis, int(factor))
            continue
        if factor is None:
            l.require_not_negative(size - 1)
        scale = l.number_vector((factor,)) if isinstance(factor, float) else factor
        crop = None if roi is None else roi.sliced(0, i, 2, len(axes))
        view = _resize_axis(l, node, view, axis, length, scale, crop)
    l.views[output] = view


def _require_type(l: Lowering, node: Node, x: View) -> None:
    mode = attribute(node, "mode", "nearest")
    if x.dtype != "f32" and (mode != "nearest" or _is_cut(node)):
        raise l.refuse(f"mode {mode} of {x.dtype}")


def _is_cut(node: Node) -> bool:
    return _coordinates(node) == "tf_crop_and_resize"


def _coordinates(node: Node) -> str:
    return attribute(node, "coordinate_transformation_mode", "half_pixel")


def _given_scales(l: Lowering, node: Node) -> Value | None:
    scales = _operand(node, 2)
    return None if scales is None or l.shape(scales) == (0,) else scales


def _factors(l: Lowering, node: Node, sizes: Sequence[Dim]) -> list[Factor]:
    scales, lengths = _given_scales(l, node), _operand(node, 3)
    if scales is not None:
        array = l.array(scales)
        if array is None:
            view = l.view(scales)
            if view.dtype != "f32" or view.shape != (len(sizes),):
                raise l.refuse("its scales do not fit its axes")
            return [view.sliced(0, i, 1) for i in range(len(sizes))]
        known = [float(factor) for factor in array.reshape(-1)]
        if len(known) != len(sizes) or not all(isfinite(factor) and factor > 0 for factor in known):
            raise l.refuse("its scales do not fit its axes")
        return [*known]
    if lengths is None:
        raise l.refuse("it has neither scales nor sizes")
    policy = attribute(node, "keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return [None] * len(sizes)
    pairs = zip(l.ints(lengths), sizes, strict=True)
    quotients = [length / size for length, size in pairs if isinstance(size, int) and size]
    if len(quotients) != len(sizes):
        raise l.refuse("its scale depends on a size that is not known")
    return [(min if policy == "not_larger" else max)(quotients)] * len(sizes)


def open_resize(l: Lowering, node: Node) -> None:
    """Resize whose scales, or sizes, are known only while running."""
    view, output, scales = l.view(present(node.inputs[0])), present(node.outputs[0]), _given_scales(l, node)
    _require_type(l, node, view)
    if not l.is_open(output):
        _resize(l, node)
        return
    axes = _axes(node, view.rank)
    sizes = [view.shape[axis] for axis in axes]
    if scales is not None:
        factors = _factors(l, node, sizes)
        lengths = _scaled_lengths(l, l.view(scales), sizes)
    else:
        lengths, factors = l.content_now(present(_operand(node, 3))), [None] * len(axes)
        policy = attribute(node, "keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            lengths, factors = _in_proportion(l, sizes, lengths, policy == "not_larger")
    shape = list(view.shape)
    for axis, length in zip(axes, lengths, strict=True):
        shape[axis] = length
    l.set_shape(output, shape)
    _resize_by(l, node, factors)


def _scaled_lengths(l: Lowering, scales: View, sizes: Sequence[Dim]) -> list[Dim]:
    """Sizes times scales, which have to be positive, in float, without their fractions."""
    count = len(sizes)
    numbers, lengths, allowed = (l.temporary((count,), dtype) for dtype in ("i64", "i64", "bool"))
    l.emit("sizes", numbers, rest=sizes)
    ops = [
        ExpressionOp("to_f32", (0,)), ExpressionOp("mul", (3, 1)), ExpressionOp("to_i64", (4,), 1.0),
        ExpressionOp("greater", (1, 2)),
    ]  # fmt: skip
    l.expression([numbers, scales], [(lengths, 5), (allowed, 6)], [("f32", 0.0)], ops)
    l.emit("demand", allowed)
    return [l.late_size(lengths.without_axis(0, i)) for i in range(count)]


def _in_proportion(
    l: Lowering, sizes: Sequence[Dim], lengths: Sequence[Dim], is_smallest: bool
) -> tuple[list[Dim], list[Factor]]:
    """All axes have the smallest or the largest of the scales; lengths are rounded."""
    numbers = Numbers(l)
    length, size = numbers.of(lengths[0]), numbers.of(sizes[0])
    for other, width in zip(lengths[1:], sizes[1:], strict=True):
        here, there = length * width, size * other
        is_better = there < here if is_smallest else here < there
        length, size = numbers.where(is_better, other, length), numbers.where(is_better, width, size)
    whole = [(length * width * 2 + size).divided(size * 2) for width in sizes]
    scale, parts = l.temporary((1,)), [view.with_axis(0) for view in numbers.views(length, size)]
    ops = [ExpressionOp("to_f32", (0,)), ExpressionOp("to_f32", (1,)), ExpressionOp("div", (2, 3))]
    l.expression(parts, [(scale, 4)], [], ops)
    for width in sizes:
        l.require_not_negative(width - 1)
    return numbers.let(*whole), [scale] * len(sizes)


def _repeats(node: Node, factor: float, size: Dim, length: Dim) -> bool:
    """Whether each element is repeated `factor` times."""
    if attribute(node, "mode", "nearest") != "nearest" or factor != int(factor) or length != size * int(factor):
        return False
    how = attribute(node, "nearest_mode", "round_prefer_floor")
    return (_coordinates(node), how) in {
        ("asymmetric", "floor"),
        ("asymmetric", FLOOR_OR_CEIL),
        ("half_pixel", "round_prefer_floor"),
        ("half_pixel", "round_prefer_ceil"),
    }


def _repeated(l: Lowering, view: View, axis: int, times: int) -> View:
    shape = (*view.shape[: axis + 1], times, *view.shape[axis + 1 :])
    made, spread = l.temporary(shape, view.dtype), view.with_axis(axis + 1).broadcast(shape)
    assert spread is not None
    l.copy(spread, made)
    return l.reshaped(made, (*view.shape[:axis], view.shape[axis] * times, *view.shape[axis + 1 :]))


def _resize_axis(
    l: Lowering, node: Node, x: View, axis: int, length: Dim, scale: View | None, crop: View | None
) -> View:
    made = l.temporary((*x.shape[:axis], length, *x.shape[axis + 1 :]), x.dtype)
    outer, inner = count_of(x.shape[:axis]), count_of(x.shape[axis + 1 :])
    nearest = attribute(node, "nearest_mode", "round_prefer_floor")
    l.emit(
        "resize", l.reshaped(x, (outer, x.shape[axis], inner)), scale, crop, made.reshaped((outer, length, inner)),
        INTERPOLATIONS.index(attribute(node, "mode", "nearest")),
        NEAREST_MODES.index("floor_or_ceil" if nearest == FLOOR_OR_CEIL else nearest),
        COORDINATES.index(_coordinates(node)), attribute(node, "antialias", 0), attribute(node, "exclude_outside", 0),
        attribute(node, "cubic_coeff_a", -0.75), attribute(node, "extrapolation_value", 0.0),
    )  # fmt: skip
    return made


# --- sampling --------------------------------------------------------------------------------------------------------


@rule("GridSample")
def _grid_sample(l: Lowering, node: Node) -> None:
    x, grid = _floats(l, *node.inputs[:2])
    target = l.dense_output(present(node.outputs[0]))
    (batch, channels), points = x.shape[:2], count_of(grid.shape[1:-1])
    l.emit(
        "grid_sample", x, grid.reshaped((batch, points, x.rank - 2)), target.reshaped((batch, channels, points)),
        INTERPOLATIONS.index(attribute(node, "mode", "linear")),
        PADDINGS.index(attribute(node, "padding_mode", "zeros")),
        UNITS.index("centres" if attribute(node, "align_corners", 0) else "borders"),
    )  # fmt: skip


@rule("AffineGrid")
def _affine_grid(l: Lowering, node: Node) -> None:
    theta = _floats(l, node.inputs[0])[0]
    l.emit("affine_grid", theta, l.dense_output(present(node.outputs[0])), attribute(node, "align_corners", 0))


@rule("RoiAlign")
def _roi_align(l: Lowering, node: Node) -> None:
    x, rois = _floats(l, *node.inputs[:2])
    images = l.dense(l.view(present(node.inputs[2])))
    half_pixel = attribute(node, "coordinate_transformation_mode", "half_pixel") == "half_pixel"
    l.emit(
        "roi_align", x, rois, images, l.dense_output(present(node.outputs[0])),
        int(attribute(node, "mode", "avg") == "max"), int(half_pixel), max(attribute(node, "sampling_ratio", 0), 0),
        attribute(node, "spatial_scale", 1.0),
    )  # fmt: skip


@rule("DeformConv")
def _deform_conv(l: Lowering, node: Node) -> None:
    """Each tap of each position is sampled on its own; what comes out are the channels of a convolution of size 1."""
    x, w, offset = _floats(l, *node.inputs[:3])
    output, kernels = present(node.outputs[0]), l.array(node.inputs[1])
    kernel = [size for size in w.shape[2:] if isinstance(size, int)]
    axes = axes_of(l, node, kernel, x.shape[2:], l.shape(output)[2:])
    if len(kernel) != 2 or not all(isinstance(axis.positions, int) for axis in axes):
        raise l.refuse("the size of its kernel or of its result is not known")
    parts, group = attribute(node, "offset_group", 1), attribute(node, "group", 1)
    batch, channels, height, width = x.shape
    n_taps, positions = kernel[0] * kernel[1], count_of(axis.positions for axis in axes)
    shape = (batch, parts, n_taps, positions, 2)
    moves = offset.reshaped((batch, parts, n_taps, 2, positions))
    assert moves is not None
    grid, members = l.temporary(shape), floor_divide(channels, parts)
    moved = moves.transposed([0, 1, 2, 4, 3]).sliced(4, 1, 2, -1)
    l.expression([moved, l.constant(_places(axes))], [(grid, 2)], [], [ExpressionOp("add", (0, 1))])
    samples = l.temporary((batch * parts, members, n_taps * positions))
    l.emit(
        "grid_sample", x.reshaped((batch * parts, members, height, width)),
        grid.reshaped((batch * parts, n_taps * positions, 2)), samples, INTERPOLATIONS.index("linear"),
        PADDINGS.index("zeros"), UNITS.index("pixels"),
    )  # fmt: skip
    if len(node.inputs) > 4 and node.inputs[4] is not None:
        mask = _floats(l, node.inputs[4])[0].reshaped((batch * parts, 1, n_taps * positions))
        assert mask is not None
        l.expression([samples, mask], [(samples, 2)], [], [ExpressionOp("mul", (0, 1))])
    columns = samples.reshaped((batch, channels * n_taps, positions))
    assert columns is not None
    bias = _operand(node, 3)
    flat = (w.shape[0], w.shape[1] * n_taps, 1)
    made = convolve(
        l, columns, l.reshaped(w, flat) if kernels is None else kernels.reshape(flat),  # type: ignore[arg-type]
        None if bias is None else l.dense(l.view(bias)), [Axis(1, 1, 1, 0, 0, positions)], group,
    )  # fmt: skip
    l.views[output] = l.reshaped(made, l.shape(output))


def _places(axes: Sequence[Axis]) -> np.ndarray:
    """[taps, positions, 2]: column and row of each tap at each position, if it is not moved."""

    def along(axis: Axis) -> np.ndarray:
        assert isinstance(axis.positions, int)
        assert isinstance(axis.before, int)
        return np.arange(axis.kernel)[:, None] * axis.dilation + np.arange(axis.positions) * axis.stride - axis.before

    rows, columns = map(along, axes)
    # (row tap, column tap, row position, column position)
    down, right = np.broadcast_arrays(rows[:, None, :, None], columns[None, :, None, :])
    return np.stack([right, down], axis=-1).reshape(rows.shape[0] * columns.shape[0], -1, 2).astype(np.float32)


@rule("Col2Im")
def _col2im(l: Lowering, node: Node) -> None:
    """The blocks along one axis after the other, the last one first, are added up to what they were taken from."""
    x, output = _floats(l, node.inputs[0])[0], present(node.outputs[0])
    block, shape = sizes_of(l, node.inputs[2]), l.shape(output)
    n, image = len(block), shape[2:]
    strides, dilations = attribute(node, "strides", [1] * n), attribute(node, "dilations", [1] * n)
    pads = attribute(node, "pads", [0] * (2 * n))
    counts = []
    for axis, (size, kernel) in enumerate(zip(image, block, strict=True)):
        room = size + pads[axis] + pads[axis + n] - (kernel - 1) * dilations[axis] - 1
        counts.append(floor_divide(room, strides[axis]) + 1)
        l.require_not_negative(counts[-1] - 1)
        l.require_not_negative(kernel - 1)
    l.require_equal(x.shape[2], count_of(counts))
    l.require_equal(shape[1] * count_of(block), x.shape[1])
    planes = count_of(shape[:2])
    for axis in reversed(range(n)):
        outer, middle = planes * count_of(block[:axis]), count_of(counts[:axis])
        inner = count_of(image[axis + 1 :])
        made = l.temporary((outer, middle, image[axis], inner))
        windows = l.reshaped(x, (outer, block[axis], middle, counts[axis], inner))
        l.emit("overlap_add", windows, made, strides[axis], dilations[axis], pads[axis])
        x = made
    l.views[output] = l.reshaped(x, shape)


def open_col2im(l: Lowering, node: Node) -> None:
    """Col2Im whose image or block are known only while running."""
    x, output = _floats(l, node.inputs[0])[0], present(node.outputs[0])
    image, block = (l.content_now(present(value)) for value in node.inputs[1:3])
    numbers = Numbers(l)
    taps = numbers.product(block)
    numbers.demand(taps >= 1)
    (channels,) = numbers.let(numbers.of(x.shape[1]).divided(taps))
    l.set_shape(output, (x.shape[0], channels, *image))
    _col2im(l, node)


@rule("Det")
def _det(l: Lowering, node: Node) -> None:
    x, target = _floats(l, node.inputs[0])[0], l.dense_output(present(node.outputs[0]))
    count, n = count_of(x.shape[:-2]), x.shape[-1]
    l.require_equal(x.shape[-2], n)
    l.emit("det", x.reshaped((count, n, n)), l.temporary((n * n,), "f64"), target.reshaped((count,)))
