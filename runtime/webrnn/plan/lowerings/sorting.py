"""Ops that put elements in order, or take them together one after the other."""

from __future__ import annotations

from webrnn.ir import Dim, Node

from ..draft import Instruction
from ..instructions import CUMULATIONS
from ..lowering import Lowering, attribute, present, rule
from ..operand_rules import SUMMED
from ..views import View, count_of
from .expressions import Writer
from .indexing import indices, positions


def _lines(l: Lowering, view: View, axis: int) -> View:
    """[outer, n, inner] without gaps."""
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
    axis = l.reshaped(indices(l, axis_value), (1,))
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
