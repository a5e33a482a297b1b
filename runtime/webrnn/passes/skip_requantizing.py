"""Bytes that are dequantized and quantized again in the same way are left as they are.

Requires: facts from infer_shapes.
Ensures: QuantizeLinear of DequantizeLinear(q) with the same scale and zero point, one of each, is q, also where ops
that only look at their operand in another way stand between the two: they look at q.
Declines: "it does not give back every number" (a scale so small or large that products round to others).
"""

from __future__ import annotations

import numpy as np

from webrnn import reference
from webrnn.ir import Graph, Node, Value

from .base import Context, Pass, PassResult
from .rewriting import Additions, Replacements, constant_of

_VIEWS = ("Reshape", "Transpose", "Slice", "Split", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Expand")
_BYTES = (np.dtype(np.uint8), np.dtype(np.int8))


class SkipRequantizing(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        producers = {value: node for node in graph.nodes for value in node.outputs if value is not None}
        replacements, new = Replacements(graph, context), Additions(graph, context)
        nodes: list[Node] = []
        for node in graph.nodes:
            found = _origin(node, producers)
            if found is None or not _is_same(graph, node, found[0]):
                nodes.append(node)
                continue
            origin, views = found
            q, y = origin.inputs[0], node.outputs[0]
            assert q is not None
            assert y is not None
            if not _gives_back(graph, node):
                result.declines_at(node, "it does not give back every number")
                nodes.append(node)
                continue
            if not (views or replacements.allows(y, q)) or not result.fires(f"QuantizeLinear {node.label}"):
                nodes.append(node)
                continue
            for index, view in enumerate(views):
                outputs = [None if value is None else new.value(f"{value.name}_bytes") for value in view.outputs]
                q_next = outputs[[*view.outputs].index(_read_by(views, index, node))]
                nodes.append(Node(view.op, [q, *view.inputs[1:]], outputs, dict(view.attrs), view.name))
                assert q_next is not None
                q = q_next
            replacements.add(y, q)
        graph.nodes = nodes
        replacements.apply()


def _read_by(views: list[Node], index: int, node: Node) -> Value | None:
    return (views[index + 1] if index + 1 < len(views) else node).inputs[0]


def _origin(node: Node, producers: dict[Value, Node]) -> tuple[Node, list[Node]] | None:
    """The DequantizeLinear that a QuantizeLinear reads, and the views between them, the first one first."""
    if node.op != "QuantizeLinear" or node.domain or node.attrs.get("block_size", 0):
        return None
    views: list[Node] = []
    before = producers.get(node.inputs[0]) if node.inputs[0] is not None else None
    while before is not None and not before.domain and before.op in _VIEWS:
        views.append(before)
        before = producers.get(before.inputs[0]) if before.inputs[0] is not None else None
    if before is None or before.op != "DequantizeLinear" or before.domain or before.attrs.get("block_size", 0):
        return None
    return before, views[::-1]


def _is_same(graph: Graph, node: Node, origin: Node) -> bool:
    """Whether both have the same scale and zero point, constants of one element, and no attributes that matter."""
    for index in (1, 2):
        own, its = (each.inputs[index] if index < len(each.inputs) else None for each in (node, origin))
        arrays = constant_of(graph, own), constant_of(graph, its)
        if arrays[0] is None or arrays[1] is None or arrays[0].size != 1 or arrays[1].size != 1:
            return False
        if arrays[0].dtype != arrays[1].dtype or arrays[0].reshape(()) != arrays[1].reshape(()):
            return False
    scale, zero = constant_of(graph, node.inputs[1]), constant_of(graph, node.inputs[2])
    assert scale is not None
    assert zero is not None
    is_plain = not any(each.attrs.get(name, 0) for each in (node, origin) for name in ("output_dtype", "precision"))
    return is_plain and scale.dtype == np.float32 and zero.dtype in _BYTES


def _gives_back(graph: Graph, node: Node) -> bool:
    scale, zero = (constant_of(graph, value) for value in node.inputs[1:3])
    assert scale is not None
    assert zero is not None
    limits = np.iinfo(zero.dtype)
    every = np.arange(limits.min, limits.max + 1).astype(zero.dtype)
    quantize, dequantize = (reference.lookup("", op) for op in ("QuantizeLinear", "DequantizeLinear"))
    assert quantize is not None
    assert dequantize is not None
    with np.errstate(all="ignore"):
        again = quantize(dequantize(every, scale.reshape(()), zero.reshape(())), scale.reshape(()), zero.reshape(()))
    return bool(np.array_equal(again, every))
