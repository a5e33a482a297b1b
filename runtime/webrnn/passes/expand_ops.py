"""Ops that are made of others become these: attention, rotary embeddings, quantization, normalizations, losses.

Requires: facts from infer_shapes.
Ensures: an op of the table below is nodes of simpler ops, which the other passes see and plans have.
Declines: for the reasons that the modules of `expansions` give, such as "a rank is not known".
"""

from __future__ import annotations

from importlib import import_module

from webrnn.ir import Graph, Node
from webrnn.shapes.infer import infer_node

from .base import Context, Pass, PassResult
from .expansions.emitter import Declined, Emitter, Expansion
from .rewriting import Additions

MODULES = {
    "Attention": "attention",
    "RotaryEmbedding": "attention",
    "Einsum": "einsum",
    "BatchNormalization": "normalize",
    "Dropout": "normalize",
    "GroupNormalization": "normalize",
    "LpNormalization": "normalize",
    "MeanVarianceNormalization": "normalize",
    "RMSNormalization": "normalize",
    "InstanceNormalization": "normalize",
    "LayerNormalization": "normalize",
    "Softmax": "normalize",
    "LogSoftmax": "normalize",
    "BlackmanWindow": "signal",
    "HammingWindow": "signal",
    "HannWindow": "signal",
    "NegativeLogLikelihoodLoss": "loss",
    "SoftmaxCrossEntropyLoss": "loss",
    "QuantizeLinear": "quantize",
    "DequantizeLinear": "quantize",
    "QLinearMatMul": "quantize",
    "QLinearConv": "quantize",
    "ConvInteger": "quantize",
    "MatMulInteger": "quantize",
    "Gemm": "gemm",
}
"""The module of `expansions` that has the expansion of an op."""


class ExpandOps(Pass):
    reorders_arithmetic = True

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        new = Additions(graph, context)
        nodes: list[Node] = []
        for node in graph.nodes:
            made = _expanded(graph, node, context, result, new)
            if made is None and result.rewrites and not any(node.subgraphs):
                infer_node(node, context.facts)  # behind an op without a shape rule more is known now
            nodes.extend(made or [node])
        graph.nodes = nodes
        new.drop_unused(nodes)


def _expanded(graph: Graph, node: Node, context: Context, result: PassResult, new: Additions) -> list[Node] | None:
    if node.domain or node.op not in MODULES:
        return None
    module = import_module(f".expansions.{MODULES[node.op]}", __package__)
    expand: Expansion = module.EXPANSIONS[node.op]
    emitter = Emitter(graph, node, context, new)
    try:
        expand(emitter, node)
    except Declined as decline:
        if decline.args:
            result.declines_at(node, str(decline))
        return None
    return emitter.nodes if result.fires(f"{node.op} {node.label}") else None
