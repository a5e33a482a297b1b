"""A norm or a pooling over time is written as statistics. Only for callers that ask for running statistics.

Requires: facts from infer_shapes, and the sizes of the axes of time.
Ensures: InstanceNormalization, GroupNormalization, LayerNormalization, RMSNormalization, MeanVarianceNormalization,
LpNormalization, GlobalAveragePool and GlobalMaxPool of the outermost graph over an axis of time are reductions and ops
that go element by element.
Declines: "a rank or a number of channels is not known".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from webrnn.ir import DType, Graph, Node, Value

from .base import Context, PassResult
from .frames import OverTime
from .sequence_forms import Rearranging


class NormsToStatistics(OverTime):
    reorders_arithmetic = True

    def rewrite_node(self, graph: Graph, node: Node, context: Context, result: PassResult) -> None:
        write = None if node.domain else _WRITTEN.get(node.op)
        if write is None or context.facts.dtype(node.inputs[0]) is not DType.FLOAT:
            return
        shape = context.facts.shape(node.inputs[0])
        axes = None if shape is None else _axes(node, len(shape))
        if axes is not None and shape is not None and not any(shape[axis] in self._sizes for axis in axes):
            return
        if axes is None or shape is None or (node.op == "GroupNormalization" and not isinstance(shape[1], int)):
            result.declines_at(node, "a rank or a number of channels is not known")
        elif all(output is None for output in node.outputs[1:]) and result.fires(f"{node.op} {node.label}"):
            around = Rearranging(graph, context)
            write(around, node, axes)
            position = graph.nodes.index(node)
            for made in around.nodes:
                made.name = f"{node.label}/{made.op}"
            graph.nodes[position : position + 1] = around.nodes


def _axes(node: Node, rank: int) -> list[int]:
    """Those that a statistic runs over."""
    if node.op in ("LayerNormalization", "RMSNormalization"):
        return list(range(node.attrs.get("axis", -1) % rank, rank))
    if node.op == "LpNormalization":
        return [node.attrs.get("axis", -1) % rank]
    if node.op == "MeanVarianceNormalization":
        return [axis % rank for axis in node.attrs.get("axes", (0, 2, 3))]
    return list(range(2, rank))


def _operands(node: Node) -> list[Value]:
    return [value for value in node.inputs if value is not None]


def _number(around: Rearranging, number: float) -> Value:
    return around.new.constant(np.array(number, np.float32), "number")


def _epsilon(around: Rearranging, node: Node) -> Value:
    return _number(around, node.attrs.get("epsilon", 1e-5))


def _standardized(around: Rearranging, x: Value, axes: Sequence[int], added: Callable[[Value], Value]) -> Value:
    """`added` makes a deviation of a variance."""
    places = around.new.ints(*axes)
    centred = around.op("Sub", x, around.op("ReduceMean", x, places, keepdims=1))
    variance = around.op("ReduceMean", around.op("Mul", centred, centred), places, keepdims=1)
    return around.op("Div", centred, added(variance))


def _normed(around: Rearranging, x: Value, node: Node, axes: Sequence[int]) -> Value:
    epsilon = _epsilon(around, node)
    return _standardized(around, x, axes, lambda variance: around.op("Sqrt", around.op("Add", variance, epsilon)))


def _by_channel(around: Rearranging, x: Value, scale: Value, bias: Value, rank: int, output: Value | None) -> None:
    shape = around.new.ints(-1, *[1] * (rank - 2))
    scaled = around.op("Mul", x, around.op("Reshape", scale, shape))
    around.op("Add", scaled, around.op("Reshape", bias, shape), output=output)


def _instance(around: Rearranging, node: Node, axes: Sequence[int]) -> None:
    x, scale, bias = _operands(node)
    _by_channel(around, _normed(around, x, node, axes), scale, bias, len(axes) + 2, node.outputs[0])


def _group(around: Rearranging, node: Node, axes: Sequence[int]) -> None:
    x, scale, bias = _operands(node)
    groups, shape = node.attrs["num_groups"], around.facts.shape(x)
    assert shape is not None
    channels = int(str(shape[1]))
    rest = around.op("Shape", x, start=2, end=len(shape))
    first = around.op("Shape", x, start=0, end=1)
    target = around.op("Concat", first, around.new.ints(groups, channels // groups), rest, axis=0)
    grouped = around.op("Reshape", x, target, allowzero=0)
    normed = _normed(around, grouped, node, [2, *(axis + 1 for axis in axes)])
    back = around.op(
        "Reshape", normed, around.op("Concat", first, around.new.ints(channels), rest, axis=0), allowzero=0
    )
    _by_channel(around, back, scale, bias, len(shape), node.outputs[0])


def _layer(around: Rearranging, node: Node, axes: Sequence[int]) -> None:
    x, scale, *bias = _operands(node)
    normed = _normed(around, x, node, axes)
    if bias:
        around.op("Add", around.op("Mul", normed, scale), bias[0], output=node.outputs[0])
    else:
        around.op("Mul", normed, scale, output=node.outputs[0])


def _root_mean_square(around: Rearranging, node: Node, axes: Sequence[int]) -> None:
    x, scale = _operands(node)
    square = around.op("ReduceMean", around.op("Mul", x, x), around.new.ints(*axes), keepdims=1)
    root = around.op("Sqrt", around.op("Add", square, _epsilon(around, node)))
    around.op("Mul", around.op("Div", x, root), scale, output=node.outputs[0])


def _mean_variance(around: Rearranging, node: Node, axes: Sequence[int]) -> None:
    (x,) = _operands(node)
    tiny = _number(around, 1e-9)
    made = _standardized(around, x, axes, lambda variance: around.op("Add", around.op("Sqrt", variance), tiny))
    around.op("Identity", made, output=node.outputs[0])


def _lp(around: Rearranging, node: Node, axes: Sequence[int]) -> None:
    (x,) = _operands(node)
    op = "ReduceL1" if node.attrs.get("p", 2) == 1 else "ReduceL2"
    norm, zero = around.op(op, x, around.new.ints(*axes), keepdims=1), _number(around, 0)
    made = around.op("Div", x, norm)
    around.op("Where", around.op("Equal", norm, zero), zero, made, output=node.outputs[0])


def _pooled(op: str) -> Callable[[Rearranging, Node, Sequence[int]], None]:
    def write(around: Rearranging, node: Node, axes: Sequence[int]) -> None:
        (x,) = _operands(node)
        around.op(op, x, around.new.ints(*axes), output=node.outputs[0], keepdims=1)

    return write


_WRITTEN: dict[str, Callable[[Rearranging, Node, Sequence[int]], None]] = {
    "InstanceNormalization": _instance,
    "GroupNormalization": _group,
    "LayerNormalization": _layer,
    "RMSNormalization": _root_mean_square,
    "MeanVarianceNormalization": _mean_variance,
    "LpNormalization": _lp,
    "GlobalAveragePool": _pooled("ReduceMean"),
    "GlobalMaxPool": _pooled("ReduceMax"),
}
