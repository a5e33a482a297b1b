"""A loop without states that takes exactly one step becomes the step, before a model is looked at along time.

Requires: facts from infer_shapes (the number of steps).
Ensures: a Scan as in inline_single_step is replaced by the nodes of its body if it has no states, such as a map over a
batch of one whose body cuts frames out of a signal.
Declines: "it has states".
"""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Graph, Node, Scan
from webrnn.shapes.infer import trip_count

from .base import Context, PassResult
from .inline_single_step import InlineSingleStep


class InlineMaps(InlineSingleStep):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if scan.states:
            if trip_count(scan, context.facts) == 1:
                result.declines_at(node, "it has states")
            return None
        return super().rewrite_scan(graph, node, scan, context, result)
