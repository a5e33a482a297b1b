"""Pow with a constant exponent of 1, 2 or 0.5 becomes its operand, a product or a square root.

Requires: facts from infer_shapes.
Ensures: x*x and Sqrt are rounded correctly, which a Pow need not be: results may differ in the last bit.
Declines: "its exponent may broadcast its base to another shape"; "its base may be negative" for 0.5, because
Pow(-inf, 0.5) is inf and Pow(-0.0, 0.5) is 0.0, where square roots are NaN and -0.0.
"""

from __future__ import annotations

import numpy as np

from webrnn.ir import Graph, Node, Value
from webrnn.ops.rows import with_trait

from .base import Context, Pass, PassResult
from .rewriting import constant_of

_NEVER_NEGATIVE = with_trait("nonnegative")
"""Ops whose results are not below 0 and not -0.0. (Relu of -0.0 may be -0.0.)"""


class SimplifyPowers(Pass):
    reorders_arithmetic = True

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        producers = graph.producers()
        for node in graph.nodes:
            if node.domain or node.op != "Pow":
                continue
            exponent = constant_of(graph, node.inputs[1])
            if exponent is None or exponent.size == 0 or exponent.dtype.kind not in "fiu":
                continue
            power = float(exponent.reshape(-1)[0])
            if power not in (1, 2, 0.5) or not np.all(exponent == power):
                continue
            base = context.facts.of(node.inputs[0])
            if exponent.size != 1 or base.rank is None or exponent.ndim > base.rank:
                result.declines_at(node, "its exponent may broadcast its base to another shape")
            elif power == 0.5 and not self._is_positive(node.inputs[0], producers):
                result.declines_at(node, "its base may be negative")
            elif result.fires(f"Pow {power:g} {node.label}"):
                node.op = {1: "Identity", 2: "Mul", 0.5: "Sqrt"}[power]
                node.inputs = [node.inputs[0]] * (2 if power == 2 else 1)

    def _is_positive(self, value: Value | None, producers: dict[Value, Node]) -> bool:
        node = producers.get(value) if value is not None else None
        if node is None or node.domain:
            return False
        return node.op in _NEVER_NEGATIVE or (node.op == "Mul" and node.inputs[0] is node.inputs[1])
