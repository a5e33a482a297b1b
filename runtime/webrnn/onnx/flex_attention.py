"""FlexAttention of ai.onnx.preview: attention whose scores and probabilities go through graphs that the node brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from webrnn.errors import ModelError, UnsupportedOp
from webrnn.ir import DType, GraphBuilder, Node, Value

from .attributes import graph_attribute
from .scope import Scope

if TYPE_CHECKING:
    from .reader import ModelReader

_ATTRIBUTES = {"prob_mod", "score_mod", "scale", "softmax_precision"}


class _Inlined(Scope):
    """A graph whose nodes become part of the graph around it."""

    def find(self, name: str) -> Value | None:
        if name in self.names:
            return self.names[name]
        return None if self.parent is None else self.parent.find(name)


def read_flex_attention(reader: ModelReader, scope: Scope, node: Node) -> None:
    b, attrs = scope.builder, node.attrs
    for name in attrs.keys() - _ATTRIBUTES:
        raise UnsupportedOp("this attribute is not supported", attribute=name)
    if len(node.inputs) != 3 or None in node.inputs or len(node.outputs) != 1 or node.outputs[0] is None:
        raise ModelError("it takes Q, K and V and gives Y")
    query, key, value = (each for each in node.inputs if each is not None)
    dtype, precision = query.dtype or DType.FLOAT, attrs.get("softmax_precision", 0)
    softmax_type = DType(precision) if precision else DType.DOUBLE if dtype is DType.DOUBLE else DType.FLOAT
    root = b.op("Cast", _root_of_scale(b, query, attrs.get("scale")), to=int(dtype))
    keys = b.op("Transpose", b.op("Mul", _by_query_head(b, key, query), root), perm=[0, 1, 3, 2])
    scores = b.op("Cast", b.op("MatMul", b.op("Mul", query, root), keys), to=int(softmax_type))
    scores = _modified(reader, scope, node, "score_mod", scores)
    weights = _modified(reader, scope, node, "prob_mod", b.op("Softmax", scores, axis=3))
    values = _by_query_head(b, value, query)
    b.op("MatMul", b.op("Cast", weights, to=int(dtype)), values, output=node.outputs[0])


def _root_of_scale(b: GraphBuilder, query: Value, scale: float | None) -> Value:
    """Each factor of a product takes it, in the precision of the inputs: the way the specification rounds."""
    if scale is not None:
        return b.constant(np.sqrt(np.float32(scale)), "scale")
    size = b.op("Cast", b.op("Squeeze", b.op("Shape", query, start=3, end=4), b.ints(0)), to=int(DType.FLOAT))
    return b.op("Sqrt", b.op("Reciprocal", b.op("Sqrt", size)))


def _by_query_head(b: GraphBuilder, x: Value, query: Value) -> Value:
    """Keys or values, repeated for each head of queries that they serve."""
    sizes = [None if each.shape is None else each.shape[1] for each in (x, query)]
    if sizes[0] is not None and sizes[0] == sizes[1]:
        return x
    batch, heads, rest = (b.op("Shape", x, start=start, end=end) for start, end in ((0, 1), (1, 2), (2, 4)))
    of_query = b.op("Shape", query, start=1, end=2)
    repeats = b.op("Div", of_query, heads)
    repeated = b.op("Expand", b.op("Unsqueeze", x, b.ints(2)), b.op("Concat", batch, heads, repeats, rest, axis=0))
    return b.op("Reshape", repeated, b.op("Concat", batch, of_query, rest, axis=0), allowzero=1)


def _modified(reader: ModelReader, scope: Scope, node: Node, name: str, value: Value) -> Value:
    if name not in node.attrs:
        return value
    proto = graph_attribute(node.attrs, name)
    if len(proto.inputs) != 1 or len(proto.outputs) != 1:
        raise ModelError("a modifier takes one tensor and gives one", attribute=name)
    inner = _Inlined(scope.builder, scope, prefix=f"{node.name or node.op}/")
    inner.define(proto.inputs[0].name, value)
    reader.read_body(proto, inner)
    return inner.lookup(proto.outputs[0].name)
