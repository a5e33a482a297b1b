"""A layer normalization that is written out becomes LayerNormalization.

Requires: facts from infer_shapes, squares as products from simplify_powers.
Ensures: (x - mean) / sqrt(mean of squares + epsilon) over the last axis, with the scale and the bias of each column
that follow, is one node; also where it is multiplied by a reciprocal. Results differ in their last bits.
Declines: "a part of it is read elsewhere", "it is not over the last axis alone", "its type is not float32", "a size is
not known".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from webrnn.ir import DType, Graph, Node, Value, is_plain

from .base import Context, Pass, PassResult
from .rewriting import Additions, constant_of, drop_nodes, ints_of


class FuseLayerNorm(Pass):
    reorders_arithmetic = True

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        found = _Finder(graph, context)
        new = Additions(graph, context)
        done: list[Node] = []
        for node in list(graph.nodes):
            norm = found.at(node)
            if norm is None:
                continue
            reason = found.reason_against(norm)
            if reason is not None:
                result.declines_at(node, reason)
            elif result.fires(node.label):
                last = found.with_scale_and_bias(norm, new)
                position = graph.nodes.index(norm.nodes[0])
                graph.nodes[position] = last
                done.extend(norm.nodes[1:])
        drop_nodes(graph, done)
        new.drop_unused(graph.nodes)


@dataclass(slots=True)
class _Norm:
    x: Value
    epsilon: float
    axes: list[list[int] | None]
    """Of both means."""
    nodes: list[Node]
    """The last one first."""


class _Finder:
    def __init__(self, graph: Graph, context: Context):
        self.graph, self.context = graph, context
        self.producers, self.consumers = graph.producers(), graph.consumers()

    def at(self, node: Node) -> _Norm | None:
        """The normalization that this node is the division of."""
        for centred, deviation, divisions in self._divisions(node):
            sub, root = self._node(centred, "Sub"), self._node(deviation, "Sqrt")
            added = self._node(root.inputs[0], "Add") if root is not None else None
            if sub is None or root is None or added is None:
                continue
            for variance, epsilon in (added.inputs, added.inputs[::-1]):
                mean, mean_square = self._node(sub.inputs[1], "ReduceMean"), self._node(variance, "ReduceMean")
                number = constant_of(self.graph, epsilon)
                if (
                    mean is None
                    or mean_square is None
                    or number is None
                    or number.dtype.kind != "f"
                    or number.size != 1
                ):
                    continue
                square = self._square_of(mean_square.inputs[0], centred)
                x = sub.inputs[0]
                if square is None or x is None or mean.inputs[0] is not x or not _keeps(mean, mean_square):
                    continue
                axes = [ints_of(self.graph, self.context, _axes_of(each)) for each in (mean, mean_square)]
                nodes = [*divisions, root, added, mean_square, square, sub, mean]
                return _Norm(x, float(number.reshape(())), axes, nodes)
        return None

    def reason_against(self, norm: _Norm) -> str | None:
        fact = self.context.facts.of(norm.x)
        if fact.dtype is not DType.FLOAT:
            return "its type is not float32"
        if fact.shape is None or not isinstance(fact.shape[-1], int):
            return "a size is not known"
        if any(axes not in ([-1], [len(fact.shape) - 1]) for axes in norm.axes):
            return "it is not over the last axis alone"
        ours = set(map(id, norm.nodes))
        for node in norm.nodes[1:]:
            (made,) = node.outputs
            if made in self.graph.outputs or any(id(each) not in ours for each in self.consumers.get(made, ())):  # type: ignore[arg-type]
                return "a part of it is read elsewhere"
        return None

    def with_scale_and_bias(self, norm: _Norm, new: Additions) -> Node:
        """The node, with what follows inside; its nodes are added to those of the normalization."""
        shape = self.context.facts.shape(norm.x)
        assert shape is not None
        width = shape[-1]
        assert isinstance(width, int)
        (last,) = norm.nodes[0].outputs
        rows: list[Value | None] = [None, None]
        for place, op in enumerate(("Mul", "Add")):
            follower = self._only_reader(last, op)
            row = None if follower is None else self._row(follower, last, width, new)
            if follower is not None and row is not None:
                rows[place] = row
                norm.nodes.insert(0, follower)
                (last,) = follower.outputs
        scale, bias = rows
        if scale is None:
            scale = new.constant(np.ones(width, np.float32), "scale")
        inputs: list[Value | None] = [norm.x, scale, *([bias] if bias is not None else [])]
        attrs = {"axis": -1, "epsilon": norm.epsilon}
        return Node("LayerNormalization", inputs, [last], attrs, norm.nodes[0].name)

    def _divisions(self, node: Node) -> Iterator[tuple[Value, Value, list[Node]]]:
        """The ways to read a node as a / b."""
        if is_plain(node, "Div") and None not in node.inputs:
            yield node.inputs[0], node.inputs[1], [node]  # type: ignore[misc]
        for centred, factor in (node.inputs, node.inputs[::-1]) if is_plain(node, "Mul") else ():
            inverse = self._node(factor, "Reciprocal", "Div")
            if inverse is None or centred is None:
                continue
            one = constant_of(self.graph, inverse.inputs[0])
            divisor = inverse.inputs[-1]
            if divisor is not None and (inverse.op == "Reciprocal" or (one is not None and one.size == 1 and one == 1)):
                yield centred, divisor, [node, inverse]

    def _square_of(self, value: Value | None, operand: Value) -> Node | None:
        node = self._node(value, "Mul", "Pow")
        if node is None or node.inputs[0] is not operand:
            return None
        if node.op == "Mul":
            return node if node.inputs[1] is operand else None
        power = constant_of(self.graph, node.inputs[1])
        return node if power is not None and power.size == 1 and power == 2 else None

    def _only_reader(self, value: Value | None, op: str) -> Node | None:
        readers = self.consumers.get(value, ()) if value is not None else ()
        if len(readers) != 1 or value in self.graph.outputs or not is_plain(readers[0], op):
            return None
        return readers[0]

    def _row(self, node: Node, value: Value | None, width: int, new: Additions) -> Value | None:
        """What else a node reads, if that is one number for each column."""
        other = node.inputs[1] if node.inputs[0] is value else node.inputs[0]
        if other is None or other is value:
            return None
        if self.context.facts.shape(other) == (width,):
            return other
        array, rank = constant_of(self.graph, other), self.context.facts.of(value).rank
        if array is None or rank is None or array.ndim > rank or array.shape[-1:] != (width,) or array.size != width:
            return None
        return new.constant(array.reshape(width), other.name)

    def _node(self, value: Value | None, *ops: str) -> Node | None:
        node = self.producers.get(value) if value is not None else None
        return node if node is not None and is_plain(node, *ops) else None


def _axes_of(node: Node) -> Value | None:
    return node.inputs[1] if len(node.inputs) > 1 else None


def _keeps(*nodes: Node) -> bool:
    return all(node.attrs.get("keepdims", 1) for node in nodes)
