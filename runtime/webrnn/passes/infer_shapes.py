"""Finds the types, shapes and small integer tensors that are known before a graph runs.

Requires: nothing.
Ensures: `context.facts` holds what follows (`webrnn.shapes.infer`), for each value of the graph and of all graphs
inside it. The graph itself stays as it is.
Declines: never.
"""

from __future__ import annotations

from webrnn.ir import Graph
from webrnn.shapes.infer import infer

from .base import Context, Pass, PassResult


class InferShapes(Pass):
    def run(self, graph: Graph, context: Context) -> PassResult:
        known = context.facts.copy()
        infer(graph, context.facts)
        return PassResult(context, learned=context.facts != known)

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        raise NotImplementedError("it looks at a graph as a whole")
