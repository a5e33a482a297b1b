"""Ops that look at their operand in another way, and those that put operands beside each other."""

from __future__ import annotations

from dataclasses import replace

from webrnn.ir import WEBRNN, Dim, Node, SymbolicDim
from webrnn.ir.dims import floor_divide
from webrnn.reference.shape import clamped_slice

from ..lowering import Lowering, attribute, present, rule
from ..views import count_of, dense_strides
from .pads import sizes_of


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
    given = [*node.inputs[1:5], None, None]
    starts, ends = sizes_of(l, given[0]), sizes_of(l, given[1])
    axes = list(range(len(starts))) if given[2] is None else l.ints(given[2])
    steps = [1] * len(starts) if given[3] is None else l.ints(given[3])
    shape = l.shape(output)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis %= view.rank
        view = view.sliced(axis, _start(l, start, end, step, view.shape[axis]), shape[axis], step)
    l.views[output] = view


def _start(l: Lowering, start: Dim, end: Dim, step: int, size: Dim) -> Dim:
    """The first element. Where the length of the result is known although a size is not, all of it lies on the axis."""
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        return int(clamped_slice(start, end, step, size).start)
    if step < 0 and isinstance(start, int) and (start == -1 or start >= 2**31 - 1):
        return size - 1
    if step < 0:
        raise l.refuse("where it starts depends on a size that is not known")
    at = size + start if isinstance(start, int) and start < 0 else start
    if at != 0:
        l.require_not_negative(at)
        l.require_not_negative(size - at)
    return at


@rule("Split")
def _split(l: Lowering, node: Node) -> None:
    view = l.view(present(node.inputs[0]))
    axis = attribute(node, "axis", 0) % view.rank
    size, count = view.shape[axis], len(node.outputs)
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        lengths = sizes_of(l, node.inputs[1])
    else:
        part = floor_divide(size + count - 1, count)
        lengths = [part] * (count - 1)
        lengths.append(size - part * (count - 1))
    start: Dim = 0
    for output, length in zip(node.outputs, lengths, strict=True):
        if output is not None:
            l.views[output] = view.sliced(axis, start, length)
        start = start + length
    l.require_equal(start, size)


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


@rule("Identity")
def _identity(l: Lowering, node: Node) -> None:
    l.views[present(node.outputs[0])] = l.view(present(node.inputs[0]))


@rule("ExpectShape", domain=WEBRNN)
def _expect_shape(l: Lowering, node: Node) -> None:
    source = l.view(present(node.inputs[0]))
    if source.rank != len(node.attrs["sizes"]):
        raise l.refuse("its operand has another rank")
    shape = list(source.shape)
    for axis, need in enumerate(node.attrs["sizes"]):
        if need is not None:
            l.require_equal(source.shape[axis], need)
            shape[axis] = need
    for axis, other in node.attrs["same"]:
        shape[axis] = l.shape(present(node.inputs[1]))[other]
        l.require_equal(source.shape[axis], shape[axis])
    if source.is_contiguous:  # what reads it meets sizes that it knows
        source = replace(source, shape=tuple(shape), strides=dense_strides(shape))
    l.views[present(node.outputs[0])] = source
