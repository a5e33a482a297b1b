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
        policy = node.attrs.get("keep_aspect_ratio_policy", "stretch")
        known = lengths.content
        if known is not None and policy != "stretch":
            known = _in_proportion([result[axis] for axis in axes], known, policy)
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


def _in_proportion(
    sizes: Sequence[Dim | None], lengths: Sequence[Dim | None], policy: str
) -> tuple[Dim | None, ...] | None:
    """The lengths that all axes have with the smallest or the largest of their scales."""
    pairs = [(size, length) for size, length in zip(sizes, lengths, strict=True) if isinstance(size, int) and size]
    scales = [length / size for size, length in pairs if isinstance(length, int)]
    if len(scales) != len(sizes):
        return None
    scale = min(scales) if policy == "not_larger" else max(scales)
    return tuple(int(scale * size + 0.5) for size, _ in pairs)
