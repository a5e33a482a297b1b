"""Ops that put elements in order, or take them together one after the other."""

from __future__ import annotations

import numpy as np

from webrnn.ir import Dim, Node

from ..draft import Instruction
from ..index_rules import ORDERED, SUMMED
from ..instructions import CUMULATIONS
from ..lowering import Lowering, attribute, present, rule
from ..views import View, count_of
from .expressions import Writer
from .positions import converted, positions


def _lines(l: Lowering, view: View, axis: int) -> View:
    """[outer, n, inner] without gaps, of elements that have an order."""
    if view.dtype not in ORDERED:
        raise l.refuse(f"it is of {view.dtype}")
    return l.reshaped(l.dense(view), _line_shape(view, axis))


def _line_shape(view: View, axis: int, n: Dim | None = None) -> tuple[Dim, Dim, Dim]:
    return count_of(view.shape[:axis]), view.shape[axis] if n is None else n, count_of(view.shape[axis + 1 :])


@rule("ArgMax", "ArgMin")
def _arg_extreme(l: Lowering, node: Node) -> None:
    view = l.view(present(node.inputs[0]))
    axis = attribute(node, "axis", 0) % view.rank
    target = l.dense_output(present(node.outputs[0])).reshaped(_line_shape(view, axis, 1))
    last = attribute(node, "select_last_index", 0)
    l.emit("top", _lines(l, view, axis), None, target, int(node.op == "ArgMin"), int(bool(last)), 1)


@rule("TopK")
def _top_k(l: Lowering, node: Node) -> None:
    view = l.view(present(node.inputs[0]))
    axis = attribute(node, "axis", -1) % view.rank
    values, places = [*node.outputs, None][:2]
    k = l.shape(present(values if values is not None else places))[axis]
    shape = _line_shape(view, axis, k)
    value_view = None if values is None else l.dense_output(values).reshaped(shape)
    place_view = l.temporary(shape, "i64") if places is None else l.dense_output(places).reshaped(shape)
    l.emit("top", _lines(l, view, axis), value_view, place_view, int(not attribute(node, "largest", 1)), 0, 0)


@rule("Hardmax")
def _hardmax(l: Lowering, node: Node) -> None:
    view, output = l.view(present(node.inputs[0])), present(node.outputs[0])
    axis = attribute(node, "axis", -1) % view.rank
    n = view.shape[axis]
    if n == 0:
        l.output(output)
        return
    l.require_not_negative(n - 1)
    largest = l.temporary(_line_shape(view, axis, 1), "i64")
    l.emit("top", _lines(l, view, axis), None, largest, 0, 0, 1)
    target = l.dense_output(output).reshaped(_line_shape(view, axis))
    assert target is not None
    w = Writer(l)
    is_it = w.op("equal", w.view(positions(l, n, 3, 1)), w.view(largest))
    w.write([(target, w.cast(is_it, target.dtype))])


@rule("CumSum", "CumProd")
def _running(l: Lowering, node: Node) -> None:
    view, axis_value = l.view(present(node.inputs[0])), present(node.inputs[1])
    if view.dtype not in SUMMED:
        raise l.refuse(f"it is of {view.dtype}")
    target = l.dense_output(present(node.outputs[0]))
    source = l.dense(view)
    known = l.facts.of(axis_value).ints
    if known is not None:
        _along(l, node, source, target, known[0] % view.rank)
        return
    axis = l.reshaped(converted(l, l.view(axis_value), "i64"), (1,))
    l.emit("in_range", axis, -view.rank, view.rank - 1)
    _along_one_of(l, node, source, target, axis, 0)


def _along(l: Lowering, node: Node, source: View, target: View, axis: int) -> None:
    kind = CUMULATIONS.index("sum" if node.op == "CumSum" else "prod")
    views = [l.reshaped(view, _line_shape(view, axis)) for view in (source, target)]
    if attribute(node, "reverse", 0):
        n = source.shape[axis]
        views = [view.sliced(1, n - 1, n, -1) for view in views]
    l.emit("cumulate", *views, kind, int(bool(attribute(node, "exclusive", 0))))


def _along_one_of(l: Lowering, node: Node, source: View, target: View, chosen: View, axis: int) -> None:
    """An axis that comes with the inputs: a branch for each that it may be, from `axis` on."""
    if axis == source.rank - 1:
        _along(l, node, source, target, axis)
        return
    w = Writer(l)
    number = w.view(chosen)
    is_it = w.op("equal", number, w.number(axis, "i64"))
    from_end = w.op("equal", number, w.number(axis - source.rank, "i64"))
    condition = l.temporary((1,), "bool")
    w.write([(condition, w.op("or", is_it, from_end))])
    blocks = [
        l.in_block(lambda: _along(l, node, source, target, axis)),
        l.in_block(lambda: _along_one_of(l, node, source, target, chosen, axis + 1)),
    ]
    l.add(Instruction("branch", [condition.reshaped(())], blocks=blocks))


