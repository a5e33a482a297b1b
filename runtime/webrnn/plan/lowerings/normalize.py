"""Normalizations that have instructions: layers, instances, batches. The others are expanded (passes/expansions)."""

from __future__ import annotations

from webrnn.ir import Dim, Node

from ..lowering import Lowering, attribute, present, rule
from ..views import View, count_of
from .expressions import Writer
from .reductions import compute, reduce_groups, shaped


@rule("LayerNormalization")
def _layer_norm(l: Lowering, node: Node) -> None:
    x, output = present(node.inputs[0]), present(node.outputs[0])
    view, epsilon = l.view(x), attribute(node, "epsilon", 1e-5)
    if view.dtype != "f32":
        raise l.refuse("it is not of float")
    axis = attribute(node, "axis", -1) % view.rank
    normalized = view.shape[axis:]
    rows, n = count_of(view.shape[:axis]), count_of(normalized)
    given = [None if value is None else l.view(value) for value in (*node.inputs[1:3], None)[:2]]
    target, source = l.dense_output(output), shaped(l, view, rows, n)
    vectors = [None if each is None else _vector(l, each, normalized) for each in given]
    is_by_row = any(each is not None and vector is None for each, vector in zip(given, vectors, strict=True))
    if is_by_row:
        ones = l.temporary((n,))
        l.emit("fill", ones, 1.0)
        vectors = [ones, None]
    l.emit("layer_norm", source, *vectors, target.reshaped((rows, n)), epsilon)
    for name, each in zip(("mul", "add"), given if is_by_row else (), strict=False):
        if each is not None:
            compute(l, name, [target, each], target)
    statistics = [None if value is None else l.dense_output(value).reshaped((rows, 1)) for value in node.outputs[1:]]
    if any(statistics):
        _statistics(l, source, epsilon, [*statistics, None][:2])


def _vector(l: Lowering, view: View, normalized: tuple[Dim, ...]) -> View | None:
    """A scale with an element for each of the normalized ones, unless it differs from row to row."""
    extra = view.rank - len(normalized)
    if any(size != 1 for size in view.shape[: max(extra, 0)]):
        return None
    repeated = l.reshaped(view, view.shape[max(extra, 0) :]).broadcast(normalized)
    return None if repeated is None else shaped(l, repeated, count_of(normalized))


def _statistics(l: Lowering, x: View, epsilon: float, outputs: list[View | None]) -> None:
    """The mean of each row of x[rows, n], and 1 / sqrt(variance + epsilon)."""
    rows, n = x.shape
    mean, variance = (given or l.temporary((rows, 1)) for given in outputs)
    groups = shaped(l, x, rows, n, 1)
    reduce_groups(l, groups, "mean", mean)
    if outputs[1] is None:
        return
    w, squares = Writer(l), l.temporary((rows, n))
    deviation = w.op("sub", w.view(x), w.view(mean))
    w.write([(squares, w.op("mul", deviation, deviation))])
    reduce_groups(l, shaped(l, squares, rows, n, 1), "mean", variance)
    w = Writer(l)
    root = w.op("sqrt", w.op("add", w.view(variance), w.number(epsilon)))
    w.write([(variance, w.op("reciprocal", root))])


def _channels(l: Lowering, view: View) -> tuple[Dim, Dim, Dim]:
    if view.dtype != "f32":
        raise l.refuse("it is not of float")
    return view.shape[0], view.shape[1] if view.rank > 1 else 1, count_of(view.shape[2:])


@rule("InstanceNormalization", "BatchNormalization")
def _by_channel(l: Lowering, node: Node) -> None:
    x, output = present(node.inputs[0]), present(node.outputs[0])
    if attribute(node, "training_mode", 0):
        raise l.refuse("training mode")
    shape = _channels(l, l.view(x))
    vectors = [shaped(l, l.view(value), shape[1]) for value in node.inputs[1:] if value is not None]
    target = l.dense_output(output).reshaped(shape)
    name = "instance_norm" if node.op == "InstanceNormalization" else "batch_norm"
    l.emit(name, shaped(l, l.view(x), *shape), *vectors, target, attribute(node, "epsilon", 1e-5))
