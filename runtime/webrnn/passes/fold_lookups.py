"""A product of rows that are looked up in a constant table is looked up itself.

Requires: facts from infer_shapes.
Ensures: Linear, or MatMul, of constants and of rows that a Gather takes from a constant table is a Gather from the
table of all its results. Between the two may stand ops that move rows as a whole, which move the indices instead, and
arithmetic with one number, which the table holds then. The results are those of the kernels with fused multiply-adds,
bit for bit.
Declines: "the table of its results is much larger than what it is made of", "there is much to compute beforehand".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from webrnn.checks.arrays import call
from webrnn.ir import DType, Graph, Node, Value, is_plain
from webrnn.ir.fused import is_linear
from webrnn.shapes.infer import infer_node

from .base import Context, Pass, PassResult
from .rewriting import Additions, constant_of, drop_nodes, in_order, ints_of

MOST_GROWTH = 2
"""How much larger than the table and the matrix the table of results may be."""
MOST_WORK = 1 << 24
"""Multiply-adds that are worth a wait when a model is loaded."""

_EXACT = ("Mul", "Add", "Sub", "Div", "Relu", "Neg")
"""Arithmetic that gives the same bits in numpy as in a plan."""


class FoldLookups(Pass):
    reorders_arithmetic = True

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        producers = graph.producers()
        new = Additions(graph, context)
        nodes: list[Node] = []
        folded: list[_Lookup] = []
        needed = _needed(graph)
        for node in graph.nodes:
            lookup = None if needed.isdisjoint(node.outputs) else _Lookup.of(graph, node, producers, context)
            if lookup is not None:
                reason = lookup.reason_against()
                if reason is not None:
                    result.declines_at(node, reason)
                elif result.fires(f"{node.op} {node.label}"):
                    for made in lookup.nodes(new):
                        infer_node(made, context.facts)
                        producers.update((value, made) for value in made.outputs if value is not None)
                        nodes.append(made)
                    folded.append(lookup)
                    continue
            nodes.append(node)
        graph.nodes = nodes
        new.drop_unused(graph.nodes)
        for lookup in folded:
            _measure_indices(graph, lookup)
            _drop_unread(graph, [lookup.gather, *lookup.way])
        graph.nodes = in_order(graph.nodes) or graph.nodes


@dataclass(slots=True)
class _Lookup:
    """A product, and the way of its rows from a table."""

    graph: Graph
    context: Context
    product: Node
    gather: Node
    way: list[Node]
    """The nodes between the two."""
    table: np.ndarray
    matrix: np.ndarray
    bias: np.ndarray | None
    index: Value | None = None
    """Where the rows of the product are looked up."""

    @staticmethod
    def of(graph: Graph, product: Node, producers: dict[Value, Node], context: Context) -> _Lookup | None:
        if not is_linear(product) and not is_plain(product, "MatMul"):
            return None
        matrix, *bias = (_floats(graph, value) for value in product.inputs[1:] if value is not None)
        if matrix is None or matrix.ndim != 2 or any(array is None for array in bias):
            return None
        way: list[Node] = []
        node = _maker(producers, product.inputs[0])
        while node is not None:
            table = _table(graph, node)
            if table is not None:
                fits = table.shape[1] == matrix.shape[0]
                return (
                    _Lookup(graph, context, product, node, way[::-1], table, matrix, bias[0] if bias else None)
                    if fits
                    else None
                )
            if not _leaves_rows(graph, node, context):
                return None
            way.append(node)
            node = _maker(producers, _rows_in(graph, node))
        return None

    def reason_against(self) -> str | None:
        (rows, k), columns = self.table.shape, self.matrix.shape[1]
        if rows * columns > MOST_GROWTH * (rows * k + k * columns):
            return "the table of its results is much larger than what it is made of"
        return "there is much to compute beforehand" if rows * k * columns > MOST_WORK else None

    def nodes(self, new: Additions) -> Iterator[Node]:
        table, self.index = self.table, self.gather.inputs[1]
        for node in self.way:
            if node.op in _EXACT:
                given = [constant_of(self.graph, value) for value in node.inputs]
                (table,) = call(
                    node.op, "", [table if array is None else array.reshape(()) for array in given], node.attrs, 1
                )
                continue
            moved = new.value(f"{self.gather.label}_index")
            yield self._moving_indices(node, moved, new)
            self.index = moved
        results = fused_product(table, self.matrix)
        if self.bias is not None:
            results = results + self.bias
        whole = new.constant(results, f"{self.product.label}_table")
        yield Node("Gather", [whole, self.index], self.product.outputs, {"axis": 0}, self.gather.label)

    def _moving_indices(self, node: Node, moved: Value, new: Additions) -> Node:
        """What a node does to rows, done to their indices: one axis, the last one, is not there."""
        others, attrs = node.inputs[1:], node.attrs
        if node.op == "Transpose":
            attrs = {"perm": list(node.attrs["perm"])[:-1]}
        elif node.op in ("Squeeze", "Unsqueeze"):
            others = [new.ints(*(_axes(self.graph, node, self.context) or []))]
        elif node.op == "Reshape":
            others = [new.ints(*(ints_of(self.graph, self.context, node.inputs[1]) or [])[:-1])]
        return Node(node.op, [self.index, *others], [moved], dict(attrs), node.name)


def _needed(graph: Graph) -> set[Value | None]:
    """What results depend on; fused cells leave products behind that nobody reads."""
    needed: set[Value | None] = {*graph.outputs}
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
    return needed - {None}


def _measure_indices(graph: Graph, lookup: _Lookup) -> None:
    """Let a Shape of the rows that is not about their length look at their indices."""
    rows, index = lookup.product.inputs[0], lookup.index
    rank = lookup.context.facts.of(rows).rank
    for node in graph.nodes:
        if is_plain(node, "Shape") and node.inputs[0] is rows and rank is not None:
            start, end = node.attrs.get("start", 0), node.attrs.get("end", rank)
            if (end + rank if end < 0 else end) < rank:
                ends = {name: at + rank if at < 0 else at for name, at in (("start", start), ("end", end))}
                node.inputs, node.attrs = [index], ends


def _drop_unread(graph: Graph, nodes: list[Node]) -> None:
    """Drop those whose results nobody needs any more; what they would refuse the new nodes refuse. So go the products
    and cuts of them that the fusion of a cell has left behind."""
    needed = _needed(graph)
    left = [node for node in graph.nodes if needed.isdisjoint(node.outputs)]
    remains = [node for node in left if is_linear(node) or is_plain(node, "Split", "Slice")]
    going = [node for node in left if any(node is each for each in (*nodes, *remains))]
    for _ in left:
        gone = {id(node) for node in going}
        read = {value for node in graph.nodes if id(node) not in gone for value in node.inputs} | {*graph.outputs}
        going = [node for node in going if read.isdisjoint(node.outputs)]
    drop_nodes(graph, going)


def fused_product(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """x[rows, K] times w[K, columns] as one chain of fused multiply-adds over k from zero.

    >>> a = np.float32(1 + 2**-12)
    >>> fused_product(np.array([[1, a]], np.float32), np.array([[-1], [a]], np.float32)) == np.float32(2**-11 + 2**-24)
    array([[ True]])
    """
    sums = np.zeros((len(x), w.shape[1]), np.float32)
    left, right = x.astype(np.float64), w.astype(np.float64)
    for k in range(len(w)):
        product = left[:, k, None] * right[k]  # exact: 24 bits times 24 bits
        exact = sums.astype(np.float64)
        total = product + exact
        # What was rounded to the middle of two floats goes to the one that it would have gone to.
        middle = (total.view(np.int64) & ((1 << 29) - 1)) == 1 << 28
        if middle.any():
            of_sum = total - product
            lost = (product - (total - of_sum)) + (exact - of_sum)
            towards = np.where(lost > 0, np.inf, -np.inf)
            total = np.where(middle & (lost != 0), np.nextafter(total, towards), total)
        sums = total.astype(np.float32)
    return sums


def _maker(producers: dict[Value, Node], value: Value | None) -> Node | None:
    return None if value is None else producers.get(value)


def _floats(graph: Graph, value: Value | None) -> np.ndarray | None:
    array = constant_of(graph, value)
    return array if array is not None and array.dtype == np.float32 else None


def _table(graph: Graph, node: Node) -> np.ndarray | None:
    """The table in which a node looks rows up, if that is what it does."""
    table = _floats(graph, node.inputs[0]) if is_plain(node, "Gather") and not node.attrs.get("axis", 0) else None
    return table if table is not None and table.ndim == 2 else None


def _rows_in(graph: Graph, node: Node) -> Value | None:
    return next((value for value in node.inputs if value is not None and value not in graph.constants), None)


def _leaves_rows(graph: Graph, node: Node, context: Context) -> bool:
    """Whether a node moves whole rows, or does the same to each of their elements."""
    rank = context.facts.of(node.inputs[0]).rank if node.inputs else None
    if node.domain or rank is None:
        return False
    if node.op in _EXACT:
        arrays = [constant_of(graph, value) for value in node.inputs]
        numbers = [array for array in arrays if array is not None]
        known = all(array.size == 1 and array.ndim <= 1 for array in numbers) and len(arrays) == len(numbers) + 1
        return known and context.facts.of(_rows_in(graph, node)).dtype is DType.FLOAT
    if node.inputs[0] in graph.constants or node.inputs[0] is None:
        return False
    if node.op == "Transpose":
        return "perm" in node.attrs and list(node.attrs["perm"])[-1] == rank - 1
    if node.op == "ReverseSequence":
        return max(node.attrs.get("batch_axis", 1), node.attrs.get("time_axis", 0)) < rank - 1
    if node.op in ("Squeeze", "Unsqueeze"):
        axes, last = _axes(graph, node, context), rank - 1
        return axes is not None and max(axes, default=0) < last + (len(axes) if node.op == "Unsqueeze" else 0)
    if node.op == "Reshape":
        shape, before = ints_of(graph, context, node.inputs[1]), context.facts.shape(node.inputs[0])
        return bool(shape and before and shape[-1] == before[-1] and shape[-1] > 0 and not node.attrs.get("allowzero"))
    return False


def _axes(graph: Graph, node: Node, context: Context) -> list[int] | None:
    """The axes of a Squeeze or Unsqueeze, counted from the front."""
    rank = context.facts.of(node.inputs[0]).rank
    axes = ints_of(graph, context, node.inputs[1]) if len(node.inputs) > 1 else None
    if rank is None or axes is None:
        return None
    return [axis % (rank + len(axes) if node.op == "Unsqueeze" else rank) for axis in axes]
