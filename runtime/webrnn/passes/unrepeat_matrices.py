"""Products with matrices that are repeated, as keys that several heads share, read each of them once.

Requires: facts from infer_shapes.
Ensures: a MatMul whose right operand is Expand, Reshape and perhaps a Transpose of its last two axes, which repeat each
matrix of a batch, splits the batch of its left operand in their place, and reads what Expand reads. Bits stay.
Declines: "a size is not known", "they are repeated in another way" (not along one new axis behind another, with which
it is joined), "its left operand is repeated too" (or has another rank).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webrnn.ir import Dim, Graph, Node, Value, is_plain

from .base import Context, Pass, PassResult
from .expansions.emitter import Emitter
from .rewriting import Additions


@dataclass(frozen=True)
class _Repeated:
    """[..., groups, 1, k, n], whose axis of 1 is repeated and joined with the one before, `axis`."""

    source: Value
    axis: int
    groups: int
    times: int
    is_turned: bool


class UnrepeatMatrices(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        producers, new = graph.producers(), Additions(graph, context)
        nodes: list[Node] = []
        for node in graph.nodes:
            found = _matrices(node, producers, context) if is_plain(node, "MatMul") else None
            if isinstance(found, str):
                result.declines_at(node, found)
            elif found is not None and result.fires(node.label):
                nodes += _product(Emitter(graph, node, context, new), node, found)
                continue
            nodes.append(node)
        graph.nodes = nodes
        new.drop_unused(graph.nodes)


def _matrices(node: Node, producers: dict[Value, Node], context: Context) -> _Repeated | str | None:
    """What is repeated, or why it stays so; None if nothing is."""

    def made_by(value: Value | None, op: str) -> Node | None:
        maker = producers.get(value) if value is not None else None
        return maker if maker is not None and is_plain(maker, op) else None

    turn = made_by(node.inputs[1], "Transpose")
    joined = made_by(turn.inputs[0] if turn is not None else node.inputs[1], "Reshape")
    wide = made_by(joined.inputs[0] if joined is not None else None, "Expand")
    if joined is None or wide is None or wide.inputs[0] is None:
        return None
    values = (node.inputs[0], wide.inputs[0], wide.outputs[0], joined.outputs[0])
    left, before, after, merged = ([*(context.facts.shape(value) or (None,))] for value in values)
    if None in (*left, *before, *after, *merged):
        return "a size is not known"
    rank = len(merged)
    if turn is not None and turn.attrs.get("perm") != [*range(rank - 2), rank - 1, rank - 2]:
        return None
    axis = _joined_axis(before, after, merged)
    if axis is None:
        return "they are repeated in another way"
    groups, times = after[axis : axis + 2]
    if not isinstance(groups, int) or not isinstance(times, int):
        return "a size is not known"
    if len(left) != rank or left[axis] != groups * times:
        return "its left operand is repeated too"
    return _Repeated(wide.inputs[0], axis, groups, times, turn is not None)


def _joined_axis(before: Sequence[Dim | None], after: Sequence[Dim | None], merged: Sequence[Dim | None]) -> int | None:
    """The axis that an axis of 1 was repeated behind and joined with, if nothing else happened."""
    if len(before) != len(after) or len(after) != len(merged) + 1:
        return None
    repeated = [axis for axis, (one, many) in enumerate(zip(before, after, strict=True)) if one != many]
    if len(repeated) != 1 or before[repeated[0]] != 1:
        return None
    axis = repeated[0] - 1
    if axis < 0 or axis > len(merged) - 3:
        return None
    groups, times = after[axis : axis + 2]
    assert groups is not None
    assert times is not None
    return axis if merged == [*after[:axis], groups * times, *after[axis + 2 :]] else None


def _product(e: Emitter, node: Node, found: _Repeated) -> Sequence[Node]:
    left, output = node.inputs[0], node.outputs[0]
    assert left is not None
    axis, rank = found.axis, len(e.shape(left))
    before, behind = range(axis), range(axis + 1, rank)
    shape = e.sizes(*((left, a) for a in before), found.groups, found.times, *((left, a) for a in behind))
    split = e.op("Reshape", left, shape, allowzero=1)
    source = found.source
    if found.is_turned:
        source = e.op("Transpose", source, perm=[*range(rank - 1), rank, rank - 1])
    product = e.op("MatMul", split, source)
    heads = found.groups * found.times
    joined = e.sizes(*((product, a) for a in before), heads, *((product, a + 1) for a in behind))
    e.op("Reshape", product, joined, output=output, allowzero=1)
    return e.nodes
