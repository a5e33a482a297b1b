"""Attention and embeddings of transformers, as onnxruntime fuses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from webrnn.errors import ModelError, UnsupportedOp
from webrnn.ir import Dim, DType, Value

from .contributed import Call, Function

Results = Sequence[Value | None]


def _slice(c: Call, x: Value, axis: int, start: int, stop: int) -> Value:
    return c.op("Slice", x, c.b.ints(start), c.b.ints(stop), c.b.ints(axis))


def _size(c: Call, x: Value, axis: int) -> Value:
    """As a scalar."""
    return c.op("Squeeze", c.op("Shape", x, start=axis, end=axis + 1), c.b.ints(0))


def _positions(c: Call, count: Value) -> Value:
    return c.op("Range", c.b.constant(np.int64(0)), count, c.b.constant(np.int64(1)))


def _packed_heads(c: Call, x: Value, index: int) -> Value:
    """One of the tensors side by side in [batch, steps, heads, several, size], as [batch, heads, steps, size]."""
    one = c.op("Gather", x, c.b.constant(np.int64(index)), axis=3)
    return c.op("Transpose", one, perm=[0, 2, 1, 3])


def _split_heads(c: Call, x: Value, heads: int) -> Value:
    """[batch, steps, heads * size] as [batch, heads, steps, size]."""
    return c.op("Transpose", c.op("Reshape", x, c.b.ints(0, 0, heads, -1)), perm=[0, 2, 1, 3])


def _joined_heads(c: Call, x: Value) -> Value:
    return c.op("Reshape", c.op("Transpose", x, perm=[0, 2, 1, 3]), c.b.ints(0, 0, -1))


def _attend(
    c: Call, parts: Sequence[Value], mask: Value | None, past: Sequence[Value | None], **attrs: float
) -> list[Value]:
    """The output as [batch, steps, heads * size], the keys and values with those of the past."""
    scale = c.attribute("scale", 0.0)
    options = {"scale": float(scale)} if scale else {}
    wanted = 4 if c.node.op == "MultiHeadAttention" and c.asks_for(3) else 3
    y, *others = c.ops("Attention", wanted, *parts, mask, *past, **attrs, **options)
    return [_joined_heads(c, y), *others]


def _dim(c: Call, x: Value, axis: int) -> Dim | None:
    shape = c.fact(x).shape
    return None if shape is None else shape[axis]


def _total(c: Call, key: Value, past: Value | None) -> Value:
    own = _size(c, key, 2)
    return own if past is None else c.op("Add", own, _size(c, past, 2))


def _known_total(c: Call, key: Value, past: Value | None) -> Dim | None:
    own, before = _dim(c, key, 2), 0 if past is None else _dim(c, past, 2)
    return None if own is None or before is None else own + before


def _for_all_keys(c: Call, x: Value, key: Value, past: Value | None) -> Value:
    """What has a number for each key: if it has other ones, an index is out of range while running."""
    have = c.shape(x, "a mask")[-1]
    if have is not None and have == _known_total(c, key, past):
        return x
    axis = len(c.shape(x, "a mask")) - 1
    size, total = _size(c, x, axis), _total(c, key, past)
    return c.op("Gather", x, c.op("Where", c.op("Equal", size, total), _positions(c, total), size), axis=axis)


def _seen_by_lengths(c: Call, lengths: Value, key: Value, past: Value | None) -> Value:
    """Lengths of sequences, perhaps with starts behind them, or with sums of lengths, which say nothing new."""
    at, starts = _positions(c, _total(c, key, past)), None
    if (known := _dim(c, lengths, 0)) is None or known != _dim(c, key, 0):
        size, batch = _size(c, lengths, 0), _size(c, key, 0)
        which = _positions(c, batch)
        twice = c.op("Add", batch, batch)
        summed = c.op("Add", c.op("Add", twice, batch), c.b.constant(np.int64(2)))
        fits = c.op("Or", c.op("Equal", size, batch), c.op("Equal", size, summed))
        if c.node.op != "MultiHeadAttention":
            has_starts = c.op("Equal", size, twice)
            fits = c.op("Or", fits, has_starts)
            last = c.op("Sub", size, c.b.constant(np.int64(1)))
            others = c.op("Gather", lengths, c.op("Min", c.op("Add", which, batch), last), axis=0)
            starts = c.op("Where", has_starts, others, c.b.constant(np.int64(0)))
        lengths = c.op("Gather", lengths, c.op("Where", fits, which, size), axis=0)
    seen = c.op("Less", at, c.op("Reshape", lengths, c.b.ints(-1, 1, 1, 1)))
    if starts is None:
        return seen
    return c.op("And", seen, c.op("GreaterOrEqual", at, c.op("Reshape", starts, c.b.ints(-1, 1, 1, 1))))


def _seen_by_mask(c: Call, mask: Value, key: Value, past: Value | None) -> Value | None:
    """A mask of keys, for each query perhaps. One number for a sequence says that there is no mask, to some ops."""
    rank, nothing = len(c.shape(mask, "the mask")), c.b.constant(np.int64(0))
    if rank == 2 and c.node.op != "MultiHeadAttention":
        size = _dim(c, mask, 1)
        if size == 1:
            return None
        if size is None or size != _known_total(c, key, past):
            is_none = c.op("Equal", _size(c, mask, 1), c.b.constant(np.int64(1)))
            total = c.op("Reshape", _total(c, key, past), c.b.ints(1))
            wide = c.op("Expand", mask, c.op("Concat", c.b.ints(1), total, axis=0))
            mask = c.op("Where", is_none, c.b.constant(np.int64(1)), wide)
    mask = _for_all_keys(c, mask, key, past)
    return c.op("Greater", c.op("Unsqueeze", mask, c.b.ints(1, 2) if rank == 2 else c.b.ints(1)), nothing)


def _key_mask(c: Call, mask: Value, key: Value, past: Value | None) -> Value | None:
    """Lengths or a mask, as what is added to the scores."""
    blocked = c.number(c.attribute("mask_filter_value", -10000.0), key)
    rank = len(c.shape(mask, "the mask"))
    if rank not in (1, 2, 3):
        raise UnsupportedOp(f"a mask of {rank} axes is not supported")
    wide = c.op("Cast", mask, to=int(DType.INT64))
    seen = (_seen_by_lengths if rank == 1 else _seen_by_mask)(c, wide, key, past)
    return None if seen is None else c.op("Where", seen, c.number(0, key), blocked)


def _bias_of_scores(c: Call, mask: Value | None, added: Value | None, key: Value, past: Value | None) -> Value | None:
    made = None
    if mask is None:
        c.attribute("mask_filter_value", -10000.0)
    else:
        made = _key_mask(c, mask, key, past)
    if added is None:
        return made
    added = _for_all_keys(c, added, key, past)
    return added if made is None else c.op("Add", made, added)


def _causal_mask(c: Call, query: Value, key: Value, past: Value | None) -> Value:
    """Of queries and keys that may differ in number. In onnxruntime the last query sees all keys."""
    steps = _size(c, query, 2)
    rows = c.op("Unsqueeze", _positions(c, steps), c.b.ints(1))
    ends = rows if past is None else c.op("Add", rows, _size(c, past, 2))
    is_last = c.op("Equal", rows, c.op("Sub", steps, c.b.constant(np.int64(1))))
    seen = c.op("Or", c.op("LessOrEqual", _positions(c, _total(c, key, past)), ends), is_last)
    return c.op("Where", seen, c.number(0, key), c.number(-np.inf, key))


def _multi_head_attention(c: Call) -> Results:
    heads, causal = c.require_attribute("num_heads"), c.attribute("unidirectional", 0)
    query, key, value, bias, mask, added, past_key, past_value = (c.given(index) for index in range(8))
    if any(c.given(index) is not None for index in (8, 9)):
        raise UnsupportedOp("past_sequence_length, for shared buffers of past keys, is not supported")
    query = c.required(0)
    if key is None:
        parts = [_packed_heads(c, query, index) for index in range(3)]
    elif value is None:
        parts = [_split_heads(c, query, heads), *(_packed_heads(c, key, index) for index in range(2))]
    else:
        is_split = len(c.shape(key, "key")) == 4
        parts = [query, key, value]
        if bias is not None:
            if is_split:
                parts[0] = c.op("Add", query, _slice(c, bias, 0, 0, c.size(query, 2, "query")))
            else:
                sizes = [c.size(part, 2, "an operand") for part in parts]
                ends = np.cumsum(sizes).tolist()
                parts = [
                    c.op("Add", part, _slice(c, bias, 0, end - size, end))
                    for part, size, end in zip(parts, sizes, ends, strict=True)
                ]
            bias = None
        parts = [part if is_split and index else _split_heads(c, part, heads) for index, part in enumerate(parts)]
    if bias is not None:
        raise UnsupportedOp("a bias of packed heads is not supported")
    masked = _bias_of_scores(c, mask, added, parts[1], past_key)
    if causal and ((steps := _dim(c, parts[0], 2)) is None or steps != _dim(c, parts[1], 2)):
        order = _causal_mask(c, parts[0], parts[1], past_key)
        masked, causal = order if masked is None else c.op("Add", masked, order), 0
    return _attend(c, parts, masked, (past_key, past_value), is_causal=causal)


def _projected_attention(c: Call, product: Value, widths: list[int], mask: int, past: int, added: int) -> Results:
    """Attention of what a product gives: queries, keys and values side by side."""
    heads, causal = c.require_attribute("num_heads"), c.attribute("unidirectional", 0)
    for name in ("do_rotary", "past_present_share_buffer", "rotary_embedding_dim"):
        c.only(name, 0)
    ends = np.cumsum(widths).tolist()
    parts = [_slice(c, product, 2, end - size, end) for size, end in zip(widths, ends, strict=True)]
    split = [_split_heads(c, part, heads) for part in parts]
    pair = c.given(past)
    pasts = [None if pair is None else c.op("Gather", pair, c.b.constant(np.int64(i)), axis=0) for i in range(2)]
    extra = c.given(added) if added >= 0 else None
    masked = _bias_of_scores(c, c.given(mask), extra, split[1], pasts[0])
    y, keys, values = _attend(c, split, masked, pasts, is_causal=causal)
    if not c.asks_for(1):
        return [y]
    if widths[1] != widths[2]:
        raise UnsupportedOp("output 1 with keys and values of different sizes is not supported")
    present = c.op("Concat", *(c.op("Unsqueeze", each, c.b.ints(0)) for each in (keys, values)), axis=0)
    return [y, present]


def _widths(c: Call, total: int) -> list[int]:
    sizes = c.attribute("qkv_hidden_sizes", [])
    return [int(size) for size in sizes] if sizes else [total // 3] * 3


def _attention(c: Call) -> Results:
    x, weights, bias = c.required(0), c.required(1), c.given(2)
    product = c.op("MatMul", x, weights)
    if bias is not None:
        product = c.op("Add", product, bias)
    if c.given(6) is not None:
        raise UnsupportedOp("past_sequence_length, for shared buffers of past keys, is not supported")
    return _projected_attention(c, product, _widths(c, c.size(weights, 1, "the weights")), 3, 4, 5)


def _quantized_attention(c: Call) -> Results:
    x, weights, bias, x_scale, w_scale = (c.required(index) for index in range(5))
    total = c.op("Cast", c.op("MatMulInteger", x, weights, c.given(6), c.given(7)), to=int(DType.FLOAT))
    product = c.op("Add", c.op("Mul", total, c.op("Mul", x_scale, w_scale)), bias)
    return _projected_attention(c, product, _widths(c, c.size(weights, 1, "the weights")), 5, 8, -1)


def _scalar(c: Call, x: Value) -> Value:
    return c.op("Cast", c.op("Reshape", x, c.b.ints()), to=int(DType.INT64))


@dataclass
class _Cache:
    """Where the new keys of a GroupQueryAttention go: behind those that are held of each sequence, in a buffer that is
    either as long as that of the past or has room for the new keys behind it."""

    steps: Value
    is_prompt: Value
    last: Value
    """Of each sequence the position of its last key: what lies behind it is not seen."""
    length: Value
    start: Value
    """Of each sequence the position of its first new key; one outside of the buffer if the lengths contradict."""

    @classmethod
    def of(cls, c: Call, query: Value, past: Value | None, bias: Value | None) -> _Cache:
        zero, one = (c.b.constant(np.int64(number)) for number in (0, 1))
        steps, total = _size(c, query, 1), _scalar(c, c.required(6))
        last = c.op("Cast", c.op("Reshape", c.required(5), c.b.ints(-1)), to=int(DType.INT64))
        held = zero if past is None else _size(c, past, 2)
        length = c.op("Max", held, total)
        # The keys of a prompt are the first, whatever the lengths say.
        before = c.op("Sub", c.op("Add", last, one), steps)
        is_prompt = c.op("Equal", total, steps)
        start = c.op("Where", is_prompt, zero, before)
        grows = c.op("Equal", total, c.op("Add", held, steps))
        conditions = [
            c.op("Or", grows, c.op("LessOrEqual", total, held)),
            c.op("GreaterOrEqual", total, steps),
            c.op("Less", last, length),
            c.op("GreaterOrEqual", c.op("Min", last, start), zero),
        ]
        if bias is not None:
            conditions.append(c.op("Equal", total, _size(c, bias, 3)))
            conditions.append(c.op("Less", last, total))
        fits = conditions[0]
        for condition in conditions[1:]:
            fits = c.op("And", fits, condition)
        return cls(steps, is_prompt, last, length, c.op("Where", fits, start, length))

    def positions(self, c: Call) -> Value:
        """Of the queries, [batch, steps]."""
        return c.op("Add", c.op("Unsqueeze", self.start, c.b.ints(1)), _positions(c, self.steps))

    def given_positions(self, c: Call, given: Value) -> Value:
        """As onnxruntime takes them: of a prompt it reads only the first number."""
        first = c.op("Slice", c.op("Reshape", given, c.b.ints(-1)), c.b.ints(0), c.b.ints(1))
        return c.op("Where", self.is_prompt, c.op("Add", first, _positions(c, self.steps)), given)

    def written(self, c: Call, new: Sequence[Value], past: Sequence[Value | None]) -> list[Value]:
        """The keys and values with the new ones, zeros behind them."""
        both = c.op("Concat", *new, axis=3)
        if past[0] is None:
            buffer = both
        else:
            room = c.op("Concat", c.op("Concat", *past, axis=3), both, axis=2)
            end = c.op("Reshape", self.length, c.b.ints(1))
            cut = c.op("Slice", room, c.b.ints(0), end, c.b.ints(2))
            rows = c.op("Unsqueeze", _positions(c, _size(c, cut, 2)), c.b.ints(1))
            is_held = c.op("Less", rows, c.op("Reshape", self.start, c.b.ints(-1, 1, 1, 1)))
            buffer = c.op("Where", is_held, cut, c.number(0, new[0]))
        filled = c.op("TensorScatter", buffer, both, self.start, axis=2)
        return c.ops("Split", 2, filled, axis=3, num_outputs=2)

    def seen(self, c: Call, keys: Value, window: int, is_capped: bool) -> Value:
        """Which keys a query sees: [batch, 1, steps, keys]. The window of a query behind the end of its sequence is in
        onnxruntime the last one of the sequence if scores are capped."""
        columns, rows = _positions(c, _size(c, keys, 2)), self.positions(c)
        if is_capped:
            rows = c.op("Min", rows, c.op("Unsqueeze", self.last, c.b.ints(1)))
        distance = c.op("Sub", c.op("Unsqueeze", rows, c.b.ints(1, 3)), columns)
        seen = c.op("GreaterOrEqual", distance, c.b.constant(np.int64(0)))
        if window > 0:
            seen = c.op("And", seen, c.op("Less", distance, c.b.constant(np.int64(window))))
        ends = c.op("Reshape", self.last, c.b.ints(-1, 1, 1, 1))
        return c.op("And", seen, c.op("LessOrEqual", columns, ends))


def _group_query_attention(c: Call) -> Results:
    heads, of_keys = c.require_attribute("num_heads"), c.require_attribute("kv_num_heads")
    window, cap = c.attribute("local_window_size", -1), c.attribute("softcap", 0.0)
    turns, interleaved = c.attribute("do_rotary", 0), c.attribute("rotary_interleaved", 0)
    for name, nothing in (("smooth_softmax", (0, -1)), ("qk_output", (0,)), ("kv_cache_bit_width", (0,))):
        c.only(name, *nothing)
    key, value, past_key, past_value = (c.given(index) for index in range(1, 5))
    query, bias = c.required(0), c.given(10)
    if (key is None) != (value is None) or (past_key is None) != (past_value is None):
        raise ModelError("keys and values must be given together")
    for index in range(11, len(c.node.inputs)):
        if c.given(index) is not None:
            raise UnsupportedOp(f"input {index} is not supported")
    if key is None or value is None:
        size = c.size(query, 2, "query") // (heads + 2 * of_keys)
        widths = [heads * size, of_keys * size, of_keys * size]
        ends = np.cumsum(widths).tolist()
        query, key, value = (_slice(c, query, 2, end - width, end) for width, end in zip(widths, ends, strict=True))
    cache = _Cache.of(c, query, past_key, bias)
    parts = [_split_heads(c, part, count) for part, count in ((query, heads), (key, of_keys), (value, of_keys))]
    if turns:
        at = cache.positions(c) if c.given(9) is None else cache.given_positions(c, c.required(9))
        caches = [c.required(7), c.required(8)]
        options = {"interleaved": interleaved, **_partial(c, parts[0], caches[0])}
        parts[:2] = [c.op("RotaryEmbedding", part, *caches, at, **options) for part in parts[:2]]
    parts[1:] = cache.written(c, parts[1:], (past_key, past_value))
    mask = c.op("Where", cache.seen(c, parts[1], window, cap > 0), c.number(0, query), c.number(-np.inf, query))
    if bias is not None:  # it may be shorter than a buffer; what it lacks is not seen
        last = c.op("Sub", _size(c, bias, 3), c.b.constant(np.int64(1)))
        columns = c.op("Min", _positions(c, _size(c, parts[1], 2)), last)
        mask = c.op("Add", mask, c.op("Gather", bias, columns, axis=3))
    return _attend(c, parts, mask, (None, None), softcap=float(cap))


def _partial(c: Call, x: Value, cache: Value) -> dict[str, int]:
    """A cache that is narrower than half a head turns only its first elements."""
    return {"rotary_embedding_dim": 2 * c.size(cache, 1, "the cache")}


def _rotary_embedding(c: Call) -> Results:
    x, at, cos, sin = (c.required(index) for index in range(4))
    heads, size = c.attribute("num_heads", 0), c.attribute("rotary_embedding_dim", 0)
    interleaved = c.attribute("interleaved", 0)
    c.only("scale", 1.0)
    c.only("is_packed_batching", 0)
    if len(c.shape(at, "the positions")) == 1:
        rank = len(c.shape(x, "the input"))
        steps, batch = _size(c, x, rank - 2), c.op("Shape", x, start=0, end=1)
        rows = c.op("Add", c.op("Cast", at, to=int(DType.INT64)), _positions(c, steps))
        at = c.op("Expand", rows, c.op("Concat", batch, c.op("Reshape", steps, c.b.ints(1)), axis=0))
    options = {"interleaved": interleaved}
    if size:
        options["rotary_embedding_dim"] = size
    if len(c.shape(x, "the input")) == 3:
        width = c.size(x, 2, "the input")
        if size and not heads:
            raise ModelError("it is required with rotary_embedding_dim", attribute="num_heads")
        options["num_heads"] = heads or width // (2 * c.size(cos, 1, "the cache"))
    return [c.op("RotaryEmbedding", x, cos, sin, at, **options)]


def _embeddings(c: Call, ids: Value, segments: Value | None, tables: Sequence[Value | None], at: Value | None) -> Value:
    words, places, kinds = tables
    total = c.op("Gather", words, ids, axis=0)
    if at is None:
        steps = c.op("Shape", ids, start=1, end=2)
        placed = c.op("Slice", places, c.b.ints(0), steps, c.b.ints(0))
    else:
        placed = c.op("Gather", places, at, axis=0)
    total = c.op("Add", total, placed)
    if segments is not None and kinds is not None:
        total = c.op("Add", total, c.op("Gather", kinds, segments, axis=0))
    return total


def _embedded(
    c: Call, ids: Value, segments: Value | None, tables: Sequence[Value | None], scale: Value, bias: Value,
    mask: Value | None, at: Value | None,
) -> Results:  # fmt: skip
    epsilon = c.attribute("epsilon", 1e-12)
    c.only("mask_index_type", 0 if mask is None else 1, 0)
    total = _embeddings(c, ids, segments, tables, at)
    y = c.ops("LayerNormalization", 1, total, scale, bias, epsilon=epsilon)[0]
    if mask is not None:
        counts = c.op("ReduceSum", c.op("Cast", mask, to=int(DType.INT32)), c.b.ints(1), keepdims=0)
    else:
        batch = c.op("Shape", ids, start=0, end=1)
        counts = c.op("ConstantOfShape", batch, value=np.zeros(1, np.int32))
    return [y, counts, total]


def _embed_layer_normalization(c: Call) -> Results:
    words, places, kinds = c.required(2), c.required(3), c.given(4)
    return _embedded(
        c, c.required(0), c.given(1), (words, places, kinds), c.required(5), c.required(6), c.given(7), c.given(8)
    )


def _quantized_embed_layer_normalization(c: Call) -> Results:
    """Five tables and vectors of bytes, then the mask, then their scales, then their zero points."""
    real = [
        None
        if c.given(index) is None
        else c.op("DequantizeLinear", c.given(index), c.given(6 + index), c.given(11 + index))
        for index in range(2, 7)
    ]
    scale, bias = real[3], real[4]
    if scale is None or bias is None:
        raise ModelError("scale and bias are required")
    return _embedded(c, c.required(0), c.given(1), real[:3], scale, bias, c.given(7), None)[:2]


FUNCTIONS: dict[str, Function] = {
    "Attention": _attention,
    "EmbedLayerNormalization": _embed_layer_normalization,
    "GroupQueryAttention": _group_query_attention,
    "MultiHeadAttention": _multi_head_attention,
    "QAttention": _quantized_attention,
    "QEmbedLayerNormalization": _quantized_embed_layer_normalization,
    "RotaryEmbedding": _rotary_embedding,
}
