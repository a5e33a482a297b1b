"""A loop of a stream that uses the number of its step counts steps itself.

Requires: nothing.
Ensures: no loop of the outermost graph reads the number of the iteration, which begins anew in each step of a stream.
It reads a state that starts from 0, which a stream carries as it does other states.
Declines: nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import DType, Graph, Node, Scan, Value
from webrnn.shapes.facts import Fact

from .base import Context, PassResult, ScanPass
from .rewriting import Additions, replace_in_body
from .sequence_forms import Rearranging


class NumbersToStates(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        number = scan.iteration
        if number is None or graph is not context.root or not result.fires(node.label):
            return None
        inside = Rearranging(scan.body, context)
        before = Value(inside.new.value("step").name, DType.INT64, (1,))
        context.facts.set(before, Fact(DType.INT64, (1,)))
        count = inside.op("Squeeze", before, inside.new.ints(0), hint="step_number")
        after = inside.op("Add", before, inside.new.ints(1), hint="step_next")
        replace_in_body(scan, {number: count})
        scan.body.nodes[:0] = inside.nodes
        scan.iteration = None
        scan.add_state(Additions(graph, context).constant(np.zeros(1, np.int64), "first_step"), before, after, None)
        return [scan.to_node()]
