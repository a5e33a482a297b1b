"""ReverseSequence of sequences that all last to the end is a Slice backwards.

Requires: facts from infer_shapes (sizes and lengths).
Ensures: a ReverseSequence whose lengths are all known to be the size of the axis of time is a Slice with step -1, which
moves nothing: loops read it from the end.
Declines: "some sequences may be shorter".
"""

from __future__ import annotations

import numpy as np

from webrnn.ir import Dim, Graph, Value, is_plain
from webrnn.ops.sets import RESHAPES

from .base import Context, Pass, PassResult
from .rewriting import Additions

_REPEATS = RESHAPES | {"Expand", "Tile", "Cast", "Identity"}
"""Ops whose result has no other elements than their first operand."""


class ReverseWholeSequences(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        for node in graph.nodes:
            if not is_plain(node, "ReverseSequence"):
                continue
            x, lengths = node.inputs
            shape, axis = context.facts.shape(x), node.attrs.get("time_axis", 0)
            if shape is None or not _are_all(graph, lengths, shape[axis], context):
                result.declines_at(node, "some sequences may be shorter")
            elif result.fires(node.label):
                new = Additions(graph, context)
                node.op, node.attrs = "Slice", {}
                backwards = [new.ints(-1), new.ints(np.iinfo(np.int64).min), new.ints(axis), new.ints(-1)]
                node.inputs = [x, *backwards]


def _are_all(graph: Graph, value: Value | None, size: Dim | None, context: Context) -> bool:
    """Whether each element of a value is this size."""
    producers = graph.producers()
    while size is not None and value is not None:
        content = context.facts.of(value).content
        if content is not None:
            return all(element == size for element in content)
        node = producers.get(value)
        if node is None or node.domain or node.op not in _REPEATS:
            return False
        value = node.inputs[0]
    return False
