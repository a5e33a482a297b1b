"""An If whose condition is known is replaced by the branch it takes.

Requires: facts from infer_shapes.
Ensures: the branch's nodes stand in the place of the If, with its constants in the graph around it.
Declines: "its condition is only known when the graph runs".
"""

from __future__ import annotations

from webrnn.ir import Graph, Node, is_plain

from .base import Context, Pass, PassResult
from .rewriting import Names, Replacements, inline


class InlineIf(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        names: Names | None = None
        position = 0
        while position < len(graph.nodes):
            node = graph.nodes[position]
            position += 1
            if not is_plain(node, "If"):
                continue
            condition = context.facts.of(node.inputs[0]).ints
            if condition is None or len(condition) != 1:
                result.declines_at(node, "its condition is only known when the graph runs")
            elif result.fires(node.label):
                names = names or Names(graph)
                branch = node.attrs["then_branch" if condition[0] else "else_branch"]
                position -= 1
                self._inline(graph, position, branch, names, context)

    def _inline(self, graph: Graph, position: int, branch: Graph, names: Names, context: Context) -> None:
        node = graph.nodes[position]
        arguments = [value for value in node.inputs[1:] if value is not None]
        nodes, constants = inline(branch, arguments, names)
        graph.constants.update(constants)
        replacements = Replacements(graph, context)
        copies = []
        for outer, inner in zip(node.outputs, branch.outputs, strict=True):
            if outer is None:
                continue
            if replacements.allows(outer, inner):
                replacements.add(outer, inner)
            else:
                copies.append(Node("Identity", [inner], [outer]))
        graph.nodes[position : position + 1] = [*nodes, *copies]
        replacements.apply()
