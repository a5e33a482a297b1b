"""Ops that work element by element, with broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import DType, Node, Shape
from webrnn.ops.rows import with_trait
from webrnn.ops.sets import BINARY, BITWISE, COMPARISONS, LOGICAL, MAPS, VARIADIC

from ..facts import Fact
from .registry import broadcast, common_type, is_given, operand, rule


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


@rule("RMSNormalization")
def rms_normalization(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(inputs[1].dtype, inputs[0].shape)]


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


@rule("SwiGLU")
def type_and_broadcast(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(common_type(inputs), broadcast(*(fact.shape for fact in inputs)))]


@rule("Cast", "BitCast")
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


@rule("DynamicQuantizeLinear")
def dynamic_quantize(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(DType.UINT8, inputs[0].shape), Fact(DType.FLOAT, ()), Fact(DType.UINT8, ())]


@rule("DequantizeLinear")
def dequantize(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    dtype = DType(node.attrs["output_dtype"]) if node.attrs.get("output_dtype") else inputs[1].dtype
    return [Fact(dtype, inputs[0].shape)]
