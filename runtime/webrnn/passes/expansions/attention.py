"""Attention and RotaryEmbedding: products, masks, softmax.

Heads of keys that serve several heads of queries are not repeated: the queries of one group are rows of one product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from webrnn.ir import DType, Node, Value

from .emitter import Declined, Emitter, Expansion

_TURN = [0, 2, 1, 3]


@dataclass(frozen=True)
class _Scores:
    """The product of queries and keys in the forms that a node can be asked for."""

    plain: Value
    capped: Value
    masked: Value


def _attention(e: Emitter, node: Node) -> None:
    query, key, value, mask, past_key, past_value, lengths = _padded(node.inputs, 7)
    assert query is not None
    assert key is not None
    assert value is not None
    is_packed = len(e.shape(query)) == 3
    dtype, attrs = e.dtype(query), node.attrs
    if is_packed:
        heads, of_keys = attrs["q_num_heads"], attrs["kv_num_heads"]
        query = _split_heads(e, query, heads)
        key, value = _split_heads(e, key, of_keys), _split_heads(e, value, of_keys)
    keys = key if past_key is None else e.op("Concat", past_key, key, axis=2)
    values = value if past_value is None else e.op("Concat", past_value, value, axis=2)
    heads, of_keys = e.size(query, 1), e.size(keys, 1)

    bias = _bias(e, node, query, keys, mask, past_key, lengths)
    scores = _scores(e, node, query, keys, bias)
    precision = DType(attrs.get("softmax_precision") or dtype)
    weights = e.cast(_softmax(e, e.cast(scores.masked, precision)), dtype)
    if bias is not None and (mask is not None or lengths is not None or _has_window(node)):
        top = e.op("ReduceMax", bias, e.ints(-1), keepdims=1)
        unseen = e.op("Equal", top, e.number(-np.inf, dtype))  # a query that sees no key gets zeros
        weights = e.op("Where", unseen, e.number(0, dtype), weights)
    grouped = _by_group(e, weights, heads, of_keys)
    results = _by_head(e, e.op("MatMul", grouped, values), query, heads, of_keys)

    output, present_key, present_value, exposed = _padded(node.outputs, 4)
    if output is not None and is_packed:
        turned = e.op("Transpose", results, perm=_TURN)
        width = heads * e.size(values, 3)
        e.op("Reshape", turned, e.sizes((turned, 0), (turned, 1), width), output=output, allowzero=1)
    elif output is not None:
        e.op("Identity", results, output=output)
    mode = attrs.get("qk_matmul_output_mode", 0)
    asked = (scores.plain, scores.capped, scores.masked, weights)[mode]
    for made, wanted in ((keys, present_key), (values, present_value), (asked, exposed)):
        if wanted is not None:
            e.op("Identity", made, output=wanted)


def _padded(values: list[Value | None], count: int) -> list[Value | None]:
    return [*values, *[None] * (count - len(values))]


def _split_heads(e: Emitter, x: Value, heads: int) -> Value:
    """[batch, steps, heads * size] as [batch, heads, steps, size]."""
    shape = e.sizes((x, 0), (x, 1), heads, e.size(x, 2) // heads)
    return e.op("Transpose", e.op("Reshape", x, shape, allowzero=1), perm=_TURN)


def _by_group(e: Emitter, x: Value, heads: int, of_keys: int) -> Value:
    """[batch, heads, steps, size] as [batch, heads of keys, queries of a group, size]."""
    if heads == of_keys:
        return x
    split = e.op("Reshape", x, e.sizes((x, 0), of_keys, heads // of_keys, (x, 2), (x, 3)), allowzero=1)
    rows = e.op("Mul", e.sizes((x, 2)), e.ints(heads // of_keys))
    return e.op("Reshape", split, e.op("Concat", e.sizes((x, 0), of_keys), rows, e.sizes((x, 3)), axis=0), allowzero=1)


def _by_head(e: Emitter, x: Value, query: Value, heads: int, of_keys: int) -> Value:
    if heads == of_keys:
        return x
    return e.op("Reshape", x, e.sizes((x, 0), heads, (query, 2), (x, 3)), allowzero=1)


def _scores(e: Emitter, node: Node, query: Value, keys: Value, bias: Value | None) -> _Scores:
    dtype, size = e.dtype(query), e.size(query, 3)
    heads, of_keys = e.size(query, 1), e.size(keys, 1)
    scale = node.attrs.get("scale")
    # Each factor takes the root of the scale, in the precision of the inputs: the way the specification rounds.
    root = e.number(float(np.sqrt(1 / np.sqrt(size) if scale is None else scale)), dtype)
    rows = _by_group(e, e.op("Mul", query, root), heads, of_keys)
    columns = e.op("Transpose", e.op("Mul", keys, root), perm=[0, 1, 3, 2])
    plain = capped = _by_head(e, e.op("MatMul", rows, columns), query, heads, of_keys)
    cap = node.attrs.get("softcap", 0.0)
    if cap > 0:
        limit = e.number(cap, dtype)
        capped = e.op("Mul", e.op("Tanh", e.op("Div", plain, limit)), limit)
    return _Scores(plain, capped, capped if bias is None else e.op("Add", capped, bias))


def _softmax(e: Emitter, scores: Value) -> Value:
    if e.dtype(scores) is not DType.FLOAT16:
        return e.op("Softmax", scores, axis=-1)
    last = e.ints(-1)  # half floats are rounded after each step
    exponentials = e.op("Exp", e.op("Sub", scores, e.op("ReduceMax", scores, last, keepdims=1)))
    return e.op("Div", exponentials, e.op("ReduceSum", exponentials, last, keepdims=1))


def _has_window(node: Node) -> bool:
    return any(node.attrs.get(name, -1) >= 0 for name in ("left_window_size", "right_window_size"))


def _bias(
    e: Emitter, node: Node, query: Value, keys: Value, mask: Value | None, past_key: Value | None, lengths: Value | None
) -> Value | None:
    """What is added to the scores, 0 or -inf and a mask of numbers; None if nothing is."""
    dtype = e.dtype(query)
    allowed = _allowed(e, node, query, keys, past_key, lengths)
    bias = None if allowed is None else _as_bias(e, allowed, dtype)
    if mask is None:
        return bias
    added = _as_bias(e, mask, dtype) if e.dtype(mask) is DType.BOOL else mask
    if e.dtype(added) is not dtype:
        raise Declined("the mask has another type")
    have, need = e.shape(mask)[-1], e.shape(keys)[2]
    if have != need:
        if not isinstance(have, int) or not isinstance(need, int) or have > need:
            raise Declined("it is not known how long the mask is")
        pads = [0] * 2 * len(e.shape(mask))
        pads[-1] = need - have
        added = e.op("Pad", added, e.ints(*pads), e.number(-np.inf, dtype))
    return added if bias is None else e.op("Add", bias, added)


def _as_bias(e: Emitter, allowed: Value, dtype: DType) -> Value:
    return e.op("Where", allowed, e.number(0, dtype), e.number(-np.inf, dtype))


def _allowed(
    e: Emitter, node: Node, query: Value, keys: Value, past_key: Value | None, lengths: Value | None
) -> Value | None:
    """Which keys a query may see, as bools; None if all."""
    tests: list[tuple[str, int]] = [("LessOrEqual", 0)] if node.attrs.get("is_causal", 0) else []
    left, right = node.attrs.get("left_window_size", -1), node.attrs.get("right_window_size", -1)
    tests += [("GreaterOrEqual", -left)] if left >= 0 else []
    tests += [("LessOrEqual", right)] if right >= 0 else []
    by_batch = None if lengths is None else e.op("Reshape", lengths, e.ints(-1, 1, 1, 1))
    found = []
    if tests:
        first = _range(e, query, 2)
        offset = None
        if by_batch is not None:
            offset = e.op("Sub", by_batch, e.scalar_size(query, 2))
        elif past_key is not None:
            offset = e.scalar_size(past_key, 2)
        column = e.op("Reshape", first, e.ints(-1, 1))
        at = column if offset is None else e.op("Add", column, offset)
        distance = e.op("Sub", _range(e, keys, 2), at)
        found = [e.op(op, distance, e.constant(np.int64(limit))) for op, limit in tests]
    if by_batch is not None:
        found.append(e.op("Less", _range(e, keys, 2), by_batch))
    allowed = None
    for test in found:
        allowed = test if allowed is None else e.op("And", allowed, test)
    return allowed


def _range(e: Emitter, value: Value, axis: int) -> Value:
    return e.op("Range", e.constant(np.int64(0)), e.scalar_size(value, axis), e.constant(np.int64(1)))


def _rotary_embedding(e: Emitter, node: Node) -> None:
    x, cos_cache, sin_cache, positions = _padded(node.inputs, 4)
    output, attrs = node.outputs[0], node.attrs
    assert x is not None
    assert cos_cache is not None
    assert sin_cache is not None
    is_packed = len(e.shape(x)) == 3
    heads = _split_heads(e, x, attrs["num_heads"]) if is_packed else x
    whole = e.size(heads, 3)
    size = attrs.get("rotary_embedding_dim", 0) or whole
    cos, sin = (_rows(e, cache, positions) for cache in (cos_cache, sin_cache))
    turned = heads if size == whole else _slice(e, heads, 0, size)
    if attrs.get("interleaved", 0):
        a, b = _slice(e, turned, 0, size, 2), _slice(e, turned, 1, size, 2)
    else:
        a, b = _slice(e, turned, 0, size // 2), _slice(e, turned, size // 2, size)
    real = e.op("Sub", e.op("Mul", cos, a), e.op("Mul", sin, b))
    imaginary = e.op("Add", e.op("Mul", sin, a), e.op("Mul", cos, b))
    if attrs.get("interleaved", 0):
        pairs = [e.op("Unsqueeze", part, e.ints(4)) for part in (real, imaginary)]
        stacked = e.op("Concat", *pairs, axis=4)
        parts = [e.op("Reshape", stacked, e.sizes((x, 0), (heads, 1), (heads, 2), size), allowzero=1)]
    else:
        parts = [real, imaginary]
    if size < whole:
        parts.append(_slice(e, heads, size, whole))
    last = None if is_packed else output
    joined = e.op("Concat", *parts, axis=3, output=last) if len(parts) > 1 else e.op("Identity", *parts, output=last)
    if is_packed:
        flat = e.op("Transpose", joined, perm=_TURN)
        e.op("Reshape", flat, e.sizes((x, 0), (x, 1), (x, 2)), output=output, allowzero=1)


def _rows(e: Emitter, cache: Value, positions: Value | None) -> Value:
    """The rows of a cache, as [batch, 1, steps, size / 2]."""
    rows = cache if positions is None else e.op("Gather", cache, positions, axis=0)
    return e.op("Unsqueeze", rows, e.ints(1))


def _slice(e: Emitter, x: Value, start: int, stop: int, step: int = 1) -> Value:
    return e.op("Slice", x, e.ints(start), e.ints(stop), e.ints(3), e.ints(step))


EXPANSIONS: dict[str, Expansion] = {
    "Attention": _attention,
    "RotaryEmbedding": _rotary_embedding,
}
