"""Ops that make a tensor larger, smaller, or fill it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from webrnn.ir import Dim, Node, Value
from webrnn.ir.dims import floor_divide, is_nonnegative

from ..file import ARRAY_TYPES
from ..lowering import Lowering, attribute, present, rule
from ..numbers import MOST, Numbers
from ..opcodes import MAX_RANK
from ..views import View, count_of, dense_strides
from .expressions import Writer
from .positions import number_of, positions

Sides = tuple[Dim, Dim]
"""Before and behind."""
MOST_PIECES = 16
"""Each is an instruction: where an axis would be repeated more often, one finds all elements by their index."""


def fill(l: Lowering, target: View, value: np.ndarray | View) -> None:
    """Give all elements one value: of a constant, or of a tensor of one element."""
    if isinstance(value, np.ndarray):
        if target.dtype == "f32" and target.is_contiguous:
            l.emit("fill", target, float(value.reshape(-1)[0]))
            return
        value = l.constant(value)
    repeated = l.reshaped(value, ()).broadcast(target.shape)
    assert repeated is not None
    l.copy(repeated, target)


def sizes_of(l: Lowering, value: Value | None) -> list[Dim]:
    """The elements of an operand that says how, which may be named sizes."""
    content = l.facts.of(value).content
    if content is None or None in content:
        raise l.refuse("an operand that says how is known only while running")
    return [size for size in content if size is not None]


@rule("ConstantOfShape")
def _constant_of_shape(l: Lowering, node: Node) -> None:
    value = attribute(node, "value", None)
    fill(l, l.dense_output(present(node.outputs[0])), np.zeros(1, np.float32) if value is None else value)


@rule("Tile")
def _tile(l: Lowering, node: Node) -> None:
    """Each repeated axis becomes two, the first of which stays where it is."""
    view, output = l.view(present(node.inputs[0])), present(node.outputs[0])
    repeats = sizes_of(l, node.inputs[1])
    if all(size == 1 or count == 1 for size, count in zip(view.shape, repeats, strict=True)):
        repeated = view.broadcast(l.shape(output))
        assert repeated is not None
        l.views[output] = repeated
        return
    axes = [axis for axis, count in enumerate(repeats) if count != 1]
    spare = MAX_RANK - view.rank
    if spare < 1:
        raise l.refuse(f"a tensor of {view.rank + 1} axes")
    while axes:
        now, axes = axes[:spare], axes[spare:]
        shape: list[Dim] = []
        source: list[Dim] = []
        strides: list[Dim] = []
        for axis, (size, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
            if axis in now:
                shape, source, strides = [*shape, repeats[axis]], [*source, repeats[axis]], [*strides, 0]
            shape, source, strides = [*shape, size], [*source, size], [*strides, stride]
        sizes = [size * repeats[axis] if axis in now else size for axis, size in enumerate(view.shape)]
        target = l.temporary(sizes, view.dtype) if axes else l.dense_output(output)
        l.copy(view.relaid(shape, strides), target.relaid(shape, dense_strides(shape)))
        view = target


@rule("Pad")
def _pad(l: Lowering, node: Node) -> None:
    source, output = l.view(present(node.inputs[0])), present(node.outputs[0])
    rank = source.rank
    pads, given = sizes_of(l, node.inputs[1]), [*node.inputs[2:4], None, None]
    axes = list(range(rank)) if given[1] is None else [axis % rank for axis in l.ints(given[1])]
    before: list[Dim] = [0] * rank
    after: list[Dim] = [0] * rank
    for i, axis in enumerate(axes):
        before[axis], after[axis] = pads[i], pads[i + len(axes)]
    mode = attribute(node, "mode", "constant")
    if mode != "constant":
        _pad_with_elements(l, source, output, before, after, mode)
        return
    value: np.ndarray | View = zeros_of(source.dtype)
    if given[0] is not None:
        known = l.array(given[0])
        value = l.view(given[0]) if known is None else known
    sides = list(zip(before, after, strict=True))
    _pad_with_value(l, source, output, [_cuts(l, each) for each in sides], [_adds(l, each) for each in sides], value)


def zeros_of(dtype: str) -> np.ndarray:
    return np.zeros(1, ARRAY_TYPES[dtype])


def _pad_with_value(
    l: Lowering, source: View, output: Value, cuts: Sequence[Sides], adds: Sequence[Sides], value: np.ndarray | View
) -> None:
    """For each axis what is taken away on both sides, and what is added then."""
    for axis, (first, last) in enumerate(cuts):
        if (first, last) != (0, 0):
            count = source.shape[axis] - first - last
            l.require_not_negative(count)
            source = source.sliced(axis, first, count)
    if all(sides == (0, 0) for sides in adds):
        l.views[output] = source
        return
    target = l.dense_output(output)
    fill(l, target, value)
    for axis, (first, _) in enumerate(adds):
        target = target.sliced(axis, first, source.shape[axis])
    l.copy(source, target)


def _sign(l: Lowering, size: Dim) -> int:
    if size == 0:
        return 0
    if is_nonnegative(size):
        return 1
    if is_nonnegative(-size):
        return -1
    raise l.refuse("whether it adds or takes away depends on a size")


def _cuts(l: Lowering, sides: Sides) -> Sides:
    first, last = (-pad if _sign(l, pad) < 0 else 0 for pad in sides)
    return first, last


def _adds(l: Lowering, sides: Sides) -> Sides:
    first, last = (pad if _sign(l, pad) > 0 else 0 for pad in sides)
    return first, last


def _pad_with_elements(
    l: Lowering, view: View, output: Value, before: Sequence[Dim], after: Sequence[Dim], mode: str
) -> None:
    """Axis by axis; each reads what the axes before have made."""
    shape = l.shape(output)
    if 0 in shape:
        l.output(output)
        return
    padded = [axis for axis in range(view.rank) if (before[axis], after[axis]) != (0, 0)]
    for axis in padded:
        l.require_not_negative(view.shape[axis] - 1)
        sizes = [*view.shape[:axis], shape[axis], *view.shape[axis + 1 :]]
        target = l.dense_output(output) if axis == padded[-1] else l.temporary(sizes, view.dtype)
        at: Dim = 0
        if mode == "wrap" and not _has_few_pieces(view.shape[axis], shape[axis]):
            _along(l, view, target, axis, number_of(l, before[axis]), mode)
            view = target
            continue
        for first, count, step in _pieces(l, view.shape[axis], before[axis], after[axis], mode):
            l.copy(view.sliced(axis, first, count, step), target.sliced(axis, at, count))
            at = at + count
        view = target
    if not padded:
        l.views[output] = view


def _has_few_pieces(size: Dim, padded: Dim) -> bool:
    """Whether it is known how often the elements of an axis are repeated, and that this is not often."""
    return isinstance(size, int) and isinstance(padded, int) and padded <= MOST_PIECES * size


def _pieces(l: Lowering, size: Dim, before: Dim, after: Dim, mode: str) -> Iterator[tuple[Dim, Dim, int]]:
    """What a padded axis consists of: where each piece starts, how long it is, and its step."""
    cuts, adds = _cuts(l, (before, after)), _adds(l, (before, after))
    if adds[0] != 0:
        yield from _added(l, size, adds[0], mode, at_front=True)
    kept = size - cuts[0] - cuts[1]
    l.require_not_negative(kept)
    yield cuts[0], kept, 1
    if adds[1] != 0:
        yield from _added(l, size, adds[1], mode, at_front=False)


def _added(l: Lowering, size: Dim, count: Dim, mode: str, at_front: bool) -> Iterator[tuple[Dim, Dim, int]]:
    if mode == "edge":
        yield (0 if at_front else size - 1), count, 0
    elif mode == "reflect":
        l.require_not_negative(size - 1 - count)
        yield (count if at_front else size - 2), count, -1
    else:
        assert isinstance(size, int)
        assert isinstance(count, int)
        whole, rest = divmod(count, size)
        if at_front:
            yield size - rest, rest, 1
        for _ in range(whole):
            yield 0, size, 1
        if not at_front:
            yield 0, rest, 1


def _along(l: Lowering, view: View, target: View, axis: int, before: View, mode: str) -> None:
    """A padded axis by index, however many elements are added or taken away."""
    count, size = target.shape[axis], view.shape[axis]
    w = Writer(l)
    place = w.op("sub", w.view(positions(l, count)), w.view(before))
    length = w.view(number_of(l, size))
    if mode == "edge":
        found = w.op("max", w.op("min", place, w.op("sub", length, 1)), 0)
    else:
        period = length if mode == "wrap" else w.op("max", w.op("mul", w.op("sub", length, 1), 2), 1)
        rest = w.op("sub", place, w.op("mul", w.op("div", place, period), period))
        found = w.op("select", w.op("less", rest, 0), w.op("add", rest, period), rest)
        if mode == "reflect":
            found = w.op("select", w.op("less", found, length), found, w.op("sub", period, found))
    index = l.temporary((count,), "i64")
    w.write([(index, found)])
    outer, inner = count_of(view.shape[:axis]), count_of(view.shape[axis + 1 :])
    rows = l.reshaped(l.dense(view), (outer, size, inner))
    l.emit("gather", rows, index, target.reshaped((outer, count, inner)))


def pad_by_index(l: Lowering, view: View, output: Value, sides: Sequence[Sequence[Dim | View]], mode: str) -> None:
    """With elements of the operand; how many come on each side of an axis may be known only while running."""
    for axis, (before, after) in enumerate(sides):
        if before == 0 and after == 0:
            continue
        numbers = Numbers(l)
        size, first, last = (numbers.of(number) for number in (view.shape[axis], before, after))
        most = size - 1 if mode == "reflect" else size * MOST
        numbers.demand(*((each <= 0) | (most >= each) for each in (first, last)))
        (count,) = numbers.let(size + first + last)
        (start,) = numbers.views(first)
        target = l.temporary([*view.shape[:axis], count, *view.shape[axis + 1 :]], view.dtype)
        _along(l, view, target, axis, start, mode)
        view = target
    l.set_shape(output, view.shape)
    l.views[output] = view


@rule("CenterCropPad")
def _center_crop_pad(l: Lowering, node: Node) -> None:
    """What is odd is added, or taken away, behind."""
    source = l.view(present(node.inputs[0]))
    axes = attribute(node, "axes", None)
    cuts: list[Sides] = [(0, 0)] * source.rank
    adds: list[Sides] = [(0, 0)] * source.rank
    chosen = range(source.rank) if axes is None else [axis % source.rank for axis in axes]
    for axis, wanted in zip(chosen, sizes_of(l, node.inputs[1]), strict=True):
        numbers = Numbers(l)
        missing = numbers.of(wanted) - source.shape[axis]
        more, less = numbers.let(numbers.larger(missing, 0), numbers.larger(numbers.of(0) - missing, 0))
        adds[axis] = (floor_divide(more, 2), more - floor_divide(more, 2))
        cuts[axis] = (floor_divide(less, 2), less - floor_divide(less, 2))
    _pad_with_value(l, source, present(node.outputs[0]), cuts, adds, zeros_of(source.dtype))


@rule("DepthToSpace", "SpaceToDepth")
def _blocks(l: Lowering, node: Node) -> None:
    """A block of pixels is a block of channels."""
    source, output = l.view(present(node.inputs[0])), present(node.outputs[0])
    block, crd = node.attrs["blocksize"], attribute(node, "mode", "DCR") == "CRD"
    to_space = node.op == "DepthToSpace"
    batch, deep, *_ = l.shape(output) if not to_space else source.shape
    _, depth, height, width = l.shape(output) if to_space else source.shape
    if to_space:
        rows, columns = source.shape[2:]
    else:
        rows, columns = (floor_divide(size, block) for size in (height, width))
        l.require_equal(rows * block, height)
        l.require_equal(columns * block, width)
    l.require_equal(depth * block * block, deep)
    channels = (depth, block, block) if crd else (block, block, depth)
    perm = [0, 1, 4, 2, 5, 3] if crd else [0, 3, 4, 1, 5, 2]
    small = (batch, *channels, rows, columns)
    large = (batch, depth, rows, block, columns, block)
    if to_space:
        l.views[output] = l.reshaped(l.reshaped(source, small).transposed(perm), l.shape(output))
    else:
        back = [perm.index(axis) for axis in range(6)]
        l.views[output] = l.reshaped(l.reshaped(source, large).transposed(back), l.shape(output))
