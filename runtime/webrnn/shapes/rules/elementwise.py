"""Ops that work element by element, with broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Dim, DType, Node, Shape
from webrnn.ops.rows import with_trait
from webrnn.ops.sets import BINARY, BITWISE, COMPARISONS, LOGICAL, MAPS, VARIADIC

from ..facts import Fact
from .registry import is_given, operand, rule


def broadcast_dim(first: Dim | None, second: Dim | None) -> Dim | None:
    """The size of an axis, given that the op succeeds: a size that is not 1 decides over an unknown one.

    >>> broadcast_dim(None, 5), broadcast_dim(None, 1), broadcast_dim(1, 3)
    (5, None, 3)
    """
    if first == second or second == 1:
        return first
    if first == 1:
        return second
    return next((size for size in (first, second) if isinstance(size, int)), None)


def broadcast(*shapes: Shape | None) -> Shape | None:
    """
    >>> broadcast((3, 1), (4,)), broadcast((3,), None)
    ((3, 4), None)
    """
    if not shapes:
        return None
    result: Shape | None = shapes[0]
    for shape in shapes[1:]:
        if result is None or shape is None:
            return None
        rank = max(len(result), len(shape))
        first = (1,) * (rank - len(result)) + result
        second = (1,) * (rank - len(shape)) + shape
        result = tuple(broadcast_dim(a, b) for a, b in zip(first, second, strict=True))
    return result


def common_type(inputs: Sequence[Fact]) -> DType | None:
    """ONNX never mixes types: where one is known, all are of it."""
    return next((fact.dtype for fact in inputs if fact.dtype is not None), None)


@rule(*MAPS, *BITWISE, *BINARY, *VARIADIC)
def same_type(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(common_type(inputs), broadcast(*(fact.shape for fact in inputs)))]


@rule(*COMPARISONS, *LOGICAL)
def to_bool(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(DType.BOOL, broadcast(*(fact.shape for fact in inputs)))]


@rule("IsNaN", "IsInf")
def test_of_floats(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(DType.BOOL, inputs[0].shape)]


@rule("Pow", "BitShift")
def type_of_first(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(inputs[0].dtype, broadcast(inputs[0].shape, inputs[1].shape))]


@rule(*with_trait("like"))
def like_first(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(inputs[0].dtype, inputs[0].shape)]


@rule("LayerNormalization")
def layer_normalization(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x = inputs[0]
    reduced: Shape | None = None
    if x.shape is not None:
        axis = node.attrs.get("axis", -1) % len(x.shape)
        reduced = (*x.shape[:axis], *(1,) * (len(x.shape) - axis))
    return [Fact(x.dtype, x.shape), Fact(DType.FLOAT, reduced), Fact(DType.FLOAT, reduced)]


@rule("BatchNormalization")
def batch_normalization(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    running = [Fact(fact.dtype, fact.shape) for fact in inputs[3:5]]
    return [Fact(inputs[0].dtype, inputs[0].shape), *running]


@rule("Dropout")
def dropout(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(inputs[0].dtype, inputs[0].shape), Fact(DType.BOOL, inputs[0].shape)]


@rule("Where")
def where(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(common_type(inputs[1:]), broadcast(*(fact.shape for fact in inputs)))]


@rule("Cast")
def cast(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(DType(node.attrs["to"]), inputs[0].shape)]


@rule("CastLike")
def cast_like(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(inputs[1].dtype, inputs[0].shape)]


@rule("QuantizeLinear")
def quantize(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    dtype = operand(inputs, 2).dtype
    if node.attrs.get("output_dtype"):
        dtype = DType(node.attrs["output_dtype"])
    elif not is_given(node, 2):
        dtype = DType.UINT8
    return [Fact(dtype, inputs[0].shape)]


@rule("DequantizeLinear")
def dequantize(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    dtype = DType(node.attrs["output_dtype"]) if node.attrs.get("output_dtype") else inputs[1].dtype
    return [Fact(dtype, inputs[0].shape)]
