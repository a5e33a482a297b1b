"""Resize."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Dim, Node
from webrnn.ir.dims import floor_divide
from webrnn.reference.resize import scaled_length

from ..facts import Fact
from .registry import from_front, is_given, operand, rule, unknown_sizes

_EXACT = 1 << 8
"""Up to this numerator and denominator the product of a scale and a size below 2^16 is exact in float32."""


@rule("Resize")
def resize(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x = inputs[0]
    if x.shape is None:
        return [Fact(x.dtype)]
    axes = [from_front(axis, len(x.shape)) for axis in node.attrs.get("axes") or range(len(x.shape))]
    scales, lengths = operand(inputs, 2), operand(inputs, 3)
    result: list[Dim | None] = list(x.shape)
    if is_given(node, 2) and scales.shape != (0,):
        if scales.floats is None:
            return [Fact(x.dtype, unknown_sizes(len(x.shape)))]
        for axis, scale in zip(axes, scales.floats, strict=True):
            result[axis] = _scaled(result[axis], scale)
    else:
        stretches = node.attrs.get("keep_aspect_ratio_policy", "stretch") == "stretch"
        known = lengths.content if stretches else None
        for axis, length in zip(axes, known or (None,) * len(axes), strict=True):
            result[axis] = length
    return [Fact(x.dtype, tuple(result))]


def _scaled(size: Dim | None, scale: float) -> Dim | None:
    if size is None:
        return None
    if isinstance(size, int):
        return scaled_length(size, scale)
    numerator, denominator = float(scale).as_integer_ratio()
    if denominator > _EXACT or numerator > _EXACT:
        return None
    return floor_divide(size * numerator, denominator)
