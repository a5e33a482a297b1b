"""Reductions and softmax over any axes."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Dim, Node

from ..instructions import NUMBER_REDUCTIONS, NUMBERS, REDUCTIONS
from ..lowering import Lowering, attribute, present, rule
from ..views import View, count_of
from .expressions import Writer


def shaped(l: Lowering, view: View, *shape: Dim) -> View:
    """The elements without gaps, in another shape."""
    return l.reshaped(l.dense(view), shape)


def compute(l: Lowering, name: str, operands: Sequence[View], to: View) -> View:
    """One operation of views."""
    w = Writer(l)
    w.write([(to, w.op(name, *(w.view(operand) for operand in operands)))])
    return to


_KINDS = {
    "ReduceSum": "sum", "ReduceMean": "mean", "ReduceSumSquare": "sum_square", "ReduceProd": "prod", "ReduceMax": "max",
    "ReduceMin": "min", "ReduceL1": "l1", "ReduceL2": "l2", "ReduceLogSum": "log_sum", "ReduceLogSumExp": "log_sum_exp",
}  # fmt: skip

_OF_ONE = {"l1": "abs", "l2": "abs", "sum_square": "mul", "log_sum": "log"}
"""What a reduction over no axes does to an element; the others do nothing."""


@rule(*_KINDS)
def _reduce(l: Lowering, node: Node) -> None:
    x, output, kind = present(node.inputs[0]), present(node.outputs[0]), _KINDS[node.op]
    view = l.view(x)
    given = node.inputs[1] if len(node.inputs) > 1 else None
    axes = [axis % view.rank for axis in l.ints(given)] if given is not None else []
    if not axes and attribute(node, "noop_with_empty_axes", 0):
        _reduce_nothing(l, view, kind, node)
        return
    groups = grouped(l, view, axes or range(view.rank), in_one_order=kind not in ("max", "min"))
    target = l.dense_output(output).reshaped((groups.shape[0], groups.shape[2]))
    assert target is not None
    reduce_groups(l, groups, kind, target)


def _reduce_nothing(l: Lowering, view: View, kind: str, node: Node) -> None:
    output = present(node.outputs[0])
    if kind not in _OF_ONE:
        l.views[output] = view
    elif view.dtype == "f32":
        operands = [view, view] if kind == "sum_square" else [view]
        compute(l, _OF_ONE[kind], operands, l.output_like(output, [view]))
    else:
        target = l.dense_output(output)
        l.emit(
            "reduce_numbers",
            shaped(l, view, view.count, 1, 1),
            shaped(l, target, view.count, 1),
            _number(l, view, kind),
        )


def grouped(l: Lowering, view: View, axes: Sequence[int], in_one_order: bool = False) -> View:
    """[outer, n, inner] without gaps, where n are the axes to reduce. Where the order of sums matters, `inner` is not a
    size that may be 1 or not: rows without gaps are summed in another order than columns."""
    chosen = sorted(axes)
    has_gap = chosen != list(range(chosen[0], chosen[-1] + 1)) if chosen else False
    inner = view.shape[chosen[-1] + 1 :] if chosen else ()
    if has_gap or (in_one_order and _may_be_one(inner)):
        kept = [axis for axis in range(view.rank) if axis not in chosen]
        view = view.transposed([*kept, *chosen])
        chosen = list(range(len(kept), view.rank))
    first, end = (chosen[0], chosen[-1] + 1) if chosen else (view.rank, view.rank)
    shape = view.shape
    return shaped(l, view, count_of(shape[:first]), count_of(shape[first:end]), count_of(shape[end:]))


def _may_be_one(sizes: Sequence[Dim]) -> bool:
    """Whether a number of places that is not known yet may be 1: no size of it is a larger number."""
    numbers = [size for size in sizes if isinstance(size, int)]
    return len(numbers) < len(sizes) and all(size == 1 for size in numbers)


def reduce_groups(l: Lowering, x: View, kind: str, y: View) -> None:
    """x[outer, n, inner] to y[outer, inner], neither with gaps."""
    if x.dtype != "f32":
        l.emit("reduce_numbers", x, y, _number(l, x, kind))
    elif kind in REDUCTIONS:
        l.emit("reduce", x, y, REDUCTIONS.index(kind))
    elif kind == "l1":
        reduce_groups(l, compute(l, "abs", [x], l.temporary(x.shape)), "sum", y)
    elif kind == "log_sum_exp":
        _log_sum_exp(l, x, y)
    else:
        reduce_groups(l, x, {"l2": "sum_square", "log_sum": "sum"}[kind], y)
        compute(l, {"l2": "sqrt", "log_sum": "log"}[kind], [y], y)


def _number(l: Lowering, view: View, kind: str) -> int:
    if view.dtype not in NUMBERS or (kind.startswith("log") and view.dtype != "f64"):
        raise l.refuse(f"{kind} of {view.dtype}")
    return NUMBER_REDUCTIONS.index(kind)


def _log_sum_exp(l: Lowering, x: View, y: View) -> None:
    """log(sum(exp(x - top))) + top, where top is the largest number, or 0 if that is not finite."""
    outer, _, inner = x.shape
    top = l.temporary((outer, inner))
    reduce_groups(l, x, "max", top)
    w = Writer(l)
    largest = w.view(top)
    is_finite = w.op("less", w.op("abs", largest), w.number(float("inf")))
    w.write([(top, w.op("select", is_finite, largest, w.number(0.0)))])
    w, terms = Writer(l), l.temporary(x.shape)
    above = w.op("sub", w.view(x), w.view(top.with_axis(1)))
    w.write([(terms, w.op("exp", above))])
    reduce_groups(l, terms, "sum", y)
    w = Writer(l)
    w.write([(y, w.op("add", w.op("log", w.view(y)), w.view(top)))])


def reduce_chosen(l: Lowering, node: Node, kept: Sequence[Dim], reduced: Sequence[Dim]) -> None:
    """A reduction over axes that are known only while running: each axis is two, one of them of one element. Those that
    are reduced go behind the others, one by one."""
    view, output = l.view(present(node.inputs[0])), present(node.outputs[0])
    current = l.dense(view)
    outer: Dim = 1
    n: Dim = 1
    for axis, (before, behind) in enumerate(zip(kept, reduced, strict=True)):
        shape = (outer, before, behind, count_of(view.shape[axis + 1 :]), n)
        source = l.reshaped(current, shape).transposed([0, 1, 3, 2, 4])
        current = l.temporary((view.count,), view.dtype)
        l.copy(source, l.reshaped(current, source.shape))
        outer, n = outer * before, n * behind
    target = l.reshaped(l.dense_output(output), (outer, 1))
    reduce_groups(l, l.reshaped(current, (outer, n, 1)), _KINDS[node.op], target)


@rule("Softmax", "LogSoftmax")
def _softmax(l: Lowering, node: Node) -> None:
    x, output = present(node.inputs[0]), present(node.outputs[0])
    view = l.view(x)
    if view.dtype != "f32":
        raise l.refuse("it is not of float")
    axis = attribute(node, "axis", -1) % view.rank
    order = [*(a for a in range(view.rank) if a != axis), axis]
    moved = view.transposed(order)
    made = l.dense_output(output) if axis == view.rank - 1 else l.temporary(moved.shape)
    rows = (count_of(moved.shape[:-1]), moved.shape[-1])
    l.emit("softmax", shaped(l, moved, *rows), shaped(l, made, *rows), int(node.op == "LogSoftmax"))
    if axis != view.rank - 1:
        l.views[output] = made.transposed([order.index(a) for a in range(view.rank)])
