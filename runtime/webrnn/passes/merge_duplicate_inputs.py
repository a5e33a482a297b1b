"""A Scan takes each input once and gives each output once.

Requires: merge_common before it, so that equal values are the same value.
Ensures: no two invariants are the same outer value; no two sequences are the same value with the same axis and
direction; no two states have the same init, taps and next value; no two traces the same element, axis, direction and
length. Readers of the second read the first.
Declines: "two outputs of the model need a name each".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from webrnn.ir import Graph, Node, Scan, State, Trace, Value

from .base import Context, PassResult, ScanPass
from .rewriting import Replacements, replace_in_body


class MergeDuplicateInputs(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        before = result.rewrites
        self._merge_inputs(node, scan, result)
        outside = Replacements(graph, context)
        self._merge_states(node, scan, outside, result)
        self._merge_traces(node, scan, outside, result)
        if result.rewrites == before:
            return None
        outside.apply()
        return [scan.to_node()]

    def _merge_inputs(self, node: Node, scan: Scan, result: PassResult) -> None:
        first_of: dict[Hashable, Value] = {}
        inside: dict[Value, Value] = {}
        for invariant in list(scan.invariants):
            first = first_of.setdefault(invariant.outer, invariant.inner)
            if first is not invariant.inner and result.fires(f"invariant {invariant.inner.name} of {node.label}"):
                inside[invariant.inner] = first
                scan.invariants.remove(invariant)
        for sequence in list(scan.sequences):
            first = first_of.setdefault((sequence.whole, sequence.spec), sequence.element)
            if first is not sequence.element and result.fires(f"sequence {sequence.element.name} of {node.label}"):
                inside[sequence.element] = first
                scan.sequences.remove(sequence)
        replace_in_body(scan, inside)

    def _merge_states(self, node: Node, scan: Scan, outside: Replacements, result: PassResult) -> None:
        first_of: dict[Hashable, State] = {}
        inside: dict[Value, Value] = {}
        for state in list(scan.states):
            first = first_of.setdefault((state.init, state.spec, state.body_out), state)
            if first is state or not self._may_merge(node, state.final, first.final, outside, result):
                continue
            if result.fires(f"state {state.body_in[0].name} of {node.label}"):
                inside.update(zip(state.body_in, first.body_in, strict=True))
                first.final = _joined(state.final, first.final, outside)
                scan.states.remove(state)
        replace_in_body(scan, inside)

    def _merge_traces(self, node: Node, scan: Scan, outside: Replacements, result: PassResult) -> None:
        first_of: dict[Hashable, int] = {}
        kept: list[Trace] = []
        for trace in scan.traces:
            index = first_of.setdefault((trace.element, trace.spec), len(kept))
            if index == len(kept):
                kept.append(trace)
                continue
            first = kept[index]
            if not self._may_merge(node, trace.whole, first.whole, outside, result) or not result.fires(
                f"trace {trace.element.name} of {node.label}"
            ):
                first_of[trace.element, trace.spec] = len(kept)
                kept.append(trace)
                continue
            first.whole = _joined(trace.whole, first.whole, outside)
        scan.traces = kept

    def _may_merge(
        self, node: Node, second: Value | None, first: Value | None, outside: Replacements, result: PassResult
    ) -> bool:
        if second is None or first is None or outside.allows(second, first):
            return True
        result.declines_at(node, "two outputs of the model need a name each")
        return False


def _joined(second: Value | None, first: Value | None, outside: Replacements) -> Value | None:
    """The one output that is left of two."""
    if second is not None and first is not None:
        outside.add(second, first)
    return first if first is not None else second
