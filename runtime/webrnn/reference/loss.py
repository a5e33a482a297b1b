"""Losses over classes: scores are (batch, classes, ...), targets (batch, ...)."""

from __future__ import annotations

import numpy as np

from webrnn.errors import ShapeError, UnsupportedOp

from .activation import log_softmax
from .arrays import Array, require_rank_at_least, require_shape
from .gather_scatter import checked_indices
from .registry import op


@op("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(
    log_probabilities: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:
    return _class_loss(log_probabilities, target, weight, ignore_index, reduction)


@op("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    scores: Array,
    labels: Array,
    weights: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> tuple[Array, Array]:
    require_rank_at_least(scores, 2, "scores")
    log_probabilities = log_softmax(scores, axis=1)
    return _class_loss(log_probabilities, labels, weights, ignore_index, reduction), log_probabilities


def _class_loss(
    log_probabilities: Array, target: Array, weight: Array | None, ignore_index: int | None, reduction: str
) -> Array:
    """The mean is weighted; ignored targets have the weight 0."""
    require_rank_at_least(log_probabilities, 2, "the scores")
    dtype = log_probabilities.dtype
    batch, classes, *rest = log_probabilities.shape
    require_shape(target, (batch, *rest), "the target")
    if weight is not None and weight.shape != (classes,):
        raise ShapeError(f"the weights must have the shape [{classes}], it is {list(weight.shape)}")
    counted = np.ones(target.shape, np.bool_) if ignore_index is None else target != ignore_index
    chosen = checked_indices(np.where(counted, target, 0), classes, "the target")
    loss = -np.take_along_axis(log_probabilities, chosen[:, None], axis=1)[:, 0]
    factor = counted.astype(dtype) if weight is None else np.where(counted, weight[chosen], 0).astype(dtype)
    loss = np.where(counted, loss * factor, 0).astype(dtype)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return np.asarray(loss.sum(), dtype)
    if reduction == "mean":
        return np.asarray(loss.sum() / factor.sum(), dtype)
    raise UnsupportedOp(f"{reduction!r} is not one of none, sum, mean", attribute="reduction")
