"""Two ops in a row that only rearrange a tensor become one, or none.

Requires: facts from infer_shapes.
Ensures: a Transpose of a Transpose is one Transpose; a Reshape of a Reshape, Flatten, Squeeze or Unsqueeze reads the
first one's operand; two of these four that lead back to the shape they started from are skipped, as are a Squeeze and
an Unsqueeze of the same axes. The first op stays if something else reads it.
Declines: "its target copies a size of the tensor in between", "the model's output needs a name of its own".
"""

from __future__ import annotations

from webrnn.ir import Graph, Node
from webrnn.ops.sets import RESHAPES

from .base import Context, Pass, PassResult
from .rewriting import Replacements, drop_nodes, ints_of

_KEEP_ORDER = RESHAPES - {"Identity"}


class MergeLayout(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        producers = graph.producers()
        done: list[Node] = []
        replacements = Replacements(graph, context)
        for node in graph.nodes:
            replacements.update(node)
            first = producers.get(node.inputs[0]) if node.inputs and node.inputs[0] is not None else None
            if first is None or first.domain or node.domain or first.inputs[:1] in ([], [None]):
                continue
            if node.op == first.op == "Transpose":
                self._merge_transposes(node, first, result)
            elif node.op in _KEEP_ORDER and first.op in _KEEP_ORDER:
                self._merge_reshapes(graph, node, first, context, result, replacements, done)
        replacements.apply()
        drop_nodes(graph, done)

    def _merge_transposes(self, node: Node, first: Node, result: PassResult) -> None:
        inner, outer = first.attrs.get("perm"), node.attrs.get("perm")
        if inner is not None and outer is not None and result.fires(f"Transpose {node.label}"):
            node.inputs = [first.inputs[0]]
            node.attrs = {**node.attrs, "perm": [inner[axis] for axis in outer]}

    def _merge_reshapes(
        self,
        graph: Graph,
        node: Node,
        first: Node,
        context: Context,
        result: PassResult,
        replacements: Replacements,
        done: list[Node],
    ) -> None:
        source, made = first.inputs[0], node.outputs[0]
        assert source is not None
        if made is not None and self._leads_back(graph, node, first, context):
            if not replacements.allows(made, source):
                result.declines_at(node, "the model's output needs a name of its own")
            elif result.fires(f"{first.op} and {node.op} {node.label}"):
                replacements.add(made, source)
                done.append(node)
        elif node.op == "Reshape":
            target = ints_of(graph, context, node.inputs[1])
            if target is None or (0 in target and not node.attrs.get("allowzero", 0)):
                result.declines_at(node, "its target copies a size of the tensor in between")
            elif result.fires(f"Reshape {node.label}"):
                node.inputs = [source, node.inputs[1]]

    def _leads_back(self, graph: Graph, node: Node, first: Node, context: Context) -> bool:
        before, after = context.facts.shape(first.inputs[0]), context.facts.shape(node.outputs[0])
        if before is not None and before == after and None not in before:
            return True
        if {node.op, first.op} != {"Squeeze", "Unsqueeze"} or len(node.inputs) != 2 or len(first.inputs) != 2:
            return False
        axes = ints_of(graph, context, node.inputs[1])
        return bool(axes) and axes == ints_of(graph, context, first.inputs[1])
