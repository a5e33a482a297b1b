"""A loop over sequences takes its number of steps from them.

Requires: facts from infer_shapes (lengths).
Ensures: a Scan has a number of steps only if it has no sequence or too little is known of both; sequences that are
known to be longer are cut, before the loop, so that what moves out of it never works on more than the loop takes.
Declines: "it is not known whether it takes as many steps as its sequences have".
"""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Graph, Node, Scan
from webrnn.ir.dims import is_nonnegative
from webrnn.shapes.infer import length_of, step_count

from .base import Context, PassResult, ScanPass
from .gather_to_sequence import cut_length, cut_to
from .rewriting import Additions


class DropStepCounts(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if scan.n_steps is None or not scan.sequences:
            return None
        steps = step_count(scan.n_steps, context.facts)
        found = (length_of(item.whole, item.spec.axis, context.facts) for item in scan.sequences)
        lengths = [length for length in found if length is not None]
        if steps is None or not any(is_nonnegative(length - steps) for length in lengths):
            result.declines_at(node, "it is not known whether it takes as many steps as its sequences have")
            return None
        if not result.fires(node.label):
            return None
        cuts: list[Node] = []
        if steps not in lengths:
            new = Additions(graph, context)
            end = cut_length(steps, scan.n_steps, new, cuts)
            for item in scan.sequences:
                item.whole = cut_to(item.whole, item.spec.axis, end, new, cuts)
        scan.n_steps = None
        return [*cuts, scan.to_node()]
