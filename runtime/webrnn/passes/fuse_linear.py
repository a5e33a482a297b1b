"""Products with a matrix become Linear, with the bias that is added to them inside.

Requires: facts from infer_shapes.
Ensures: MatMul of a tensor of two axes or more and a matrix is Linear, and so is Gemm; an Add of a vector for the
columns, or of a constant that is one, goes into the Linear before it, a constant also through a Reshape, Squeeze or
Unsqueeze that leaves rows as they are. A matrix that Gemm transposes is transposed before it; what Gemm scales is
scaled behind it, a constant C at once.
Declines: "a rank is not known", "it is no product of rows and a matrix" (a vector, or a stack of matrices), "its type
is not float32"; for an Add "the product is read elsewhere" and "what is added is not one row".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import WEBRNN, DType, Graph, Node, Value, is_plain
from webrnn.ir.fused import is_linear
from webrnn.ops.sets import RESHAPES
from webrnn.shapes.infer import infer_node

from .base import Context, Pass, PassResult
from .rewriting import Additions, constant_of, drop_nodes


class FuseLinear(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        new = Additions(graph, context)
        nodes: list[Node] = []
        for node in graph.nodes:
            made = self._products(graph, node, context, result, new)
            for each in made if made[0] is not node else ():
                infer_node(each, context.facts)
            nodes.extend(made)
        graph.nodes = nodes
        self._add_biases(graph, context, result, new)
        self._add_later_biases(graph, context, result)
        new.drop_unused(graph.nodes)

    def _products(
        self, graph: Graph, node: Node, context: Context, result: PassResult, new: Additions
    ) -> Sequence[Node]:
        if not is_plain(node, "MatMul", "Gemm"):
            return [node]
        reason = _reason_against(node, context)
        if reason is not None:
            result.declines_at(node, reason)
            return [node]
        if not result.fires(f"{node.op} {node.label}"):
            return [node]
        if node.op == "Gemm":
            return _parts_of_gemm(graph, node, new)
        return [Node("Linear", node.inputs, node.outputs, {}, node.name, WEBRNN)]

    def _add_biases(self, graph: Graph, context: Context, result: PassResult, new: Additions) -> None:
        producers, consumers = graph.producers(), graph.consumers()
        done: list[Node] = []
        for node in graph.nodes:
            for product, added in (node.inputs, node.inputs[::-1]) if is_plain(node, "Add") else ():
                linear = producers.get(product) if product is not None else None
                if linear is None or product is None or not is_linear(linear) or len(linear.inputs) > 2:
                    continue
                bias = _as_row(graph, added, linear, context, new)
                if bias is None:
                    result.declines_at(node, "what is added is not one row")
                elif len(consumers[product]) != 1 or product in graph.outputs:
                    result.declines_at(node, "the product is read elsewhere")
                elif result.fires(f"Add {node.label}"):
                    node.op, node.domain, node.inputs = "Linear", WEBRNN, [*linear.inputs, bias]
                    done.append(linear)
                    break
        drop_nodes(graph, done)

    def _add_later_biases(self, graph: Graph, context: Context, result: PassResult) -> None:
        """Biases that are added behind a node that only rearranges rows."""
        producers, consumers = graph.producers(), graph.consumers()
        done: list[Node] = []
        for node in graph.nodes:
            for product, added in (node.inputs, node.inputs[::-1]) if is_plain(node, "Add") else ():
                between = producers.get(product) if product is not None else None
                source = between.inputs[0] if between is not None and is_plain(between, *_KEEP_ROWS) else None
                linear = producers.get(source) if source is not None else None
                if product is None or between is None or source is None:
                    continue
                if linear is None or not is_linear(linear) or len(linear.inputs) > 2:
                    continue
                array, sizes = constant_of(graph, added), [context.facts.shape(value) for value in (source, product)]
                is_row = array is not None and all(shape and shape[-1:] == array.shape for shape in sizes)
                read_once = all(consumers[value] == [reader] for value, reader in ((source, between), (product, node)))
                if not is_row or not read_once or {source, product} & {*graph.outputs}:
                    continue
                if result.fires(f"Add {node.label}"):
                    linear.inputs = [*linear.inputs, added]
                    between.outputs = node.outputs
                    done.append(node)
                    break
        drop_nodes(graph, done)


_KEEP_ROWS = RESHAPES - {"Identity"}
"""Ops that move no row if the last axis stays as long as it is."""


def _reason_against(node: Node, context: Context) -> str | None:
    x, w = (context.facts.of(value) for value in node.inputs[:2])
    if node.op == "MatMul" and (x.rank is None or w.rank is None):
        return "a rank is not known"
    if node.op == "MatMul" and (x.rank == 1 or w.rank != 2):
        return "it is no product of rows and a matrix"
    if DType.FLOAT not in (x.dtype, w.dtype):
        return "its type is not float32"
    return None


def _parts_of_gemm(graph: Graph, node: Node, new: Additions) -> list[Node]:
    """Linear, and what Gemm does before and behind it."""
    nodes: list[Node] = []
    operands = list(node.inputs[:2])
    for index, flag in enumerate(("transA", "transB")):
        if node.attrs.get(flag, 0):
            array, turned = constant_of(graph, operands[index]), new.value(f"{node.label}_{flag}")
            if array is not None:
                operands[index] = new.constant(array.T, f"{node.label}_{flag}")
            else:
                nodes.append(Node("Transpose", [operands[index]], [turned], {"perm": [1, 0]}))
                operands[index] = turned
    alpha, beta = node.attrs.get("alpha", 1.0), node.attrs.get("beta", 1.0)
    added = node.inputs[2] if len(node.inputs) > 2 and beta != 0 else None
    steps: list[tuple[str, Value]] = [("Mul", _scalar(alpha, new))] if alpha != 1 else []
    if added is not None:
        array = constant_of(graph, added)
        if beta != 1 and array is not None:
            added = new.constant(array * array.dtype.type(beta), added.name)
        elif beta != 1:
            scaled = new.value(f"{node.label}_scaled")
            nodes.append(Node("Mul", [added, _scalar(beta, new)], [scaled]))
            added = scaled
        steps.append(("Add", added))
    nodes.append(Node("Linear", operands, node.outputs, {}, node.name, WEBRNN))
    for op, operand in steps:
        between = new.value(f"{node.label}_product")
        nodes[-1].outputs = [between]
        nodes.append(Node(op, [between, operand], node.outputs, {}, node.name))
    return nodes


def _scalar(number: float, new: Additions) -> Value:
    return new.constant(np.array(number, np.float32), "scalar")


def _as_row(graph: Graph, added: Value | None, linear: Node, context: Context, new: Additions) -> Value | None:
    """What is added to each row of a product, [N], or None where it is something else."""
    sizes = context.facts.shape(linear.inputs[1])
    columns = None if sizes is None else sizes[1]
    if columns is None or added is None:
        return None
    if context.facts.shape(added) == (columns,):
        return added
    array, rank = constant_of(graph, added), context.facts.of(linear.inputs[0]).rank
    if array is None or rank is None or array.ndim > rank or not isinstance(columns, int):
        return None
    if array.size != (array.shape[-1] if array.ndim else 1) or array.size not in (1, columns):
        return None
    return new.constant(np.broadcast_to(array.reshape(-1), (columns,)), added.name)
