"""Reductions, softmax and normalizations."""

from __future__ import annotations

from webrnn.ir import Dim, Node

from ..instructions import REDUCTIONS
from ..lowering import Lowering, attribute, present, rule
from ..views import View, count_of


def _shaped(l: Lowering, view: View, *shape: Dim) -> View:
    return l.reshaped(l.dense(view), shape)


_KINDS = {
    "ReduceSum": "sum", "ReduceMean": "mean", "ReduceSumSquare": "sum_square", "ReduceProd": "prod", "ReduceMax": "max",
    "ReduceMin": "min",
}  # fmt: skip


@rule(*_KINDS)
def _reduce(l: Lowering, node: Node) -> None:
    x, output = present(node.inputs[0]), present(node.outputs[0])
    view = l.view(x)
    if view.dtype != "f32":
        raise l.refuse("it is not of float")
    given = node.inputs[1] if len(node.inputs) > 1 else None
    axes = sorted(axis % view.rank for axis in l.ints(given)) if given is not None else []
    if not axes:
        if attribute(node, "noop_with_empty_axes", 0):  # what it does to an element it does nevertheless
            view = view.with_axis(view.rank)
            axes = [view.rank - 1]
        else:
            view = view if view.rank else view.with_axis(0)
            axes = list(range(view.rank))
    if axes != list(range(axes[0], axes[-1] + 1)):
        kept = [axis for axis in range(view.rank) if axis not in axes]
        view = view.transposed([*kept, *axes])
        axes = list(range(len(kept), view.rank))
    outer, inner = view.shape[: axes[0]], view.shape[axes[-1] + 1 :]
    n = count_of(view.shape[axes[0] : axes[-1] + 1])
    kind = _KINDS[node.op]
    if kind in ("max", "min") and (not isinstance(n, int) or n == 0):
        raise l.refuse("it may reduce nothing")
    target = l.dense_output(output).reshaped((count_of(outer), count_of(inner)))
    l.emit("reduce", _shaped(l, view, count_of(outer), n, count_of(inner)), target, REDUCTIONS.index(kind))


@rule("Softmax", "LogSoftmax")
def _softmax(l: Lowering, node: Node) -> None:
    x, output = present(node.inputs[0]), present(node.outputs[0])
    view = l.view(x)
    if attribute(node, "axis", -1) % view.rank != view.rank - 1:
        raise l.refuse("its axis is not the last one")
    if view.dtype != "f32":
        raise l.refuse("it is not of float")
    shape = (count_of(view.shape[:-1]), view.shape[-1])
    target = l.dense_output(output).reshaped(shape)
    l.emit("softmax", _shaped(l, view, *shape), target, int(node.op == "LogSoftmax"))


@rule("LayerNormalization")
def _layer_norm(l: Lowering, node: Node) -> None:
    x, scale, output = present(node.inputs[0]), present(node.inputs[1]), present(node.outputs[0])
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    if any(extra is not None for extra in node.outputs[1:]):
        raise l.refuse("its mean or deviation is asked for")
    view = l.view(x)
    if view.dtype != "f32":
        raise l.refuse("it is not of float")
    axis = attribute(node, "axis", -1) % view.rank
    shape = (count_of(view.shape[:axis]), count_of(view.shape[axis:]))
    for value in (scale, bias):
        if value is not None and not _has_one_for_each(l.shape(value), view.shape[axis:]):
            raise l.refuse("its scale is broadcast")
    target = l.dense_output(output).reshaped(shape)
    vectors = [None if value is None else _shaped(l, l.view(value), shape[1]) for value in (scale, bias)]
    l.emit("layer_norm", _shaped(l, view, *shape), *vectors, target, attribute(node, "epsilon", 1e-5))


def _has_one_for_each(shape: tuple[Dim, ...], normalized: tuple[Dim, ...]) -> bool:
    """Whether a scale has an element for each of the normalized ones, and the same for all others."""
    extra = len(shape) - len(normalized)
    return extra >= 0 and all(size == 1 for size in shape[:extra]) and shape[extra:] == normalized


def _channels(l: Lowering, view: View) -> tuple[Dim, Dim, Dim]:
    if view.rank < 2 or view.dtype != "f32":
        raise l.refuse("it is not float[batch, channels, ...]")
    return view.shape[0], view.shape[1], count_of(view.shape[2:])


@rule("InstanceNormalization")
def _instance_norm(l: Lowering, node: Node) -> None:
    x, output = present(node.inputs[0]), present(node.outputs[0])
    shape = _channels(l, l.view(x))
    vectors = [_shaped(l, l.view(value), shape[1]) for value in node.inputs[1:3] if value is not None]
    target = l.dense_output(output).reshaped(shape)
    l.emit("instance_norm", _shaped(l, l.view(x), *shape), *vectors, target, attribute(node, "epsilon", 1e-5))


@rule("BatchNormalization")
def _batch_norm(l: Lowering, node: Node) -> None:
    x, output = present(node.inputs[0]), present(node.outputs[0])
    if attribute(node, "training_mode", 0) or any(extra is not None for extra in node.outputs[1:]):
        raise l.refuse("training mode")
    shape = _channels(l, l.view(x))
    vectors = [_shaped(l, l.view(value), shape[1]) for value in node.inputs[1:5] if value is not None]
    target = l.dense_output(output).reshaped(shape)
    l.emit("batch_norm", _shaped(l, l.view(x), *shape), *vectors, target, attribute(node, "epsilon", 1e-5))
