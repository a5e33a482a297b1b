"""A MatMul whose inner axis has one element becomes a Mul, which other element-wise ops can join.

Requires: facts from infer_shapes: types and shapes.
Ensures: every bit stays: a product is a sum from zero, so that -0.0 becomes 0.0, which an Add does.
Declines: "an operand is a constant": products with weights are left to fuse_linear.
"""

from __future__ import annotations

import numpy as np

from webrnn.ir import DType, Graph, Node, is_plain
from webrnn.shapes.infer import infer_node

from .base import Context, Pass, PassResult
from .rewriting import Additions, constant_of


class OuterProducts(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        new = Additions(graph, context)
        nodes = []
        for node in graph.nodes:
            nodes.append(node)
            if not is_plain(node, "MatMul"):
                continue
            left, right = (context.facts.of(value) for value in node.inputs)
            if left.dtype is not DType.FLOAT or not left.shape or not right.shape:
                continue
            if len(left.shape) < 2 or len(right.shape) < 2 or left.shape[-1] != 1 or right.shape[-2] != 1:
                continue
            if any(constant_of(graph, value) is not None for value in node.inputs):
                result.declines_at(node, "an operand is a constant")
            elif result.fires(f"MatMul {node.label}"):
                product = new.value(f"{node.label}_product")
                zero = new.constant(np.zeros((), np.float32), "zero")
                made = [Node("Mul", node.inputs, [product], {}, node.name)]
                made.append(Node("Add", [product, zero], node.outputs, {}, node.name))
                nodes[-1:] = made
                for each in made:
                    infer_node(each, context.facts)
        graph.nodes = nodes
