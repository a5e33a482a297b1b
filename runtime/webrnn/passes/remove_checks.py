"""Checks of shapes that inference proves are skipped.

Requires: facts from infer_shapes.
Ensures: a webrnn.ExpectShape stays only where its operand could have another shape.
Declines: "the shape ... is not proven", "the model's output needs a name of its own".
"""

from __future__ import annotations

from webrnn.ir import WEBRNN, Graph, Node

from .base import Context, Pass, PassResult
from .rewriting import Replacements, drop_nodes


class RemoveChecks(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        replacements = Replacements(graph, context)
        done = []
        for node in graph.nodes:
            if node.domain != WEBRNN or node.op != "ExpectShape":
                continue
            source, made, sizes = node.inputs[0], node.outputs[0], node.attrs["sizes"]
            known = context.facts.shape(source)
            if source is None or made is None:
                continue
            if known is None or not (_fits(known, sizes) and _is_same(known, node, context)):
                result.declines_at(node, f"the shape {list(sizes)} of {node.attrs['what']} is not proven")
            elif not replacements.allows(made, source):
                result.declines_at(node, "the model's output needs a name of its own")
            elif result.fires(node.label):
                replacements.add(made, source)
                done.append(node)
        replacements.apply()
        drop_nodes(graph, done)


def _is_same(known: tuple, node: Node, context: Context) -> bool:
    """Whether the axes that have to be as long as axes of the second operand are."""
    if not node.attrs["same"]:
        return True
    like = context.facts.shape(node.inputs[1])
    return like is not None and all(
        known[axis] is not None and known[axis] == like[other] for axis, other in node.attrs["same"]
    )


def _fits(known: tuple, sizes: tuple) -> bool:
    if len(known) != len(sizes):
        return False
    return all(need is None or have == need for have, need in zip(known, sizes, strict=True))