MOST_KEPT = 1000
"""A limit of boxes up to which there is room for as many, even where there may be fewer boxes."""


@rule("NonMaxSuppression")
def _non_max_suppression(l: Lowering, node: Node) -> None:
    boxes, scores = l.view(present(node.inputs[0])), l.view(present(node.inputs[1]))
    output, given = present(node.outputs[0]), [*node.inputs[2:], None, None, None]
    batch, n, four = boxes.shape
    classes = scores.shape[1]
    for have, need in ((four, 4), (scores.shape[0], batch), (scores.shape[2], n)):
        l.require_equal(have, need)
    defaults: tuple[np.ndarray, ...] = (
        np.zeros(1, np.int64),
        np.zeros(1, np.float32),
        np.full(1, -np.inf, np.float32),
    )
    limit, overlap, least = (
        l.constant(default) if value is None else l.reshaped(l.view(value), (1,))
        for value, default in zip(given, defaults, strict=False)
    )
    order = l.temporary(scores.shape, "i64")
    lowest_first = l.temporary((batch * classes, n, 1))
    w = Writer(l)
    w.write([(lowest_first, w.op("neg", w.view(l.reshaped(scores, lowest_first.shape))))])
    l.emit("top", lowest_first, None, order.reshaped(lowest_first.shape), 1, 0, 0)
    most = n if given[0] is not None else 0
    known = l.facts.of(given[0]).ints
    if known is not None:
        most = max(known[0], 0) if known[0] <= MOST_KEPT else n
    selected, count = l.temporary((batch * classes * most, 3), "i64"), l.temporary((), "i64")
    corners = _corners(l, boxes, attribute(node, "center_point_box", 0))
    l.emit("nms", corners, l.dense(scores), order, limit, overlap, least, selected, count)
    length = l.late_size(count)
    l.set_shape(output, (length, 3))
    l.views[output] = selected.sliced(0, 0, length)


def _corners(l: Lowering, boxes: View, has_centers: int) -> View:
    """Boxes as (low, low, high, high)."""
    first, second = (boxes.sliced(2, at, 2) for at in (0, 2))
    found = l.temporary(boxes.shape)
    for code, at in (("min", 0), ("max", 2)):
        w = Writer(l)
        a, b = w.view(first), w.view(second)
        if has_centers:
            half = w.op("div", b, 2.0)
            corner = w.op("sub" if code == "min" else "add", a, half)
        else:
            corner = w.op(code, a, b)
        w.write([(found.sliced(2, at, 2), corner)])
    return found


@rule("Unique")
def _unique(l: Lowering, node: Node) -> None:
    """Rows along an axis, or all elements; how many there are is known only while running."""
    view, axis = l.view(present(node.inputs[0])), attribute(node, "axis", None)
    if view.dtype not in ORDERED:
        raise l.refuse(f"it is of {view.dtype}")
    if axis is None:
        view, axis = l.reshaped(view, (view.count,)), 0
    axis %= view.rank
    view = view.transposed([axis, *(other for other in range(view.rank) if other != axis)])
    n, width = view.shape[0], count_of(view.shape[1:])
    rows = l.reshaped(l.dense(view), (n, width))
    values, *others = [*node.outputs, None, None, None][:4]
    inverse = l.temporary((n,), "i64") if others[1] is None else l.dense_output(others[1])
    first, counts = l.temporary((n,), "i64"), l.temporary((n,), "i64")
    count = l.temporary((), "i64")
    is_sorted = int(bool(attribute(node, "sorted", 1)))
    l.emit("unique", rows, l.temporary((2, n), "i64"), first, inverse, counts, count, is_sorted)
    length = l.late_size(count)
    for output, vector in ((others[0], first), (others[2], counts)):
        if output is not None:
            l.set_shape(output, (length,))
            l.views[output] = vector.sliced(0, 0, length)
    if values is not None:
        chosen = l.temporary((length, *view.shape[1:]), view.dtype)
        shaped = chosen.reshaped((1, length, width))
        l.emit("gather", l.reshaped(rows, (1, n, width)), first.sliced(0, 0, length), shaped)
        chosen = chosen.transposed([*range(1, axis + 1), 0, *range(axis + 1, view.rank)])
        l.set_shape(values, chosen.shape)
        l.views[values] = chosen
