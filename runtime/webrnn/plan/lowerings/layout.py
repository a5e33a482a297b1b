"""Ops that look at their operand in another way, and those that put operands beside each other."""

from __future__ import annotations

import numpy as np

from webrnn.ir import WEBRNN, Dim, Node, SymbolicDim
from webrnn.reference.shape import clamped_slice

from ..lowering import Lowering, attribute, present, rule
from ..views import View, count_of


@rule("Reshape", "Squeeze", "Unsqueeze", "Flatten")
def _reshape(l: Lowering, node: Node) -> None:
    output = present(node.outputs[0])
    source, shape = l.view(present(node.inputs[0])), l.shape(output)
    if node.op == "Squeeze" and len(node.inputs) > 1 and node.inputs[1] is not None:
        l.ints(node.inputs[1])  # axes that come with the inputs may be wrong, even if they leave only one shape
    if node.op == "Reshape" and not attribute(node, "allowzero", 0):
        for axis, entry in enumerate(l.facts.of(present(node.inputs[1])).content or ()):
            if isinstance(entry, SymbolicDim) and (axis >= source.rank or source.shape[axis] != entry):
                l.require_not_negative(entry - 1)  # 0 would stand for another size, that of this axis
    l.require_equal(source.count, count_of(shape))
    l.views[output] = l.reshaped(source, shape)


@rule("Transpose")
def _transpose(l: Lowering, node: Node) -> None:
    source = l.view(present(node.inputs[0]))
    perm = attribute(node, "perm", None) or list(range(source.rank))[::-1]
    l.views[present(node.outputs[0])] = source.transposed(perm)


@rule("Expand")
def _expand(l: Lowering, node: Node) -> None:
    output = present(node.outputs[0])
    shape = l.shape(output)
    wanted = l.facts.of(present(node.inputs[1])).content
    if wanted is None or None in wanted:
        raise l.refuse("its shape is known in a run only, and may not be allowed")
    if any(a not in (1, b) for a, b in zip(wanted[::-1], shape[::-1], strict=False)):
        raise l.refuse("its operand does not fit")
    repeated = l.view(present(node.inputs[0])).broadcast(shape)
    if repeated is None:
        raise l.refuse("it is not known how its operand is repeated")
    l.views[output] = repeated


@rule("Slice")
def _slice(l: Lowering, node: Node) -> None:
    output = present(node.outputs[0])
    view = l.view(present(node.inputs[0]))
    starts, ends = l.ints(node.inputs[1]), l.ints(node.inputs[2])
    axes = l.ints(node.inputs[3]) if len(node.inputs) > 3 and node.inputs[3] is not None else list(range(len(starts)))
    steps = l.ints(node.inputs[4]) if len(node.inputs) > 4 and node.inputs[4] is not None else [1] * len(starts)
    shape = l.shape(output)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis %= view.rank
        view = view.sliced(axis, _start(l, start, end, step, view.shape[axis]), shape[axis], step)
    l.views[output] = view


def _start(l: Lowering, start: int, end: int, step: int, size: Dim) -> Dim:
    if isinstance(size, int):
        return int(clamped_slice(start, end, step, size).start)
    if start == 0 and step > 0:
        return 0
    if start == -1 and step < 0:
        return size - 1
    if step > 0:
        at = start if start > 0 else size + start
        l.require_not_negative(size - start if start > 0 else at)
        return at
    raise l.refuse("where it starts depends on a size that is not known")


@rule("Split")
def _split(l: Lowering, node: Node) -> None:
    view = l.view(present(node.inputs[0]))
    axis = attribute(node, "axis", 0) % view.rank
    start: Dim = 0
    for output in node.outputs:
        if output is None:
            raise l.refuse("a part is not asked for")
        count = l.shape(output)[axis]
        l.views[output] = view.sliced(axis, start, count)
        start = start + count
    l.require_equal(start, view.shape[axis])


@rule("Concat")
def _concat(l: Lowering, node: Node) -> None:
    output = present(node.outputs[0])
    target = l.output(output)
    axis = attribute(node, "axis", 0) % target.rank
    start: Dim = 0
    for operand in node.inputs:
        source = l.view(present(operand))
        for other in range(target.rank):
            if other != axis:
                l.require_equal(source.shape[other], target.shape[other])
        place = target.sliced(axis, start, source.shape[axis])
        if not source.is_at(place):
            l.copy(source, place)
        start = start + source.shape[axis]


