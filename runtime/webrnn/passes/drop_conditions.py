"""A condition of a loop that is always true is dropped.

Requires: facts from infer_shapes.
Ensures: a Scan has a condition only if a step can make it false: a Loop with a trip count is then as good as any Scan
for the passes that decline loops which may end early.
Declines: "its condition is only known when the loop runs", "it may take no step" (the condition before the first step
is not known to be true), "nothing else ends the loop".
"""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Graph, Node, Scan, Value

from .base import Context, PassResult, ScanPass


class DropConditions(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if scan.body_cond is None and scan.cond is None:
            return None
        if scan.body_cond is not None and not _is_true(scan.body_cond, context):
            result.declines_at(node, "its condition is only known when the loop runs")
        elif scan.cond is not None and not _is_true(scan.cond, context):
            result.declines_at(node, "it may take no step")
        elif scan.n_steps is None and not scan.sequences:
            result.declines_at(node, "nothing else ends the loop")
        elif result.fires(node.label):
            scan.cond = scan.body_cond = None
            return [scan.to_node()]
        return None


def _is_true(value: Value, context: Context) -> bool:
    return context.facts.of(value).ints == (1,)
