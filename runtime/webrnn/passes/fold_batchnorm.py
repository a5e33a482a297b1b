"""A BatchNormalization after a Conv, Gemm or MatMul goes into its weights.

Requires: facts from infer_shapes.
Ensures: the scale is multiplied into the constant weights (in double precision, rounded once) and the rest becomes the
bias. Results differ in their last bits.
Declines: "it trains"; "its statistics are not constants"; "something else reads what it normalizes"; "the weights
before it are not constants"; "the product has no channel axis to scale" (MatMul of other than 2 axes); "alpha or beta
are not 1"; "the bias before it is not a vector".
"""

from __future__ import annotations

import numpy as np

from webrnn.ir import Graph, Node, Value
from webrnn.ops.sets import WEIGHTED

from .base import Context, Pass, PassResult
from .rewriting import Names, constant_of, drop_nodes, new_constant


class FoldBatchNorm(Pass):
    reorders_arithmetic = True

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        candidates = [node for node in graph.nodes if not node.domain and node.op == "BatchNormalization"]
        done = []
        for node in candidates:
            before = graph.producers().get(node.inputs[0]) if node.inputs[0] is not None else None
            if before is None or before.domain or before.op not in WEIGHTED:
                continue
            reason = self._reason_against(graph, node, before, context)
            if reason is not None:
                result.declines_at(node, reason)
            elif result.fires(f"{before.op} {before.label}"):
                self._fold(graph, node, before, context)
                done.append(node)
        drop_nodes(graph, done)

    def _reason_against(self, graph: Graph, node: Node, before: Node, context: Context) -> str | None:
        statistics = [constant_of(graph, value) for value in node.inputs[1:5]]
        if node.attrs.get("training_mode", 0) or len(node.outputs) != 1:
            return "it trains"
        if any(array is None or array.dtype.kind != "f" for array in statistics):
            return "its statistics are not constants"
        made = before.outputs[0]
        if made is None or len(graph.consumers().get(made, ())) != 1 or made in graph.outputs:
            return "something else reads what it normalizes"
        weights = constant_of(graph, before.inputs[1])
        if weights is None:
            return "the weights before it are not constants"
        if before.op == "MatMul" and (weights.ndim != 2 or context.facts.of(made).rank != 2):
            return "the product has no channel axis to scale"
        if before.op == "Gemm" and (before.attrs.get("alpha", 1.0), before.attrs.get("beta", 1.0)) != (1.0, 1.0):
            return "alpha or beta are not 1"
        bias = before.inputs[2] if len(before.inputs) > 2 else None
        array = constant_of(graph, bias)
        if bias is not None and (array is None or array.ndim != 1):
            return "the bias before it is not a vector"
        return None

    def _fold(self, graph: Graph, node: Node, before: Node, context: Context) -> None:
        scale, shift, mean, variance = (_doubles(graph, value) for value in node.inputs[1:5])
        factor = scale / np.sqrt(variance + node.attrs.get("epsilon", 1e-5))
        weights, dtype = _doubles(graph, before.inputs[1]), _array(graph, before.inputs[1]).dtype
        channels_first = before.op == "Conv" or (before.op == "Gemm" and before.attrs.get("transB", 0))
        scaled = weights * (factor.reshape(-1, *[1] * (weights.ndim - 1)) if channels_first else factor)
        old_bias = _doubles(graph, before.inputs[2]) if len(before.inputs) > 2 and before.inputs[2] else 0.0
        names = Names(graph)
        bias = ((old_bias - mean) * factor + shift).astype(dtype)
        new_weights = new_constant(graph, scaled.astype(dtype), names.fresh("weights_normalized"), context)
        new_bias = new_constant(graph, bias, names.fresh("bias_normalized"), context)
        if before.op == "MatMul":
            before.inputs = [before.inputs[0], new_weights]
            position = graph.nodes.index(node)
            graph.nodes.insert(position, Node("Add", [before.outputs[0], new_bias], node.outputs, {}, node.name))
        else:
            before.inputs = [before.inputs[0], new_weights, new_bias]
            before.outputs = node.outputs


def _array(graph: Graph, value: Value | None) -> np.ndarray:
    array = constant_of(graph, value)
    assert array is not None
    return array


def _doubles(graph: Graph, value: Value | None) -> np.ndarray:
    return _array(graph, value).astype(np.float64)
