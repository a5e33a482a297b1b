"""Ops that pick elements or make tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from webrnn import reference
from webrnn.ir import WEBRNN, Dim, DType, Node, SymbolicDim
from webrnn.ir.dims import floor_divide, is_nonnegative
from webrnn.ops.rows import with_trait

from ..facts import Fact
from .registry import from_front, is_given, operand, rule, unknown_sizes

_BEYOND = 2**31 - 1
"""An end of a Slice from here on means the end of the axis."""


@rule("Gather")
def gather(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    data, indices = inputs
    if data.shape is None or indices.shape is None:
        return [Fact(data.dtype)]
    axis = from_front(node.attrs.get("axis", 0), len(data.shape))
    return [Fact(data.dtype, (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))]


@rule("GatherElements")
def gather_elements(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(inputs[0].dtype, inputs[1].shape)]


@rule("GatherND")
def gather_nd(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    data, indices = inputs
    if data.shape is None or not indices.shape or not isinstance(indices.shape[-1], int):
        return [Fact(data.dtype)]
    skipped = node.attrs.get("batch_dims", 0) + indices.shape[-1]
    return [Fact(data.dtype, (*indices.shape[:-1], *data.shape[skipped:]))]


@rule(*with_trait("scatter"))
def scatter(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(inputs[0].dtype, inputs[0].shape)]


@rule("Slice")
def slice_(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x = inputs[0]
    if x.shape is None:
        return [Fact(x.dtype)]
    starts, ends = inputs[1].content, inputs[2].content
    axes = operand(inputs, 3).ints if is_given(node, 3) else None if starts is None else range(len(starts))
    if axes is None:
        return [Fact(x.dtype, unknown_sizes(len(x.shape)))]
    unknown = (None,) * len(axes)
    steps = (operand(inputs, 4).content or unknown) if is_given(node, 4) else (1,) * len(axes)
    result = list(x.shape)
    for axis, start, end, step in zip(axes, starts or unknown, ends or unknown, steps, strict=True):
        axis = from_front(axis, len(result))
        result[axis] = _cut(result[axis], start, end, step)
    return [Fact(x.dtype, tuple(result))]


def _cut(length: Dim | None, start: Dim | None, end: Dim | None, step: Dim | None) -> Dim | None:
    if isinstance(length, int) and isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        axis = np.broadcast_to(np.int8(0), (length,))
        (cut,) = reference.call("Slice", "", [axis, *(np.array([n], np.int64) for n in (start, end, 0, step))], {})
        return len(cut)
    if length is None or not isinstance(step, int) or step == 0:
        return None
    if step < 0:
        from_the_end = isinstance(start, int) and (start == -1 or start >= _BEYOND)
        to_the_front = isinstance(end, int) and end <= -_BEYOND
        return floor_divide(length - step - 1, -step) if from_the_end and to_the_front else None
    first, last = _place(start, length), _place(end, length)
    if first is None and last is not None and isinstance(start, int) and start >= 0:
        # behind the end of a short axis nothing is left, which is what the same number says if it is not negative
        places = floor_divide(last - start + step - 1, step)
        return places if is_nonnegative(places) else None
    if first is None or last is None or not _is_size(last - first, length):
        return None
    return floor_divide(last - first + step - 1, step)


def _place(bound: Dim | None, length: Dim) -> Dim | None:
    """Where a bound of a slice lies on an axis, if it is known to lie on it."""
    if bound is None:
        return None
    if isinstance(bound, int) and bound >= _BEYOND:
        return length
    place = length + bound if isinstance(bound, int) and bound < 0 else bound
    is_on_axis = _is_size(length - place, length) or _is_rounded_down(place, length)
    return place if _is_size(place, length) and is_on_axis else None


def _is_rounded_down(dim: Dim, length: Dim) -> bool:
    """Whether it is the largest multiple of a number that is not larger than the length of the axis."""
    if not isinstance(dim, SymbolicDim) or len(dim.terms) != 1:
        return False
    factor = next(iter(dim.terms))[1]
    return factor > 1 and dim == factor * floor_divide(length, factor)


def _is_size(dim: Dim, length: Dim) -> bool:
    """Whether it is at least 0 for all sizes, as the length of an axis always is."""
    return dim == length or is_nonnegative(dim)


@rule("ConstantOfShape")
def constant_of_shape(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    value = node.attrs.get("value")
    dtype = DType.FLOAT if value is None else DType.of(value)
    if inputs[0].content is not None:
        return [Fact(dtype, inputs[0].content)]
    length = inputs[0].shape[0] if inputs[0].shape else None
    return [Fact(dtype, unknown_sizes(length) if isinstance(length, int) else None)]


@rule("Random", domain=WEBRNN)
def random(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    sizes = inputs[1].content
    length = inputs[1].shape[0] if inputs[1].shape else None
    return [Fact(DType.FLOAT, sizes or (unknown_sizes(length) if isinstance(length, int) else None))]


@rule("Range")
def range_(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    dtype = next((fact.dtype for fact in inputs if fact.dtype is not None), None)
    if all(fact.floats for fact in inputs):
        first, last, step = (fact.floats[0] for fact in inputs if fact.floats)
        return [Fact(dtype, (max(0, ceil((last - first) / step)),))]
    bounds = [None if fact.content is None else fact.content[0] for fact in inputs]
    start, limit, delta = bounds
    if isinstance(start, int) and isinstance(limit, int) and isinstance(delta, int):
        return [Fact(dtype, (max(0, -((start - limit) // delta)),))]
    if start is None or limit is None or not isinstance(delta, int) or delta < 1 or not is_nonnegative(limit - start):
        return [Fact(dtype, (None,))]
    return [Fact(dtype, (floor_divide(limit - start + delta - 1, delta),))]


@rule("EyeLike")
def eye_like(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(DType(node.attrs["dtype"]) if node.attrs.get("dtype") else inputs[0].dtype, inputs[0].shape)]


@rule("OneHot")
def one_hot(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    indices, depth, values = inputs
    if indices.shape is None:
        return [Fact(values.dtype)]
    rank = len(indices.shape) + 1
    axis = from_front(node.attrs.get("axis", -1), rank)
    classes = depth.content[0] if depth.content else int(depth.floats[0]) if depth.floats else None
    return [Fact(values.dtype, (*indices.shape[:axis], classes, *indices.shape[axis:]))]


@rule("NonZero")
def non_zero(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(DType.INT64, (None if inputs[0].rank is None else max(inputs[0].rank, 1), None))]


@rule("NonMaxSuppression")
def non_max_suppression(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(DType.INT64, (None, 3))]


@rule("ExpectShape", domain=WEBRNN)
def expect_shape(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    sizes = node.attrs["sizes"]
    known = inputs[0].shape or (None,) * len(sizes)
    checked = [have if need is None else need for have, need in zip(known, sizes, strict=True)]
    for axis, other in node.attrs["same"]:
        like = inputs[1].shape
        if like is not None and like[other] is not None and not isinstance(checked[axis], int):
            checked[axis] = like[other]
    return [Fact(inputs[0].dtype, tuple(checked))]


@rule("SequenceMask", domain=WEBRNN)
def sequence_mask(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    sizes = inputs[1].shape
    return [Fact(DType.BOOL, (None, None, 1) if sizes is None else (sizes[0], sizes[1], 1))]
