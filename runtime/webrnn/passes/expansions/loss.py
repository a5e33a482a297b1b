"""Losses over classes: scores are (batch, classes, ...), targets (batch, ...)."""

from __future__ import annotations

import numpy as np

from webrnn.ir import DType, Node, Value

from .emitter import Declined, Emitter, Expansion


def _negative_log_likelihood(e: Emitter, node: Node) -> None:
    scores, target, weight = [*node.inputs, None][:3]
    assert scores is not None
    assert target is not None
    _loss(e, node, scores, target, weight)


def _softmax_cross_entropy(e: Emitter, node: Node) -> None:
    scores, target, weight = [*node.inputs, None][:3]
    assert scores is not None
    assert target is not None
    wanted = node.outputs[1] if len(node.outputs) > 1 else None
    _loss(e, node, e.op("LogSoftmax", scores, axis=1, output=wanted), target, weight)


def _loss(e: Emitter, node: Node, scores: Value, target: Value, weight: Value | None) -> None:
    """The mean is weighted; ignored targets have the weight 0."""
    dtype, output = e.dtype(scores), node.outputs[0]
    if dtype not in (DType.FLOAT, DType.DOUBLE):
        raise Declined("it is of a narrow type")
    ignored = node.attrs.get("ignore_index")
    integers = e.dtype(target).array_type
    is_ignored = None
    if ignored is not None:
        is_ignored = e.op("Equal", target, e.constant(np.array(ignored, integers)))
        target = e.op("Where", is_ignored, e.constant(np.array(0, integers)), target)
    column = e.op("Unsqueeze", target, e.ints(1))
    loss = e.op("Neg", e.op("Squeeze", e.op("GatherElements", scores, column, axis=1), e.ints(1)))
    factor = None if weight is None else e.op("Gather", weight, target, axis=0)
    zero, one = (e.number(number, dtype) for number in (0, 1))
    if factor is not None:
        loss = e.op("Mul", loss, factor)
    if is_ignored is not None:
        factor = e.op("Where", is_ignored, zero, one if factor is None else factor)
        loss = e.op("Where", is_ignored, zero, loss)
    reduction = node.attrs.get("reduction", "mean")
    if reduction == "none":
        e.op("Identity", loss, output=output)
    elif reduction == "sum":
        e.op("ReduceSum", loss, keepdims=0, output=output)
    elif factor is None:
        e.op("ReduceMean", loss, keepdims=0, output=output)
    else:
        total = e.op("ReduceSum", loss, keepdims=0)
        e.op("Div", total, e.op("ReduceSum", factor, keepdims=0), output=output)


EXPANSIONS: dict[str, Expansion] = {
    "NegativeLogLikelihoodLoss": _negative_log_likelihood,
    "SoftmaxCrossEntropyLoss": _softmax_cross_entropy,
}
