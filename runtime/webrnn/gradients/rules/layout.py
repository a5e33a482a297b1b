"""Ops that move elements: their cotangents move back, and what was repeated is summed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import DType, Value

from ..emitter import Size
from ..registry import Pull, rule

Found = Sequence[Value | None]


@rule("Identity")
def identity(g: Pull) -> Found:
    return [g.d]


@rule("ExpectShape", domain="webrnn")
def expect_shape(g: Pull) -> Found:
    return [g.d]


@rule("Reshape", "Flatten")
def reshape(g: Pull) -> Found:
    return [g.b.reshaped(g.d, g.x(0))]


@rule("Squeeze")
def squeeze(g: Pull) -> Found:
    axes = g.b.ints_of(g.operand(1)) if g.operand(1) is not None else None
    if axes is None:
        return [g.b.reshaped(g.d, g.x(0))]
    rank = g.b.rank(g.x(0))
    return [g.b.op("Unsqueeze", g.d, g.b.ints(*sorted(axis % rank for axis in axes)))]


@rule("Unsqueeze")
def unsqueeze(g: Pull) -> Found:
    axes = g.b.ints_of(g.operand(1))
    if axes is None:
        return [g.b.reshaped(g.d, g.x(0))]
    rank = g.b.rank(g.x(0)) + len(axes)
    return [g.b.op("Squeeze", g.d, g.b.ints(*sorted(axis % rank for axis in axes)))]


@rule("Transpose")
def transpose(g: Pull) -> Found:
    rank = g.b.rank(g.x(0))
    perm = g.node.attrs.get("perm") or list(range(rank))[::-1]
    return [g.b.transposed(g.d, [int(place) for place in np.argsort([axis % rank for axis in perm])])]


@rule("Expand")
def expand(g: Pull) -> Found:
    return [g.b.summed_to(g.d, g.x(0))]


@rule("Tile")
def tile(g: Pull) -> Found:
    b, x, rank = g.b, g.x(0), g.b.rank(g.x(0))
    repeats = b.ints_of(g.x(1))
    parts: list[Size] = []
    for axis in range(rank):
        parts += [b.sliced(g.x(1), 0, axis, axis + 1) if repeats is None else repeats[axis], b.size(x, axis)]
    cut = b.op("Reshape", g.d, b.sizes(parts), allowzero=1)
    return [b.op("ReduceSum", cut, b.ints(*range(0, 2 * rank, 2)), keepdims=0)]


@rule("Concat")
def concat(g: Pull) -> Found:
    b = g.b
    operands = [g.x(index) for index in range(len(g.node.inputs))]
    axis = int(g.number("axis", 0)) % b.rank(operands[0])
    sizes = [b.size(value, axis) for value in operands]
    numbers = [size for size in sizes if isinstance(size, int)]
    found: list[Value | None] = []
    start: Size = 0
    if len(numbers) == len(sizes):
        parts = [b.value("part") for _ in operands]
        b.add_node("Split", [g.d, b.ints(*numbers)], parts, axis=axis)
        return [part if g.wants(index) else None for index, part in enumerate(parts)]
    for index, size in enumerate(sizes):
        end = b.arithmetic("Add", start, size)
        found.append(b.sliced(g.d, axis, start, end) if g.wants(index) else None)
        start = end
    return found


@rule("Split")
def split(g: Pull) -> Found:
    parts = []
    for value, given in zip(g.node.outputs, g.given, strict=True):
        if value is None:
            raise g.refusal("a part of it has no name")
        parts.append(g.b.zeros_like(value) if given is None else given)
    return [g.b.op("Concat", *parts, axis=int(g.number("axis", 0)))]


@rule("Slice")
def slice_(g: Pull) -> Found:
    b, x, d = g.b, g.x(0), g.d
    rank = b.rank(x)
    starts = b.ints_of(g.operand(1))
    axes = b.ints_of(g.operand(3)) if g.operand(3) is not None else None
    count = b.shape(g.x(1))[0]
    if axes is None and g.operand(3) is None and isinstance(count, int):
        axes = list(range(count))
    if axes is None:
        raise g.refusal("its axes are known only while it runs")
    steps = g.ints(4, "steps") if g.operand(4) is not None else [1] * len(axes)
    for index, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        axis %= rank
        size, taken = b.size(x, axis), b.size(d, axis)
        if starts is None:
            start = b.op("Slice", g.x(1), b.ints(index), b.ints(index + 1), b.ints(0))
            if b.dtype(g.x(1)) is not b.dtype(b.ints(0)):
                start = b.op("CastLike", start, b.ints(0))
            first = _first_of_unknown(g, start, size, step)
        else:
            first = _first(g, starts[index], size, step)
        d = _spread_out(g, d, axis, first, size, taken, step)
    if b.facts.shape(d) != b.facts.shape(x):  # how many elements a slice takes may be known only while it runs
        d = b.op("Reshape", d, b.shape_of(x), allowzero=1)
    return [d]


def _first(g: Pull, start: int, size: Size, step: int) -> Size:
    """Where a slice begins, for a size that may be known only while running."""
    begin = g.b.arithmetic("Add", size, start) if start < 0 else start
    last = g.b.arithmetic("Sub", size, 1) if step < 0 else size
    return g.b.arithmetic("Max", g.b.arithmetic("Min", begin, last), 0)


def _first_of_unknown(g: Pull, start: Value, size: Size, step: int) -> Size:
    b = g.b
    begin = b.op("Where", b.op("Less", start, b.ints(0)), b.op("Add", start, b.as_value(size)), start)
    last = b.arithmetic("Sub", size, 1) if step < 0 else size
    return b.arithmetic("Max", b.arithmetic("Min", begin, last), 0)


def _spread_out(g: Pull, d: Value, axis: int, first: Size, size: Size, taken: Size, step: int) -> Value:
    """Zeros around and between the elements of a cotangent, so that each is where it came from."""
    b = g.b
    if step < 0:
        d = b.sliced(d, axis, -1, -(2**31), -1)
        span = b.arithmetic("Mul", b.arithmetic("Max", b.arithmetic("Sub", taken, 1), 0), -step)
        first = b.arithmetic("Max", b.arithmetic("Sub", first, span), 0)
    stride = abs(step)
    if stride > 1:
        wide = b.padded(b.op("Unsqueeze", d, b.ints(axis + 1)), axis + 1, 0, stride - 1)
        sizes = [b.size(d, other) for other in range(b.rank(d))]
        sizes[axis] = b.arithmetic("Mul", taken, stride)
        d = b.op("Reshape", wide, b.sizes(sizes), allowzero=1)
        taken = sizes[axis]
    before, after = first, b.arithmetic("Sub", b.arithmetic("Sub", size, first), taken)
    if stride == 1:
        return b.padded(d, axis, before, after)
    d = b.padded(d, axis, before, b.arithmetic("Max", after, 0))
    return b.sliced(d, axis, 0, size)


@rule("Pad")
def pad(g: Pull) -> Found:
    b, x = g.b, g.x(0)
    rank = b.rank(x)
    axes = g.ints(3, "axes") if g.operand(3) is not None else list(range(rank))
    mode = g.attr("mode", "constant")
    of_number = _around(g) if g.wants(2) else None
    pads = b.ints_of(g.operand(1))

    def amount(place: int) -> Size:
        return b.sliced(g.x(1), 0, place, place + 1) if pads is None else pads[place]

    if mode == "constant":
        d = g.d
        for index, axis in enumerate(axes):
            before, after, axis = amount(index), amount(index + len(axes)), axis % rank
            if before == 0 and after == 0:
                continue
            if pads is None:
                d = b.sliced(d, axis, before, b.arithmetic("Add", before, b.size(x, axis)))
                continue
            assert isinstance(before, int)
            assert isinstance(after, int)
            cut = b.sliced(d, axis, max(before, 0), -after if after > 0 else 2**31 - 1)
            d = b.padded(cut, axis, max(-before, 0), max(-after, 0))
        return [d, None, of_number]

    def forward() -> Value:
        made = x
        for index, axis in enumerate(axes):
            before, after, axis = amount(index), amount(index + len(axes)), axis % rank
            if before == 0 and after == 0:
                continue
            length = b.op("Squeeze", b.as_value(b.size(x, axis)), b.ints(0))
            zero, one = b.constant(np.int64(0)), b.constant(np.int64(1))
            places = b.op("Pad", b.op("Range", zero, length, one), b.sizes([before, after]), mode=mode)
            made = b.op("Gather", made, places, axis=axis)
        return made

    return g.through(forward)


def _around(g: Pull) -> Value:
    """The sum of what a Pad has put around."""
    b, x = g.b, g.x(0)
    ones = b.op("Expand", b.number(1.0, x), b.shape_of(x))
    is_inside = b.op("Cast", b.op("Pad", ones, g.x(1), b.number(0.0, x), g.operand(3)), to=int(DType.BOOL))
    return b.reshaped(b.op("ReduceSum", b.where(is_inside, None, g.d), keepdims=0), g.x(2))


@rule("Trilu")
def triangle(g: Pull) -> Found:
    return [g.b.op("Trilu", g.d, *g.node.inputs[1:], **g.node.attrs)]


@rule("ReverseSequence")
def reverse_sequence(g: Pull) -> Found:
    return [g.b.op("ReverseSequence", g.d, g.x(1), **g.node.attrs)]


@rule("DepthToSpace")
def depth_to_space(g: Pull) -> Found:
    b, x, block = g.b, g.x(0), int(g.number("blocksize", 1))
    n, c, h, w = (b.size(x, axis) for axis in range(4))
    inner = b.arithmetic("Div", c, block * block)
    by_depth = g.attr("mode", "DCR") == "DCR"
    cut = b.op("Reshape", g.d, b.sizes([n, inner, h, block, w, block]), allowzero=1)
    return [b.reshaped(b.op("Transpose", cut, perm=[0, 3, 5, 1, 2, 4] if by_depth else [0, 1, 3, 5, 2, 4]), x)]


@rule("SpaceToDepth")
def space_to_depth(g: Pull) -> Found:
    return [g.b.op("DepthToSpace", g.d, blocksize=int(g.number("blocksize", 1)), mode=g.attr("mode", "DCR"))]
