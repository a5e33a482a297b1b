"""A state that every step hands on unchanged is an invariant.

Requires: nothing.
Ensures: no state with the one tap -1 is its own next value; its readers in the body read an invariant, and its final is
its init, after any number of steps. Loop has no invariants that it takes as operands, so models pass them as states.
Declines: "the model's output needs a name of its own".
"""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Graph, Invariant, Node, Scan

from .base import Context, PassResult, ScanPass
from .rewriting import Replacements


class FreezeStates(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        outside = Replacements(graph, context)
        before = result.rewrites
        for state in list(scan.states):
            if not state.spec.is_plain or state.body_out is not state.body_in[0]:
                continue
            if state.final is not None and not outside.allows(state.final, state.init):
                result.declines_at(node, "the model's output needs a name of its own")
            elif result.fires(f"state {state.body_out.name} of {node.label}"):
                scan.states.remove(state)
                scan.invariants.append(Invariant(state.init, state.body_out))
                if state.final is not None:
                    outside.add(state.final, state.init)
        if result.rewrites == before:
            return None
        outside.apply()
        return [scan.to_node()]
