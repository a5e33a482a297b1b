"""Constants that a Scan hands to its body become constants of the body.

Requires: nothing.
Ensures: no invariant is a constant, and no sequence is a constant that repeats one element; where that was the last
thing to say how many steps there are, the number of steps is given instead.
Declines: "an empty sequence has no element to repeat".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import Graph, Node, Scan, SequenceInput, Value

from .base import Context, PassResult, ScanPass
from .rewriting import Names, constant_of, new_constant, replace_in_body


class InlineInvariantConstants(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        replacements: dict[Value, Value] = {}
        for invariant in list(scan.invariants):
            array = constant_of(graph, invariant.outer)
            if array is not None and result.fires(f"{invariant.outer.name} into {node.label}"):
                scan.invariants.remove(invariant)
                replacements[invariant.inner] = new_constant(scan.body, array, invariant.inner.name, context)
        for sequence in list(scan.sequences):
            element = self._repeated_element(graph, node, sequence, result)
            if element is not None and result.fires(f"repeated {sequence.whole.name} into {node.label}"):
                scan.sequences.remove(sequence)
                replacements[sequence.element] = new_constant(scan.body, element, sequence.element.name, context)
                if not scan.sequences and scan.n_steps is None:
                    length = np.array(graph.constants[sequence.whole].shape[sequence.spec.axis], np.int64)
                    scan.n_steps = new_constant(graph, length, Names(graph).fresh("n_steps"), context)
        if not replacements:
            return None
        replace_in_body(scan, replacements)
        return [scan.to_node()]

    def _repeated_element(
        self, graph: Graph, node: Node, sequence: SequenceInput, result: PassResult
    ) -> np.ndarray | None:
        whole = constant_of(graph, sequence.whole)
        if whole is None or whole.dtype == object or not -whole.ndim <= sequence.spec.axis < whole.ndim:
            return None
        if whole.shape[sequence.spec.axis] == 0:
            result.declines_at(node, "an empty sequence has no element to repeat")
            return None
        along = np.moveaxis(whole, sequence.spec.axis, 0)
        first = np.ascontiguousarray(along[0])
        bits = first.tobytes()
        return first if all(np.ascontiguousarray(element).tobytes() == bits for element in along[1:]) else None
