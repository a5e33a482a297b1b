"""Ops that make axes shorter."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import WEBRNN, Dim, DType, Node, Shape
from webrnn.ops.sets import REDUCTIONS

from ..facts import Fact, size_of
from .registry import from_front, is_given, operand, rule, unknown_sizes


@rule(*REDUCTIONS)
def reduce(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, axes = inputs[0], operand(inputs, 1)
    keeps = bool(node.attrs.get("keepdims", 1))
    if x.shape is None:
        return [Fact(x.dtype)]
    chosen = axes.ints if is_given(node, 1) else ()
    if chosen is None:
        return [Fact(x.dtype, unknown_sizes(len(x.shape)) if keeps else None)]
    if not chosen:
        if node.attrs.get("noop_with_empty_axes", 0):
            return [Fact(x.dtype, x.shape)]
        chosen = tuple(range(len(x.shape)))
    return [Fact(x.dtype, _reduced(x.shape, chosen, keeps))]


@rule("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def class_loss(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    scores, target = inputs[:2]
    shape = target.shape if node.attrs.get("reduction", "mean") == "none" else ()
    return [Fact(scores.dtype, shape), Fact(scores.dtype, scores.shape)]


@rule("ArgMax", "ArgMin")
def arg_extreme(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    sizes = inputs[0].shape
    if sizes is None:
        return [Fact(DType.INT64)]
    return [Fact(DType.INT64, _reduced(sizes, (node.attrs.get("axis", 0),), bool(node.attrs.get("keepdims", 1))))]


@rule("Choose", domain=WEBRNN)
def choose(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(DType.INT64, inputs[1].shape)]


def _reduced(sizes: Shape, axes: Sequence[int], keeps: bool) -> Shape:
    gone = {from_front(axis, len(sizes)) for axis in axes}
    kept: list[Dim | None] = []
    for axis, size in enumerate(sizes):
        if axis not in gone:
            kept.append(size)
        elif keeps:
            kept.append(1)
    return tuple(kept)


@rule("TopK")
def top_k(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, k = inputs[0], inputs[1].content
    if x.shape is None:
        return [Fact(x.dtype), Fact(DType.INT64)]
    axis = from_front(node.attrs.get("axis", -1), len(x.shape))
    sizes = (*x.shape[:axis], k[0] if k else None, *x.shape[axis + 1 :])
    return [Fact(x.dtype, sizes), Fact(DType.INT64, sizes)]


@rule("Unique")
def unique(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, axis = inputs[0], node.attrs.get("axis")
    sizes: Shape | None = (None,)
    length = None if x.shape is None else size_of(x.shape)
    if axis is not None:
        sizes = x.shape
        if sizes is not None:
            axis = from_front(axis, len(sizes))
            length = sizes[axis]
            sizes = (*sizes[:axis], None, *sizes[axis + 1 :])
    return [Fact(x.dtype, sizes), *(Fact(DType.INT64, (size,)) for size in (None, length, None))]
