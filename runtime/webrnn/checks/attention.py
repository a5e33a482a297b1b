"""Attention and rotary embeddings: [batch, heads, steps, size], or [batch, steps, heads * size]."""

from __future__ import annotations

from webrnn.errors import ModelError
from webrnn.ir import Dim, Shape
from webrnn.ir.dims import floor_divide

from .check import Check, spell
from .registry import check


def _heads(c: Check, index: int, name: str, count: str) -> Shape:
    """The sizes of an operand as [batch, heads, steps, size], None for those that are not known."""
    c.has_rank(index, name, 3, 4)
    shape = c.shape(index)
    if shape is None or len(shape) == 4:
        return (None,) * 4 if shape is None else shape
    heads = c.attribute(count, 0)
    c.that(heads > 0, "the number of heads is required for operands of rank 3", count, ModelError)
    batch, steps, width = shape
    c.multiple(width, heads, f"{width} values cannot be divided into {heads} heads", count)
    size: Dim | None = None if width is None else floor_divide(width, heads)
    return batch, heads, steps, size


@check("Attention")
def attention(c: Check) -> None:
    c.that(c.given(4) == c.given(5), "past_key and past_value must be given together", kind=ModelError)
    c.that(not (c.given(4) and c.given(6)), "nonpad_kv_seqlen cannot be combined with past_key", kind=ModelError)
    c.one_of("qk_matmul_output_mode", 0, (0, 1, 2, 3))
    for name in ("left_window_size", "right_window_size"):
        c.that(c.attribute(name, -1) >= -1, "it must be -1 or more", name, ModelError)
    ranks = {rank for index in range(3) if (rank := c.rank(index)) is not None}
    q, k, v = (
        _heads(c, index, name, count)
        for index, name, count in ((0, "Q", "q_num_heads"), (1, "K", "kv_num_heads"), (2, "V", "kv_num_heads"))
    )
    message = f"Q {spell(c.shape(0))}, K {spell(c.shape(1))} and V {spell(c.shape(2))} do not fit"
    c.that(len(ranks) <= 1, message)
    for axis, other in ((0, k), (3, k)):
        c.equal(q[axis], other[axis], message)
    for axis in range(3):
        c.equal(k[axis], v[axis], message)
    if isinstance(q[1], int) and isinstance(k[1], int):
        c.that(k[1] > 0 and q[1] % k[1] == 0, f"{q[1]} query heads are not a multiple of {k[1]} key heads")
    past = (c.shape(4) or (None,) * 4)[2:3]
    before = past[0] if past else None
    c.has_shape(4, (k[0], k[1], None, k[3]), "past_key")
    c.has_shape(5, (v[0], v[1], before, v[3]), "past_value")
    c.has_shape(6, (q[0],), "nonpad_kv_seqlen")
    mask = c.shape(3)
    if mask is not None and len(mask) > 1:  # how long its last axis is may differ from the number of keys
        c.broadcast_shapes(mask[:-1], q[:3])


@check("RotaryEmbedding")
def rotary_embedding(c: Check) -> None:
    batch, _, steps, whole = _heads(c, 0, "X", "num_heads")
    size = c.attribute("rotary_embedding_dim", 0) or whole
    if isinstance(size, int) and isinstance(whole, int):
        message = f"{size} of {whole} dimensions cannot be rotated"
        c.that(size % 2 == 0 and size <= whole, message, "rotary_embedding_dim")
    half = None if size is None else floor_divide(size, 2)
    for index, name in ((1, "cos_cache"), (2, "sin_cache")):
        c.has_shape(index, (None, half) if c.given(3) else (batch, steps, half), name)
    c.has_shape(3, (batch, steps), "position_ids")
    c.reads_unknown |= c.given(3)
