"""Ops that rearrange a tensor: shapes, axes, joining and cutting."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Dim, DType, Node, Shape
from webrnn.ir.dims import floor_divide, is_nonnegative, quotient
from webrnn.reference.shape import equal_parts

from ..facts import Fact, size_of
from .registry import broadcast, common_type, from_front, is_given, operand, rule, unknown_sizes


@rule("Shape")
def shape(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    sizes = inputs[0].shape
    kept = None if sizes is None else sizes[slice(node.attrs.get("start", 0), node.attrs.get("end"))]
    return [Fact(DType.INT64, (None if kept is None else len(kept),), kept)]


@rule("Size")
def size(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    count = size_of(inputs[0].shape)
    return [Fact(DType.INT64, (), None if count is None else (count,))]


@rule("Reshape")
def reshape(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, target = inputs[0], inputs[1]
    if target.content is None:
        length = target.shape[0] if target.shape else None
        return [Fact(x.dtype, unknown_sizes(length) if isinstance(length, int) else None)]
    return [Fact(x.dtype, _reshaped(x.shape, target.content, bool(node.attrs.get("allowzero", 0))))]


def _reshaped(sizes: Shape | None, target: Sequence[Dim | None], allow_zero: bool) -> Shape:
    """A symbolic entry of the target may turn out to be 0, which copies a size, or -1, which computes one."""
    result: list[Dim | None] = []
    for axis, entry in enumerate(target):
        source = sizes[axis] if sizes is not None and axis < len(sizes) else None
        if entry == 0 and not allow_zero:
            result.append(source)
        elif isinstance(entry, int):
            result.append(None if entry < 0 else entry)
        elif entry is None or not is_nonnegative(entry):
            result.append(None)
        else:
            certain = allow_zero or source == entry or _only_symbolic_size(sizes, target, axis)
            result.append(entry if certain else None)
    if target.count(-1) == 1:
        axis = target.index(-1)
        result[axis] = _computed_size(sizes, result, axis)
    return tuple(result)


def _only_symbolic_size(sizes: Shape | None, target: Sequence[Dim | None], axis: int) -> bool:
    """Whether an entry that turns out to be 0 cannot mean another size: then the tensor has no elements, and no other
    axis of the result can be the empty one.
    """
    others = [entry for index, entry in enumerate(target) if index != axis]
    return all(isinstance(entry, int) and entry > 0 for entry in others) and size_of(sizes) == size_of(tuple(target))


def _computed_size(sizes: Shape | None, result: Sequence[Dim | None], axis: int) -> Dim | None:
    others = size_of(tuple(size for index, size in enumerate(result) if index != axis))
    total = size_of(sizes)
    if others is None or total is None:
        return None
    # A named size may be 0, and numpy refuses to compute a size beside an empty axis: then there is no result at all.
    return quotient(total, others)


@rule("Flatten")
def flatten(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    sizes = inputs[0].shape
    if sizes is None:
        return [Fact(inputs[0].dtype, (None, None))]
    axis = node.attrs.get("axis", 1)
    axis = axis + len(sizes) if axis < 0 else axis
    return [Fact(inputs[0].dtype, (size_of(sizes[:axis]), size_of(sizes[axis:])))]


@rule("Squeeze")
def squeeze(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, axes = inputs[0], operand(inputs, 1).ints
    if x.shape is None:
        return [Fact(x.dtype)]
    if not is_given(node, 1) or axes == ():
        decided = all(isinstance(size, int) for size in x.shape)
        return [Fact(x.dtype, tuple(size for size in x.shape if size != 1) if decided else None)]
    if axes is None:
        count = operand(inputs, 1).shape
        known = count is not None and len(count) == 1 and isinstance(count[0], int) and count[0] > 0
        return [Fact(x.dtype, (None,) * (len(x.shape) - count[0]) if known else None)]  # type: ignore[index,operator]
    gone = {from_front(axis, len(x.shape)) for axis in axes}
    return [Fact(x.dtype, tuple(size for axis, size in enumerate(x.shape) if axis not in gone))]


@rule("Unsqueeze")
def unsqueeze(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, axes = inputs[0], inputs[1].ints
    if x.shape is None or axes is None:
        return [Fact(x.dtype)]
    rank = len(x.shape) + len(axes)
    new = {from_front(axis, rank) for axis in axes}
    if len(new) != len(axes):
        raise ValueError("an axis is named twice")
    rest = iter(x.shape)
    return [Fact(x.dtype, tuple(1 if axis in new else next(rest) for axis in range(rank)))]


@rule("Transpose")
def transpose(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, perm = inputs[0], node.attrs.get("perm")
    if x.shape is None:
        return [Fact(x.dtype, unknown_sizes(None if perm is None else len(perm)))]
    order = range(len(x.shape))[::-1] if perm is None else perm
    return [Fact(x.dtype, tuple(x.shape[axis] for axis in order))]


@rule("Expand")
def expand(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, target = inputs[0], inputs[1]
    if target.content is not None:
        return [Fact(x.dtype, broadcast(x.shape, target.content))]
    length = target.shape[0] if target.shape else None
    sizes = unknown_sizes(length) if isinstance(length, int) else None
    return [Fact(x.dtype, None if sizes is None else broadcast(x.shape, sizes))]


@rule("Tile")
def tile(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, repeats = inputs[0], inputs[1].content
    if x.shape is None or repeats is None:
        return [Fact(x.dtype, unknown_sizes(x.rank))]
    sizes = zip(x.shape, repeats, strict=True)
    return [Fact(x.dtype, tuple(None if a is None or b is None else a * b for a, b in sizes))]


@rule("Concat")
def concat(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    dtype = common_type(inputs)
    shapes = [fact.shape for fact in inputs if fact.shape is not None]
    if not shapes:
        return [Fact(dtype)]
    rank = len(shapes[0])
    axis = from_front(node.attrs["axis"], rank)
    result: list[Dim | None] = [next((s[i] for s in shapes if s[i] is not None), None) for i in range(rank)]
    parts = [None if fact.shape is None else fact.shape[axis] for fact in inputs]
    result[axis] = None if None in parts else sum(part for part in parts if part is not None)
    for index in range(rank):
        static = [s[index] for s in shapes if isinstance(s[index], int)]
        if index != axis and static:
            result[index] = static[0]
    return [Fact(dtype, tuple(result))]


@rule("Split")
def split(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, count = inputs[0], len(node.outputs)
    if x.shape is None:
        return [Fact(x.dtype)] * count
    axis = from_front(node.attrs.get("axis", 0), len(x.shape))
    length = x.shape[axis]
    lengths: Sequence[Dim | None] = (None,) * count
    if is_given(node, 1):
        lengths = inputs[1].content or lengths
    elif isinstance(length, int):
        lengths = equal_parts(length, count)
    elif length is not None:
        part = floor_divide(length + count - 1, count)
        lengths = [*[part] * (count - 1), length - part * (count - 1)]
    return [Fact(x.dtype, (*x.shape[:axis], part, *x.shape[axis + 1 :])) for part in lengths]


@rule("Pad")
def pad(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, pads = inputs[0], inputs[1].content
    if x.shape is None or pads is None or (is_given(node, 3) and inputs[3].ints is None):
        return [Fact(x.dtype, unknown_sizes(x.rank))]
    axes = inputs[3].ints if is_given(node, 3) else range(len(x.shape))
    assert axes is not None
    result = list(x.shape)
    for index, axis in enumerate(axes):
        result[axis] = _padded(result[axis], pads[index], pads[index + len(axes)])
    return [Fact(x.dtype, tuple(result))]


def _padded(length: Dim | None, before: Dim | None, after: Dim | None) -> Dim | None:
    """Pads that are negative cut, and what is cut may be more than there is."""
    if length is None or before is None or after is None:
        return None
    certain = isinstance(length, int) and isinstance(before, int) and isinstance(after, int)
    return length + before + after if certain or (is_nonnegative(before) and is_nonnegative(after)) else None


@rule("DepthToSpace")
def depth_to_space(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    block = node.attrs["blocksize"]
    if inputs[0].shape is None:
        return [Fact(inputs[0].dtype, (None,) * 4)]
    batch, channels, *spatial = inputs[0].shape
    depth = None if channels is None else quotient(channels, block * block)
    return [Fact(inputs[0].dtype, (batch, depth, *(None if size is None else size * block for size in spatial)))]


@rule("SpaceToDepth")
def space_to_depth(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    block = node.attrs["blocksize"]
    if inputs[0].shape is None:
        return [Fact(inputs[0].dtype, (None,) * 4)]
    batch, channels, *spatial = inputs[0].shape
    depth = None if channels is None else channels * block * block
    return [
        Fact(
            inputs[0].dtype, (batch, depth, *(None if size is None else floor_divide(size, block) for size in spatial))
        )
    ]


@rule("CenterCropPad")
def center_crop_pad(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, sizes = inputs[0], inputs[1].content
    axes = node.attrs.get("axes")
    if x.shape is None or sizes is None:
        return [Fact(x.dtype, unknown_sizes(x.rank))]
    result = list(x.shape)
    for axis, size in zip(range(len(result)) if axes is None else axes, sizes, strict=True):
        result[axis] = size
    return [Fact(x.dtype, tuple(result))]
