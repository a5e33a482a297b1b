"""Scaled dot-product attention and rotary embeddings."""

from __future__ import annotations

import numpy as np

from webrnn.errors import ModelError, ShapeError, UnsupportedOp

from .arrays import Array, require_rank, require_shape, widen
from .dtypes import computing_dtype
from .gather_scatter import checked_indices
from .registry import op


@op("Attention")
def attention(
    q: Array,
    k: Array,
    v: Array,
    attn_mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    nonpad_kv_seqlen: Array | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Q, K and V are (batch, heads, steps, size), or (batch, steps, heads * size) with the numbers of heads given."""
    if (past_key is None) != (past_value is None):
        raise ModelError("past_key and past_value must be given together")
    if past_key is not None and nonpad_kv_seqlen is not None:
        raise ModelError("nonpad_kv_seqlen cannot be combined with past_key")
    packed = q.ndim == 3
    if packed:
        q, k, v = _split_heads(q, q_num_heads), _split_heads(k, kv_num_heads), _split_heads(v, kv_num_heads)
    for name, x in (("Q", q), ("K", k), ("V", v)):
        require_rank(x, 4, name)
    present_key = k if past_key is None else np.concatenate([past_key, k], axis=2)
    present_value = v if past_value is None else np.concatenate([past_value, v], axis=2)
    _check_heads(q, present_key, present_value)

    offset = np.array(0 if past_key is None else past_key.shape[2])
    if nonpad_kv_seqlen is not None:
        require_shape(nonpad_kv_seqlen, q.shape[:1], "nonpad_kv_seqlen")
        offset = (nonpad_kv_seqlen - q.shape[2]).reshape(-1, 1, 1, 1)
    allowed = _allowed(q.shape[2], present_key.shape[2], offset, is_causal, left_window_size, right_window_size)
    if nonpad_kv_seqlen is not None:
        allowed = allowed & (np.arange(present_key.shape[2]) < nonpad_kv_seqlen.reshape(-1, 1, 1, 1))
    bias = _bias(allowed, attn_mask, present_key.shape[2], q.dtype.type)

    repeats = q.shape[1] // present_key.shape[1]
    keys, values = np.repeat(present_key, repeats, axis=1), np.repeat(present_value, repeats, axis=1)
    # Each factor takes the root of the scale, in the precision of the inputs: the way the specification rounds.
    root = q.dtype.type(np.sqrt(1 / np.sqrt(q.shape[3]) if scale is None else scale))
    scores = np.matmul(widen(q * root), widen((keys * root).swapaxes(-1, -2))).astype(q.dtype, copy=False)
    capped = np.tanh(scores / softcap) * softcap if softcap > 0 else scores
    masked = capped + bias
    weights = _softmax(masked, bias, softmax_precision)
    if qk_matmul_output_mode not in (0, 1, 2, 3):
        raise UnsupportedOp(f"{qk_matmul_output_mode} is not 0, 1, 2 or 3", attribute="qk_matmul_output_mode")
    exposed = (scores, capped, masked, weights)[qk_matmul_output_mode]
    probabilities = weights.astype(q.dtype, copy=False)
    y = np.matmul(widen(probabilities), widen(values)).astype(q.dtype, copy=False)
    if packed:
        y = y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)
    exposed = np.broadcast_to(exposed, scores.shape).astype(q.dtype, copy=False)
    return y, present_key, present_value, exposed


def _split_heads(x: Array, heads: int | None) -> Array:
    require_rank(x, 3, "Q, K and V")
    if heads is None:
        raise ModelError("q_num_heads and kv_num_heads are required for inputs of rank 3")
    if heads < 1 or x.shape[2] % heads:
        raise ShapeError(f"{x.shape[2]} values cannot be divided into {heads} heads")
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)


def _check_heads(q: Array, k: Array, v: Array) -> None:
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3] or q.shape[3] != k.shape[3]:
        raise ShapeError(f"Q {list(q.shape)}, K {list(k.shape)} and V {list(v.shape)} do not fit")
    if k.shape[1] < 1 or q.shape[1] % k.shape[1]:
        raise ShapeError(f"{q.shape[1]} query heads are not a multiple of {k.shape[1]} key heads")


def _allowed(queries: int, keys: int, offset: Array, is_causal: int, left: int, right: int) -> Array:
    """Which keys a query may see; `offset` is the number of keys before the first query."""
    if left < -1 or right < -1:
        raise ModelError(f"the window sizes {left} and {right} must be -1 or more")
    distance = np.arange(keys) - (np.arange(queries)[:, None] + offset)
    allowed = np.ones(distance.shape, np.bool_)
    if is_causal:
        allowed &= distance <= 0
    if left >= 0:
        allowed &= distance >= -left
    if right >= 0:
        allowed &= distance <= right
    return allowed


def _bias(allowed: Array, attn_mask: Array | None, keys: int, kind: type) -> Array:
    """What is added to the scores: 0 or -inf, plus a mask of numbers. Keys beyond the mask are not seen."""
    bias = np.where(allowed, kind(0), kind(-np.inf))
    if attn_mask is None:
        return bias
    if attn_mask.dtype == np.bool_:
        attn_mask = np.where(attn_mask, kind(0), kind(-np.inf))
    missing = keys - attn_mask.shape[-1]
    if missing > 0:
        widths = [(0, 0)] * (attn_mask.ndim - 1) + [(0, missing)]
        attn_mask = np.pad(attn_mask, widths, constant_values=-np.inf)
    return bias + attn_mask


def _softmax(scores: Array, bias: Array, precision: int | None) -> Array:
    """A query that sees no key gets zeros."""
    if precision is not None:
        scores = scores.astype(computing_dtype(precision, "softmax_precision"))
    top = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
    e = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = np.sum(e, axis=-1, keepdims=True)
    unseen = np.isneginf(np.max(bias, axis=-1, keepdims=True, initial=-np.inf))
    return np.where(unseen, 0, e / np.where(total == 0, 1, total)).astype(scores.dtype, copy=False)


@op("RotaryEmbedding")
def rotary_embedding(
    x: Array,
    cos_cache: Array,
    sin_cache: Array,
    position_ids: Array | None = None,
    *,
    interleaved: int = 0,
    num_heads: int | None = None,
    rotary_embedding_dim: int = 0,
) -> Array:
    """X is (batch, heads, steps, size), or (batch, steps, heads * size) with num_heads given."""
    heads = x if x.ndim == 4 else _split_heads(x, num_heads or None)
    require_rank(heads, 4, "X")
    size = rotary_embedding_dim or heads.shape[3]
    if size % 2 or size > heads.shape[3]:
        raise ShapeError(f"{size} of {heads.shape[3]} dimensions cannot be rotated", attribute="rotary_embedding_dim")
    cos, sin = (_positions(cache, position_ids, heads, size // 2) for cache in (cos_cache, sin_cache))
    rotated, kept = heads[..., :size], heads[..., size:]
    if interleaved:
        a, b = rotated[..., 0::2], rotated[..., 1::2]
    else:
        a, b = rotated[..., : size // 2], rotated[..., size // 2 :]
    real, imaginary = cos * a - sin * b, sin * a + cos * b
    if interleaved:
        turned = np.stack([real, imaginary], axis=-1).reshape(rotated.shape)
    else:
        turned = np.concatenate([real, imaginary], axis=-1)
    y = np.concatenate([turned, kept], axis=-1)
    return y if x.ndim == 4 else y.transpose(0, 2, 1, 3).reshape(x.shape)


def _positions(cache: Array, position_ids: Array | None, heads: Array, half: int) -> Array:
    """The rows of a cache, as (batch, 1, steps, size / 2)."""
    batch, _, steps, _ = heads.shape
    if position_ids is not None:
        require_rank(cache, 2, "the caches")
        require_shape(position_ids, (batch, steps), "position_ids")
        cache = cache[checked_indices(position_ids, cache.shape[0], "position_ids")]
    require_shape(cache, (batch, steps, half), "the rows of the caches")
    return cache[:, None]
