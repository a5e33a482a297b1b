"""Reductions, extremes, running sums and what orders elements."""

from __future__ import annotations

from webrnn.ops.sets import REDUCTIONS
from webrnn.shapes.facts import size_of

from .check import ANY, INTEGERS, Check, spell
from .registry import check


@check(*REDUCTIONS)
def reduction(c: Check) -> None:
    c.is_list(1, "axes")
    axes = c.axes(c.ints(1), c.rank(0)) if c.given(1) else []
    shape = c.shape(0)
    if c.op != "ReduceMean" or c.dtype(0) not in INTEGERS or axes is None or shape is None:
        return
    if axes or not c.attribute("noop_with_empty_axes", 0):
        reduced = tuple(shape[axis] for axis in axes) if axes else shape
        c.at_least(size_of(reduced), 1, f"the mean of no integers is not defined, the shape is {spell(shape)}")


@check("Softmax", "LogSoftmax", "Hardmax", "LpNormalization")
def along_last_axis(c: Check) -> None:
    c.axis_attribute(-1, c.rank(0))
    if c.op == "LpNormalization":
        c.one_of("p", 2, (1, 2))


@check("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def class_loss(c: Check) -> None:
    c.has_rank(0, "the scores", 2, ANY)
    shape = c.shape(0)
    if shape is not None:
        c.has_shape(1, (shape[0], *shape[2:]), "the target")
    c.has_shape(2, (None if shape is None else shape[1],), "the weights")


@check("ArgMax", "ArgMin")
def arg_extreme(c: Check) -> None:
    axis, shape = c.axis_attribute(0, c.rank(0)), c.shape(0)
    if axis is not None and shape is not None:
        c.at_least(shape[axis], 1, f"axis {axis} of {spell(shape)} is empty", "axis")


@check("CumSum", "CumProd")
def running(c: Check) -> None:
    c.has_rank(0, "x", 1, ANY)
    c.is_single(1, "axis")
    for axis in c.ints(1) or ():
        c.axis(axis, c.rank(0))


@check("TopK")
def top_k(c: Check) -> None:
    axis, shape = c.axis_attribute(-1, c.rank(0)), c.shape(0)
    c.is_single(1, "K")
    for count in c.content(1) or ():
        c.at_least(count, 0, f"K is {count}")
        if axis is not None and shape is not None:
            c.at_least(shape[axis], count, f"K is {count}, axis {axis} of {spell(shape)} has fewer elements")


@check("Unique", "Compress")
def along_any_axis(c: Check) -> None:
    if c.attribute("axis") is not None:
        c.axis_attribute(0, c.rank(0))
    if c.op == "Compress":
        c.has_rank(1, "condition", 1)
