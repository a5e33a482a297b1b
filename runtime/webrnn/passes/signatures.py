"""What every pass may rely on: nodes have the inputs and attributes that their ops need."""

from __future__ import annotations

from webrnn.errors import Error, UnsupportedOp
from webrnn.ir import Graph, is_scan
from webrnn.ir.blame import blame
from webrnn.reference import check_signature


def check_signatures(graph: Graph) -> None:
    """Raise, with the way to the node, unless each node has the inputs and attributes that its op needs.

    What webrnn lacks is no error in the branch of an If, which may never be taken.
    """
    for node in graph.nodes:
        try:
            if not is_scan(node):
                check_signature(node.op, node.domain, node.inputs, node.attrs)
            for _, inner in node.subgraphs:
                _check_inner(inner, may_lack=not is_scan(node))
        except Error as error:
            raise blame(error, node.label, node.op) from error


def _check_inner(graph: Graph, may_lack: bool) -> None:
    try:
        check_signatures(graph)
    except UnsupportedOp:
        if not may_lack:
            raise
