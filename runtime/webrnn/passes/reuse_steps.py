"""A product that a loop makes in each step is not made again behind it, of all steps: it is traced.

A loop that goes back (webrnn.gradient) reads the states of the one that went forth, and hoist_sequences makes their
products with recurrent weights for all steps at once. The forward loop has made them already.

Requires: products are Linear or MatMul (fuse_linear).
Ensures: a product of a whole trace with what the loop has as invariants or constants, which a node of the loop's body
makes of the elements of that trace, is a trace of that node's result.
Declines: "the trace is filled up with zeros"; "it saves memory".
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from webrnn.ir import Graph, Node, Scan, Trace, Value, is_scan
from webrnn.ir.fused import is_linear

from .base import Context, Pass, PassResult
from .rewriting import drop_nodes


class ReuseSteps(Pass):
    reorders_arithmetic: ClassVar[bool] = True

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        consumers = graph.consumers()
        done: list[Node] = []
        for node in graph.nodes:
            if not is_scan(node):
                continue
            scan = Scan.of(node)
            made: list[Trace] = []
            for trace in scan.traces:
                for reader in consumers.get(trace.whole, ()) if trace.whole is not None else ():
                    if reader in done or not _is_product(reader, context) or trace.spec.axis != 0:
                        continue
                    inner = _same_in_body(scan, trace, reader, graph)
                    if inner is None:
                        continue
                    if scan.frugal or trace.spec.length is not None:
                        why = "it saves memory" if scan.frugal else "the trace is filled up with zeros"
                        result.declines_at(node if scan.frugal else reader, why)
                    elif result.fires(f"{reader.op} {reader.label} into {node.label}"):
                        made.append(Trace(trace.spec, _present(inner.outputs[0]), reader.outputs[0]))
                        done.append(reader)
            if made:
                scan.traces += made
                new = scan.to_node()
                node.inputs, node.outputs, node.attrs = new.inputs, new.outputs, new.attrs
        drop_nodes(graph, done)


def _is_product(node: Node, context: Context) -> bool:
    """Of a tensor with one matrix, and not with a trace as the matrix."""
    if not is_linear(node) and not (node.op == "MatMul" and not node.domain):
        return False
    return context.facts.of(node.inputs[1]).rank == 2 and node.inputs.count(node.inputs[0]) == 1


def _same_in_body(scan: Scan, trace: Trace, node: Node, graph: Graph) -> Node | None:
    """The node of the body that makes of an element what `node` makes of the whole trace."""
    if node.inputs[0] is not trace.whole:
        return None
    outer: dict[Value | None, Value] = {invariant.inner: invariant.outer for invariant in scan.invariants}

    def is_same(inside: Value | None, outside: Value | None) -> bool:
        if inside is None or outside is None:
            return inside is outside
        if inside in scan.body.constants and outside in graph.constants:
            a, b = scan.body.constants[inside], graph.constants[outside]
            return a is b or (a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b))
        return outer.get(inside) is outside

    for inner in scan.body.nodes:
        if (inner.op, inner.domain, len(inner.inputs)) == (node.op, node.domain, len(node.inputs)):
            rest = zip(inner.inputs[1:], node.inputs[1:], strict=True)
            if inner.inputs[0] is trace.element and all(is_same(a, b) for a, b in rest):
                return inner
    return None


def _present(value: Value | None) -> Value:
    assert value is not None
    return value
