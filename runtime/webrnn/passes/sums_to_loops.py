"""A running sum, or product, over an axis of open length is a loop.

Requires: facts from infer_shapes.
Ensures: a CumSum or CumProd of the outermost graph along an axis whose size is not a number is a Scan over that axis,
which a stream can go on with. It adds, or multiplies, in the same order.
Declines: "it runs backwards".
"""

from __future__ import annotations

import numpy as np

from webrnn.ir import DType, Graph, Node, Scan, Value, is_plain

from .base import Context, Pass, PassResult
from .sequence_forms import Rearranging

_SUMMED = (DType.FLOAT, DType.DOUBLE, DType.INT64, DType.INT32)
"""Sums of others are computed in wider types."""


class SumsToLoops(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        if graph is not context.root:
            return
        for node in list(graph.nodes):
            if not is_plain(node, "CumSum", "CumProd"):
                continue
            fact, axes = context.facts.of(node.inputs[0]), context.facts.of(node.inputs[1]).ints
            if fact.dtype not in _SUMMED or fact.shape is None or axes is None or len(axes) != 1:
                continue
            axis = axes[0] % len(fact.shape)
            if isinstance(fact.shape[axis], int):
                continue
            if node.attrs.get("reverse", 0):
                result.declines_at(node, "it runs backwards")
            elif result.fires(f"{node.op} {node.label}"):
                position = graph.nodes.index(node)
                graph.nodes[position : position + 1] = _loop(graph, node, axis, context)


def _loop(graph: Graph, node: Node, axis: int, context: Context) -> list[Node]:
    x, total = node.inputs[0], node.outputs[0]
    assert x is not None
    assert total is not None
    dtype, rank = context.facts.dtype(x), context.facts.of(x).rank
    assert dtype is not None
    assert rank is not None
    around = Rearranging(graph, context)
    is_sum = node.op == "CumSum"
    neutral = np.full(1, 0 if is_sum else 1, dtype.array_type)
    start = blank_frame(around, x, axis, rank, neutral)
    body = Graph("sum")
    shape = context.facts.shape(start)
    before, element, after = (Value(name, dtype, shape) for name in ("sum", "frame", "sum_next"))
    body.nodes.append(Node("Add" if is_sum else "Mul", [before, element], [after]))
    scan = Scan(body, name=node.name or node.label)
    scan.add_sequence(x, element, axis)
    scan.add_state(start, before, after, None)
    scan.add_trace(before if node.attrs.get("exclusive", 0) else after, total, axis)
    return [*around.nodes, scan.to_node()]


def blank_frame(around: Rearranging, x: Value, axis: int, rank: int, fill: np.ndarray) -> Value:
    """A tensor as large as one place along an axis, filled with a number."""
    sizes = around.op("Shape", x)
    others = around.new.ints(*(other for other in range(rank) if other != axis))
    return around.op("ConstantOfShape", around.op("Gather", sizes, others, axis=0), value=fill)
