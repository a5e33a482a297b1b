"""Attention and rotary embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Dim, Node, Shape
from webrnn.ir.dims import quotient

from ..facts import Fact
from .registry import is_given, rule


@rule("RotaryEmbedding")
def rotary_embedding(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(inputs[0].dtype, inputs[0].shape)]


@rule("Attention")
def attention(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    q, k, v = inputs[:3]
    types = [q.dtype, k.dtype, v.dtype, q.dtype]
    if q.shape is None:
        return [Fact(dtype) for dtype in types]
    is_packed = len(q.shape) == 3
    batch, heads, queries, _ = _split(q.shape, node.attrs.get("q_num_heads"))
    _, key_heads, keys, key_size = _split(k.shape, node.attrs.get("kv_num_heads"))
    _, _, _, value_size = _split(v.shape, node.attrs.get("kv_num_heads"))
    if is_given(node, 4):
        past = inputs[4].shape
        keys = None if past is None or keys is None or past[2] is None else past[2] + keys
    width = None if heads is None or value_size is None else heads * value_size
    shapes: list[Shape] = [
        (batch, queries, width) if is_packed else (batch, heads, queries, value_size),
        (batch, key_heads, keys, key_size),
        (batch, key_heads, keys, value_size),
        (batch, heads, queries, keys),
    ]
    return [Fact(dtype, shape) for dtype, shape in zip(types, shapes, strict=True)]


def _split(shape: Shape | None, heads: int | None) -> Shape:
    """The four axes of an operand: batch, heads, steps, size."""
    if shape is None:
        return (None,) * 4
    if len(shape) == 4:
        return shape
    batch, steps, width = shape
    size: Dim | None = None if width is None or heads is None else quotient(width, heads)
    return batch, heads, steps, size