@rule("Gather")
def _gather(l: Lowering, node: Node) -> None:
    source, index = l.view(present(node.inputs[0])), present(node.inputs[1])
    output = present(node.outputs[0])
    axis = attribute(node, "axis", 0) % source.rank
    numbers = l.facts.of(index).ints
    if numbers is not None and l.facts.of(index).shape == ():
        size = source.shape[axis]
        if isinstance(size, int) and not -size <= numbers[0] < size:
            raise l.refuse("its index is out of range")
        if isinstance(size, int) or numbers[0] < 0:
            at: Dim = numbers[0] if numbers[0] >= 0 else size + numbers[0]
            if isinstance(size, int):
                l.views[output] = source.without_axis(axis, at)
                return
    target = l.dense_output(output)
    outer, inner = source.shape[:axis], source.shape[axis + 1 :]
    rows = l.reshaped(source, (count_of(outer), source.shape[axis], count_of(inner)))
    indices = l.dense(_as_i64(l, l.view(index)))
    count = indices.count
    shaped, flat = target.reshaped((count_of(outer), count, count_of(inner))), indices.reshaped((count,))
    l.emit("gather", l.dense(rows), flat, shaped)


def _as_i64(l: Lowering, view: View) -> View:
    if view.dtype not in ("i32", "i64"):
        raise l.refuse("its indices are not integers")
    return l.cast(view, "i64")


@rule("Pad")
def _pad(l: Lowering, node: Node) -> None:
    output = present(node.outputs[0])
    source = l.view(present(node.inputs[0]))
    rank = source.rank
    pads = l.ints(node.inputs[1])
    axes = (
        [a % rank for a in l.ints(node.inputs[3])]
        if len(node.inputs) > 3 and node.inputs[3] is not None
        else list(range(rank))
    )
    before, after = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        before[axis], after[axis] = pads[i], pads[i + len(axes)]
    mode = attribute(node, "mode", "constant")
    if min(*before, *after, 0) < 0:
        raise l.refuse("it takes away")
    target = l.output(output)
    if mode == "constant":
        filled = l.array(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] is not None else 0.0
        if filled is None or target.dtype != "f32":
            raise l.refuse("its value is not a constant float")
        target = l.dense_output(output)
        l.emit("fill", target, float(np.reshape(filled, -1)[0]))
        for axis in range(rank):
            target = target.sliced(axis, before[axis], source.shape[axis])
        l.copy(source, target)
        return
    padded = [axis for axis in range(rank) if before[axis] or after[axis]]
    if mode not in ("reflect", "edge") or len(padded) > 1:
        raise l.refuse(f"mode {mode} on {len(padded)} axes")
    l.copy(source, _middle(target, before, source))
    for axis in padded:
        _mirror(l, source, target, axis, before[axis], after[axis], mode)


def _middle(target: View, before: list[int], source: View) -> View:
    for axis in range(source.rank):
        target = target.sliced(axis, before[axis], source.shape[axis])
    return target


def _mirror(l: Lowering, source: View, target: View, axis: int, before: int, after: int, mode: str) -> None:
    size = source.shape[axis]
    l.require_not_negative(size - 1 - (max(before, after) if mode == "reflect" else 0))
    step = -1 if mode == "reflect" else 0
    if before:
        first = before if mode == "reflect" else 0
        l.copy(source.sliced(axis, first, before, step), target.sliced(axis, 0, before))
    if after:
        last = size - 2 if mode == "reflect" else size - 1
        l.copy(source.sliced(axis, last, after, step), target.sliced(axis, size + before, after))


@rule("Identity")
def _identity(l: Lowering, node: Node) -> None:
    l.views[present(node.outputs[0])] = l.view(present(node.inputs[0]))


@rule("ExpectShape", domain=WEBRNN)
def _expect_shape(l: Lowering, node: Node) -> None:
    source = l.view(present(node.inputs[0]))
    if source.rank != len(node.attrs["sizes"]):
        raise l.refuse("its operand has another rank")
    for have, need in zip(source.shape, node.attrs["sizes"], strict=True):
        if need is not None:
            l.require_equal(have, need)
    for axis, other in node.attrs["same"]:
        l.require_equal(source.shape[axis], l.shape(present(node.inputs[1]))[other])
    l.views[present(node.outputs[0])] = source


@rule("ConstantOfShape")
def _constant_of_shape(l: Lowering, node: Node) -> None:
    output = present(node.outputs[0])
    value = attribute(node, "value", None)
    number = 0.0 if value is None else value.reshape(-1)[0]
    if l.dtype(output) != "f32":
        raise l.refuse("it is not of float")
    l.emit("fill", l.dense_output(output), float(number))
