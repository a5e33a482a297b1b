"""Nodes that give back what they get are skipped.

Requires: facts from infer_shapes.
Ensures: gone are Identity; Cast and CastLike to the type that their operand has; Transpose that keeps the order of
axes, or of those that are not of size 1 where the shape stays the same; Reshape, Expand, Squeeze, Unsqueeze, Flatten,
Slice, Pad and Tile whose result is known to have the shape of its operand and which then cannot have moved an element,
unless they read numbers that only a run knows: those may not be allowed;
Concat, Max, Min, Sum of one tensor; Split into one part.
Declines: "the model's output needs a name of its own".
"""

from __future__ import annotations

from webrnn.ir import Graph, Node, Value

from .base import Context, Pass, PassResult
from .rewriting import Replacements, drop_nodes, ints_of

_KEEP_ORDER = frozenset({"Reshape", "Expand", "Squeeze", "Unsqueeze", "Flatten"})
"""Ops that do not move elements if they do not change the shape."""


class RemoveIdentities(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        replacements = Replacements(graph, context)
        done = []
        for node in graph.nodes:
            replacements.update(node)
            if len(node.outputs) != 1 or node.outputs[0] is None or not is_identity(graph, node, context):
                continue
            source, made = node.inputs[0], node.outputs[0]
            if source is None:
                continue
            if not replacements.allows(made, source):
                result.declines_at(node, "the model's output needs a name of its own")
            elif result.fires(f"{node.op} {node.label}"):
                replacements.add(made, source)
                done.append(node)
        replacements.apply()
        drop_nodes(graph, done)


def is_identity(graph: Graph, node: Node, context: Context) -> bool:
    if node.domain or not node.inputs:
        return False
    if node.op == "Identity":
        return True
    if node.op in ("Concat", "Max", "Min", "Sum"):
        return len(node.inputs) == 1
    if node.op == "Split":
        return len(node.outputs) == 1
    before, after = context.facts.of(node.inputs[0]), context.facts.of(node.outputs[0])
    same_shape = before.shape is not None and before.shape == after.shape and None not in before.shape
    if node.op in ("Cast", "CastLike"):
        return before.dtype is not None and before.dtype is after.dtype
    if node.op == "Transpose":
        perm = node.attrs.get("perm")
        if perm is None:
            return before.rank in (0, 1)
        moved = [axis for axis in perm if not same_shape or before.shape is None or before.shape[axis] != 1]
        return moved == sorted(moved)
    if node.op == "Pad":
        pads = ints_of(graph, context, node.inputs[1])
        return pads is not None and not any(pads)
    if node.op == "Tile":
        repeats = ints_of(graph, context, node.inputs[1])
        return repeats is not None and all(count == 1 for count in repeats)
    if not same_shape or not all(_is_foreseen(context, value) for value in node.inputs[1:]):
        return False
    if node.op == "Slice":
        steps = (1,) if len(node.inputs) < 5 else ints_of(graph, context, node.inputs[4])
        return steps is not None and all(step == 1 for step in steps)
    return node.op in _KEEP_ORDER


def _is_foreseen(context: Context, value: Value | None) -> bool:
    """Whether an operand's numbers are known, or follow from sizes, so that they have been checked."""
    content = () if value is None else context.facts.of(value).content
    return content is not None and None not in content
