"""Losses: functions that add plain ops to a graph and give a scalar.

Each takes what a model predicts, the target and, for sequences of different lengths, a mask: weights, 0 where nothing
is to be learned. What a mean is taken over is said at each. A batch in which everything is masked has the loss 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from webrnn.errors import OptionError
from webrnn.ir import DType, GraphBuilder, Value

SMALLEST = 1e-30
"""What a sum of weights is at least, so that a batch that is all masked divides 0 by something."""


def mean_squared_error(b: GraphBuilder, prediction: Value, target: Value, mask: Value | None = None) -> Value:
    """The mean of (prediction - target)² over all elements; with a mask the weighted mean.

    The mask has the first axes of the prediction: [batch, time] for a prediction of [batch, time, features].
    """
    difference = b.op("Sub", prediction, target)
    squares = b.op("Mul", difference, difference)
    if mask is None:
        return b.op("ReduceMean", squares, keepdims=0, name="loss")
    rest = tuple(range(rank_of(mask, "the mask"), rank_of(prediction, "the prediction")))
    if rest:
        squares = b.op("ReduceMean", squares, b.ints(*rest), keepdims=0)
    return weighted_mean(b, squares, mask)


def cross_entropy(
    b: GraphBuilder,
    prediction: Value,
    target: Value,
    mask: Value | None = None,
    *,
    axis: int = -1,
    weight: Sequence[float] | None = None,
    smoothing: float = 0.0,
) -> Value:
    """Cross entropy of softmax(prediction) along `axis`, from logits.

    The target is the number of the class, of the prediction's shape without the axis, or a distribution of the
    prediction's shape. A negative number is left out of the mean, one that is too large raises when the graph runs.

    The mean is over all numbers of classes, weighted by the mask and by `weight` of the class; of distributions it is
    over all of them, weighted by the mask alone. `smoothing` mixes the target with the uniform distribution.
    """
    rank = rank_of(prediction, "the prediction")
    if not -rank <= axis < rank:
        raise OptionError(f"axis={axis}: the prediction has {rank} axes")
    axis %= rank
    n_classes = _classes(prediction, axis)
    weights = None if weight is None else _class_weights(weight, n_classes, prediction)
    if not 0 <= smoothing < 1:
        raise OptionError(f"smoothing={smoothing}: it is at least 0 and less than 1")
    along_axis = [1] * rank
    along_axis[axis] = n_classes
    counted = None
    if target.dtype in (DType.INT32, DType.INT64):
        wanted, counted = _one_hot(b, target, axis, n_classes, weights, prediction)
    else:
        wanted = target
    if smoothing:
        kept = b.op("Mul", wanted, number(b, 1 - smoothing, prediction))
        wanted = b.op("Add", kept, number(b, smoothing / n_classes, prediction))
    if weights is not None:
        wanted = b.op("Mul", wanted, b.constant(weights.reshape(along_axis), "class_weights"))
    logarithms = b.op("LogSoftmax", prediction, axis=axis)
    losses = b.op("Neg", b.op("ReduceSum", b.op("Mul", wanted, logarithms), b.ints(axis), keepdims=0))
    if counted is None:
        return weighted_mean(b, losses, mask)
    shares, classes = counted
    losses = b.op("Mul", losses, shares)
    counts = b.op("Mul", classes, shares)
    if mask is not None:
        losses, counts = b.op("Mul", losses, mask), b.op("Mul", counts, mask)
    return ratio(b, b.op("ReduceSum", losses, keepdims=0), b.op("ReduceSum", counts, keepdims=0))


def _one_hot(
    b: GraphBuilder, target: Value, axis: int, n_classes: int, weights: np.ndarray | None, prediction: Value
) -> tuple[Value, tuple[Value, Value]]:
    """Ones where the classes are, and of each target whether it counts and the weight of its class."""
    assert target.dtype is not None
    integers = target.dtype.array_type
    zero = b.constant(np.zeros((), integers))
    is_given = b.op("GreaterOrEqual", target, zero)
    known = b.op("Where", is_given, target, zero)
    # A lookup holds numbers of classes to those that there are, on all backends.
    table = np.ones(n_classes, type_of(prediction)) if weights is None else weights
    classes = b.op("Gather", b.constant(table, "class_weights"), known, axis=0)
    shape = [1] * rank_of(prediction, "the prediction")
    shape[axis] = n_classes
    numbers = b.constant(np.arange(n_classes, dtype=integers).reshape(shape), "classes")
    is_class = b.op("Equal", b.op("Unsqueeze", known, b.ints(axis)), numbers)
    one_hot = b.op("Where", is_class, number(b, 1, prediction), number(b, 0, prediction))
    return one_hot, (b.op("Where", is_given, number(b, 1, prediction), number(b, 0, prediction)), classes)


def _classes(prediction: Value, axis: int) -> int:
    n_classes = (prediction.shape or ())[axis]
    if not isinstance(n_classes, int) or n_classes < 1:
        raise OptionError(
            f"axis {axis} of the prediction has size {n_classes}; how many classes there are must be known"
        )
    return n_classes


def _class_weights(weight: Sequence[float], n_classes: int, prediction: Value) -> np.ndarray:
    try:
        found = np.array(weight, type_of(prediction))
    except (TypeError, ValueError):
        raise OptionError("weight is a list of numbers, one for each class") from None
    if found.shape != (n_classes,):
        raise OptionError(f"weight has shape {list(found.shape)}; there are {n_classes} classes")
    return found


def weighted_mean(b: GraphBuilder, losses: Value, mask: Value | None) -> Value:
    """The mean over all elements, each with its weight."""
    if mask is None:
        return b.op("ReduceMean", losses, keepdims=0, name="loss")
    total = b.op("ReduceSum", b.op("Mul", losses, mask), keepdims=0)
    return ratio(b, total, b.op("ReduceSum", mask, keepdims=0))


def ratio(b: GraphBuilder, total: Value, weights: Value) -> Value:
    """total / weights, 0 if there are none."""
    return b.op("Div", total, b.op("Max", weights, number(b, SMALLEST, weights)), name="loss")


def number(b: GraphBuilder, given: float, like: Value) -> Value:
    """A scalar of the element type of a value, float32 where that is not known."""
    return b.constant(np.array(given, type_of(like)), "number")


def type_of(value: Value) -> np.dtype[Any]:
    return (value.dtype or DType.FLOAT).array_type


def rank_of(value: Value, what: str) -> int:
    if value.shape is None:
        raise OptionError(f"{what} is {value.name!r}, and how many axes it has is not known")
    return len(value.shape)
