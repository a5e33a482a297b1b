"""LinearAttention as a Scan over the steps, whose state is what the heads remember: [batch, heads, key, value].

The body multiplies and adds only: exp(decay) is taken and the heads are cut before the loop, for all steps at once, and
the result is scaled after it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from webrnn.ir import Dim, DType, GraphBuilder, Node, Scan, Value

from .operands import are_floats, narrowed, widened, zeros

_USES_DECAY_AND_BETA = {
    "linear": (False, False),
    "gated": (True, False),
    "delta": (False, True),
    "gated_delta": (True, True),
}
_ATTRIBUTES = {"q_num_heads", "kv_num_heads", "chunk_size", "scale", "update_rule"}


def expand_linear_attention(b: GraphBuilder, node: Node) -> bool:
    """Add the Scan of a node; False if something does not fit or is not known, which is left to the op itself."""
    operands = _Operands.of(node)
    if operands is None:
        return False
    _Lowering(b, node, operands).run()
    return True


@dataclass(frozen=True)
class _Operands:
    """A node's operands, which fit each other, and the sizes of the heads."""

    query: Value
    key: Value
    value: Value
    past_state: Value | None
    decay: Value | None
    beta: Value | None
    batch: Dim
    heads: int
    """Of keys and values; each serves `group` heads of queries."""
    group: int
    key_size: int
    value_size: int
    scale: float

    @staticmethod
    def of(node: Node) -> _Operands | None:
        attrs = node.attrs
        heads, q_heads, scale = attrs.get("kv_num_heads"), attrs.get("q_num_heads"), attrs.get("scale", 0.0)
        uses = _USES_DECAY_AND_BETA.get(attrs.get("update_rule", "gated_delta"))
        inputs = [*node.inputs, *[None] * (6 - len(node.inputs))]
        query, key, value, past_state, decay, beta = inputs[:6]
        if not isinstance(heads, int) or not isinstance(q_heads, int) or not isinstance(scale, float):
            return None
        if heads < 1 or q_heads < 1 or q_heads % heads or not attrs.keys() <= _ATTRIBUTES or len(inputs) > 6:
            return None
        if query is None or key is None or value is None or uses != (decay is not None, beta is not None):
            return None
        if not are_floats(*inputs) or not query.dtype == key.dtype == value.dtype:
            return None
        sizes = [_last_size(query, q_heads), _last_size(key, heads), _last_size(value, heads)]
        key_size, value_size = sizes[1], sizes[2]
        if query.shape is None or sizes[0] != key_size or not key_size or not value_size:
            return None
        batch, steps = query.shape[:2]
        if batch is None or not all(_leads_with(item, (batch, steps)) for item in (key, value, decay, beta)):
            return None
        if past_state is not None and past_state.shape != (batch, heads, key_size, value_size):
            return None
        if decay is not None and _last_size(decay, heads) not in (1, key_size):
            return None
        if beta is not None and _last_size(beta, 1) not in (1, heads):
            return None
        return _Operands(
            *(query, key, value, past_state, decay, beta),
            batch=batch,
            heads=heads,
            group=q_heads // heads,
            key_size=key_size,
            value_size=value_size,
            scale=scale or 1 / math.sqrt(key_size),
        )


def _last_size(value: Value, heads: int) -> int | None:
    """The size of one head in [batch, steps, heads * size], if it is known."""
    last = value.shape[2] if value.shape is not None and len(value.shape) == 3 else None
    return last // heads if isinstance(last, int) and last % heads == 0 else None


def _leads_with(value: Value | None, sizes: tuple[Dim | None, ...]) -> bool:
    return value is None or (value.shape is not None and value.shape[: len(sizes)] == sizes)


class _Lowering:
    def __init__(self, builder: GraphBuilder, node: Node, operands: _Operands):
        self.b, self.node, self.operands = builder, node, operands
        self.prefix = node.name or "linear_attention"
        self.body = GraphBuilder(f"{self.prefix}_step", builder)
        self.scan = Scan(self.body.graph, name=self.prefix)

    def run(self) -> None:
        o = self.operands
        memory = self.body.value("memory", DType.FLOAT, (o.batch, o.heads, o.key_size, o.value_size))
        kept = memory
        if o.decay is not None:
            per_head = _last_size(o.decay, o.heads) or 1
            forget = self._element(self.b.op("Exp", self._cut(o.decay, per_head, 1)), "forget")
            kept = self.body.op("Mul", memory, forget, name="kept")
        written = self._element(self._cut(o.value, 1, o.value_size), "value")
        if o.beta is not None:
            written = self._correction(o.beta, kept, written)
        key = self._element(self._cut(o.key, o.key_size, 1), "key")
        memory_next = self.body.op("Add", kept, self.body.op("Mul", key, written, name="added"), name="memory_next")
        query = self._element(self._cut(o.query, o.group, o.key_size), "query")
        self._finish(memory, memory_next, self.body.op("MatMul", query, memory_next, name="read"))

    def _correction(self, beta: Value, kept: Value, value: Value) -> Value:
        """The delta rule: beta times what the memory of this key lacks to the value."""
        o = self.operands
        row = self._element(self._cut(o.key, 1, o.key_size), "key_row")
        missing = self.body.op("Sub", value, self.body.op("MatMul", row, kept, name="recalled"), name="missing")
        rate = self._element(self._cut(beta, 1, 1, heads=_last_size(beta, 1)), "rate")
        return self.body.op("Mul", rate, missing, name="correction")

    def _cut(self, whole: Value, rows: int, columns: int, heads: int | None = None) -> Value:
        """[batch, steps, n] as [batch, steps, heads, rows, columns]."""
        shape = self.b.ints(0, 0, heads or self.operands.heads, rows, columns)
        return self.b.op("Reshape", widened(self.b, whole), shape, name=f"{self.prefix}_{whole.name}")

    def _element(self, whole: Value, name: str) -> Value:
        element = self.body.value(name, DType.FLOAT)
        self.scan.add_sequence(whole, element, axis=1)
        return element

    def _finish(self, memory: Value, memory_next: Value, read: Value) -> None:
        b, o = self.b, self.operands
        if o.past_state is not None:
            init = widened(b, o.past_state)
        else:
            init = zeros(b, o.query, 0, (o.heads, o.key_size, o.value_size), DType.FLOAT, f"{self.prefix}_zeros")
        final, trace = b.value(f"{self.prefix}_memory", DType.FLOAT), b.value(f"{self.prefix}_trace", DType.FLOAT)
        self.scan.add_state(init, memory, memory_next, final)
        self.scan.add_trace(read, trace, axis=1)
        b.add(self.scan.to_node())
        output, present = [*self.node.outputs, None][:2]
        dtype = o.query.dtype or DType.FLOAT
        if output is not None:
            scaled = b.op("Mul", trace, b.constant(np.float32(o.scale), "scale"))
            flat = b.op("Reshape", scaled, b.ints(0, 0, o.heads * o.group * o.value_size))
            narrowed(b, flat, dtype, output)
        if present is not None:
            narrowed(b, final, (o.past_state.dtype if o.past_state is not None else None) or dtype, present)
