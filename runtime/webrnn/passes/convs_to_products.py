"""A convolution of single positions becomes a matrix product.

Requires: facts from infer_shapes.
Ensures: a Conv of one spatial axis with a kernel of size 1, stride 1, one group and no padding is a MatMul, and an Add
of its bias, between two Transposes, where there is one position only or where a Transpose before or behind it cancels
with one of these. Results may differ in their last bits.
Declines: "its weights are not constants", "it has several positions and no Transpose beside it".
"""

from __future__ import annotations

from webrnn.ir import Graph, Node, Value, is_plain

from .base import Context, Pass, PassResult
from .rewriting import Additions, constant_of

CHANNELS_LAST = [0, 2, 1]


class ConvsToProducts(Pass):
    reorders_arithmetic = True

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        producers, consumers = graph.producers(), graph.consumers()
        new = Additions(graph, context)
        for node in list(graph.nodes):
            if not is_plain(node, "Conv") or not _takes_single_positions(node, context):
                continue
            sizes = context.facts.shape(node.inputs[0])
            made = node.outputs[0]
            beside = [producers.get(node.inputs[0])] if node.inputs[0] is not None else []
            beside += consumers.get(made, []) if made is not None else []
            if constant_of(graph, node.inputs[1]) is None:
                result.declines_at(node, "its weights are not constants")
            elif sizes is None or (sizes[2] != 1 and not any(_is_transpose(each) for each in beside)):
                result.declines_at(node, "it has several positions and no Transpose beside it")
            elif result.fires(node.label):
                position = graph.nodes.index(node)
                graph.nodes[position : position + 1] = _product(graph, node, new)
        new.drop_unused(graph.nodes)


def _takes_single_positions(node: Node, context: Context) -> bool:
    weights, attrs = context.facts.shape(node.inputs[1]), node.attrs
    if weights is None or len(weights) != 3 or weights[2] != 1:
        return False
    plain = attrs.get("group", 1) == 1 and attrs.get("strides", [1]) == [1] and not any(attrs.get("pads", [0, 0]))
    return plain and context.facts.of(node.inputs[0]).rank == 3


def _is_transpose(node: Node | None) -> bool:
    """Whether a Transpose moves the channels of what it gives or takes."""
    return node is not None and is_plain(node, "Transpose") and node.attrs.get("perm", [])[-1:] != [2]


def _product(graph: Graph, node: Node, new: Additions) -> list[Node]:
    weights = constant_of(graph, node.inputs[1])
    assert weights is not None
    matrix = new.constant(weights[:, :, 0].T, f"{node.label}_weights")
    nodes: list[Node] = []

    def add(op: str, *inputs: Value | None, **attrs: list[int]) -> Value:
        made = new.value(f"{node.label}_{op.lower()}")
        nodes.append(Node(op, list(inputs), [made], dict(attrs), node.name))
        return made

    value = add("MatMul", add("Transpose", node.inputs[0], perm=CHANNELS_LAST), matrix)
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        value = add("Add", value, node.inputs[2])
    nodes.append(Node("Transpose", [value], node.outputs, {"perm": CHANNELS_LAST}, node.name))
    return nodes
