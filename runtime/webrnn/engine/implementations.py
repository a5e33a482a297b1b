"""Whether there is something that runs each op of a model."""

from __future__ import annotations

from webrnn import reference
from webrnn.errors import UnsupportedOp
from webrnn.ir import REFUSED, WEBRNN, Graph, Node, is_scan
from webrnn.ir.fused import is_expression


def require_implementations(graph: Graph) -> None:
    """Raises if the graph, or a loop of it, has an op that nothing implements. A branch may, until it is taken."""
    for node in graph.nodes:
        if is_scan(node) or is_expression(node):
            require_implementations(node.attrs["body"])
        elif node.domain not in (WEBRNN, REFUSED) and (node.op != "If" or node.domain):
            require_implementation(node)


def require_implementation(node: Node) -> None:
    if reference.lookup(node.domain, node.op) is None:
        op = f"{node.domain}:{node.op}" if node.domain else node.op
        raise UnsupportedOp("there is no implementation of this op", node=node.label, op=op)
