"""Attention over all frames becomes one over the last frames. It changes results: only for callers that ask for it.

Requires: facts from infer_shapes, the sizes of the axes of time, and Attention expanded by expand_ops.
Ensures: Softmax of a product of queries and keys, one for each frame, times values, one for each frame, is a loop along
time. It keeps the keys and values of a number of frames; each frame sees those, its own included, and none behind it.
Between the product and the Softmax there may be ops that go element by element, with numbers.
Declines: "something is added to the scores or hides some of them".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from webrnn.ir import Dim, DType, Graph, Node, Scan, Value, is_plain
from webrnn.shapes.facts import Fact

from .base import Context, Pass, PassResult
from .sequence_forms import Rearranging

_WITH_NUMBERS = ("Mul", "Div", "Add", "Sub", "Tanh", "Neg", "Identity")


class AttentionLooksBack(Pass):
    def __init__(self, sizes: frozenset[Dim] = frozenset(), frames: int = 1):
        """`sizes` are the numbers of frames in the inputs, `frames` is how many of them a frame sees."""
        self._sizes, self._frames = sizes, frames

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        if graph is not context.root:
            return
        for node in list(graph.nodes):
            if is_plain(node, "Attention"):
                _forget_order(node)
            shape = context.facts.shape(node.inputs[0]) if is_plain(node, "Softmax") else None
            if shape is None or len(shape) < 2 or shape[-1] not in self._sizes or shape[-2] not in self._sizes:
                continue
            if node.attrs.get("axis", -1) % len(shape) != len(shape) - 1:
                continue
            found = _find(graph, node, context)
            if found is None:
                result.declines_at(node, "something is added to the scores or hides some of them")
            elif result.fires(f"Softmax {node.label}"):
                _replace(graph, found, self._frames, context)


def _forget_order(node: Node) -> None:
    """Who looks back only sees no frame behind its own: Attention need not hide them."""
    if len(node.inputs) <= 3:
        node.attrs = {name: value for name, value in node.attrs.items() if name != "is_causal"}


@dataclass(frozen=True)
class _Found:
    queries: Value
    """[..., time, size]"""
    keys: Value
    """[..., size, time]"""
    values: Value
    """[..., time, size]"""
    between: list[Node]
    softmax: Node
    product: Node


def _find(graph: Graph, softmax: Node, context: Context) -> _Found | None:
    producers = graph.producers()
    between: list[Node] = []
    value = softmax.inputs[0]
    node = producers.get(value) if value is not None else None
    while node is not None and is_plain(node, *_WITH_NUMBERS):
        operands = [operand for operand in node.inputs if operand is not None]
        numbers = [operand for operand in operands if _is_number(graph, operand)]
        rest = [operand for operand in operands if operand not in numbers]
        if len(rest) != 1:
            return None
        between.insert(0, node)
        node = producers.get(rest[0])
    if node is None or not is_plain(node, "MatMul"):
        return None
    readers = [reader for reader in graph.nodes if softmax.outputs[0] in reader.inputs]
    if len(readers) != 1 or not is_plain(readers[0], "MatMul") or readers[0].inputs[0] is not softmax.outputs[0]:
        return None
    queries, keys, values = node.inputs[0], node.inputs[1], readers[0].inputs[1]
    shapes = [context.facts.shape(operand) for operand in (queries, keys, values)]
    if queries is None or keys is None or values is None or softmax.outputs[0] in graph.outputs:
        return None
    known = [shape for shape in shapes if shape is not None and None not in shape]
    if len(known) < 3 or len({shape[:-2] for shape in known}) > 1:
        return None
    dtypes = {context.facts.dtype(operand) for operand in (queries, keys, values)}
    return _Found(queries, keys, values, between, softmax, readers[0]) if dtypes == {DType.FLOAT} else None


def _is_number(graph: Graph, value: Value) -> bool:
    array = graph.constants.get(value)
    return array is not None and array.size == 1


def _replace(graph: Graph, found: _Found, frames: int, context: Context) -> None:
    around = Rearranging(graph, context)
    shape = context.facts.shape(found.queries)
    assert shape is not None
    rank = len(shape)
    body = Graph("look_back")
    inside = Rearranging(body, context)
    scan = Scan(body, name=found.softmax.name or found.softmax.label)

    def element(whole: Value, axis: int) -> Value:
        sizes = context.facts.shape(whole)
        assert sizes is not None
        made = inside.new.value("frame")
        _say(made, (*sizes[:axis], *sizes[axis + 1 :]))
        scan.add_sequence(whole, made, axis)
        return made

    def _say(value: Value, sizes: tuple[Dim | None, ...]) -> None:
        value.dtype, value.shape = DType.FLOAT, sizes
        context.facts.set(value, Fact(DType.FLOAT, sizes))

    def kept(frame: Value, axis: int, start: Value) -> Value:
        """The last frames on an axis, this one last."""
        before = inside.new.value("kept")
        _say(before, context.facts.shape(start) or ())
        far = inside.new.ints(np.iinfo(np.int64).max)
        rest = inside.op("Slice", before, inside.new.ints(1), far, inside.new.ints(axis))
        now = inside.op("Concat", rest, frame, axis=axis)
        scan.add_state(start, before, now, None)
        return now

    def blank(whole: Value, axis: int) -> Value:
        """Zeros of the shape of a tensor with so many frames."""
        sizes = around.op("Shape", whole)
        parts = [around.op("Slice", sizes, around.new.ints(0), around.new.ints(axis)), around.new.ints(frames)]
        if axis + 1 < rank:
            parts.append(around.op("Slice", sizes, around.new.ints(axis + 1), around.new.ints(rank)))
        return around.op("ConstantOfShape", around.op("Concat", *parts, axis=0), value=np.zeros(1, np.float32))

    row, column, value = (
        element(found.queries, rank - 2),
        element(found.keys, rank - 1),
        element(found.values, rank - 2),
    )
    keys = kept(inside.op("Unsqueeze", column, inside.new.ints(rank - 1)), rank - 1, blank(found.keys, rank - 1))
    values = kept(inside.op("Unsqueeze", value, inside.new.ints(rank - 2)), rank - 2, blank(found.values, rank - 2))
    hidden = around.new.constant(np.full((*[1] * (rank - 1), frames), -np.inf, np.float32), "hidden")
    seen = kept(inside.new.constant(np.zeros([1] * rank, np.float32), "seen"), rank - 1, hidden)
    scores = inside.op("MatMul", inside.op("Unsqueeze", row, inside.new.ints(rank - 2)), keys)
    for node in found.between:
        scores = _again(graph, node, scores, inside)
    weights = inside.op("Softmax", inside.op("Add", scores, seen), axis=-1)
    result = inside.op("Squeeze", inside.op("MatMul", weights, values), inside.new.ints(rank - 2))
    body.nodes = inside.nodes
    scan.add_trace(result, found.product.outputs[0], rank - 2)
    position = graph.nodes.index(found.product)
    graph.nodes[position : position + 1] = [*around.nodes, scan.to_node()]
    graph.nodes.remove(found.softmax)


def _again(graph: Graph, node: Node, scores: Value, inside: Rearranging) -> Value:
    """An op with numbers, on the scores of one frame."""
    operands: list[Value] = []
    for operand in node.inputs:
        assert operand is not None
        array = graph.constants.get(operand)
        operands.append(scores if array is None else inside.new.constant(array, "number"))
    return inside.op(node.op, *operands, **node.attrs)
