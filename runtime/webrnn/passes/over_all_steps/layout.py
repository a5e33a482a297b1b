"""Ops that move elements."""

from __future__ import annotations

from ..rewriting import steps_to_front
from .rewrite import Declined, Rewrite, rule


@rule("Identity")
def identity(r: Rewrite) -> None:
    r.result("Identity", [r.first.value])


@rule("Split")
def split(r: Rewrite) -> None:
    r.only_first_has_steps()
    r.result("Split", r.values(), axis=r.moved(r.node.attrs.get("axis", 0)))


@rule("Squeeze")
def squeeze(r: Rewrite) -> None:
    axes = r.ints(1)
    if not axes:
        raise Declined("which axes it takes away depends on the sizes")
    r.result("Squeeze", [r.first.value, r.axes([r.moved(axis) for axis in axes])])


@rule("Unsqueeze")
def unsqueeze(r: Rewrite) -> None:
    axes = r.ints(1)
    rank = r.first.rank + len(axes)
    r.result("Unsqueeze", [r.first.value, r.axes([r.moved(axis, rank) for axis in axes])])


@rule("Transpose")
def transpose(r: Rewrite) -> None:
    perm = r.node.attrs.get("perm") or range(r.first.rank)[::-1]
    r.result("Transpose", [r.first.value], perm=[0, *(axis + 1 for axis in perm)])


@rule("Concat")
def concat(r: Rewrite) -> None:
    if not all(operand.has_steps for operand in r.given()):
        raise Declined("it joins a sequence with something that is the same in each step")
    r.result("Concat", r.values(), axis=r.moved(r.node.attrs["axis"]))


@rule("Slice")
def slice_(r: Rewrite) -> None:
    starts, ends = r.ints(1), r.ints(2)
    axes = r.ints(3) if r.operand(3) is not None else list(range(len(starts)))
    steps = r.ints(4) if r.operand(4) is not None else [1] * len(starts)
    moved = [r.moved(axis) for axis in axes]
    r.result("Slice", [r.first.value, *(r.axes(numbers) for numbers in (starts, ends, moved, steps))])


@rule("Pad")
def pad(r: Rewrite) -> None:
    r.only_first_has_steps()
    pads = r.ints(1)
    axes = r.ints(3) if r.operand(3) is not None else list(range(r.first.rank))
    fill = r.operand(2)
    moved = r.axes([r.moved(axis) for axis in axes])
    r.result("Pad", [r.first.value, r.axes(pads), None if fill is None else fill.value, moved])


@rule("Reshape", "Flatten")
def reshape(r: Rewrite) -> None:
    r.only_first_has_steps()
    r.result("Reshape", [r.first.value, r.axes([0, *r.sizes(r.node.outputs[0])])], allowzero=0)


@rule("Expand")
def expand(r: Rewrite) -> None:
    r.only_first_has_steps()
    sizes = r.sizes(r.node.outputs[0])
    value, missing = r.first.value, len(sizes) - r.first.rank
    if missing:
        value = r.between("Unsqueeze", [value, r.axes(range(1, 1 + missing))])
    r.result("Expand", [value, r.axes([1, *sizes])])


@rule("Tile")
def tile(r: Rewrite) -> None:
    r.only_first_has_steps()
    r.result("Tile", [r.first.value, r.axes([1, *r.ints(1)])])


@rule("Gather")
def gather(r: Rewrite) -> None:
    data, indices = r.given()
    if data.has_steps and indices.has_steps:
        raise Declined("an operand other than the first is a sequence")
    axis = r.node.attrs.get("axis", 0) % max(data.rank, 1)
    if data.has_steps:
        length = r.sizes(r.node.inputs[0], axis)[0]
        if not all(-length <= index < length for index in r.ints(1)):
            raise Declined("its indices are beyond the axis")
        r.result("Gather", r.values(), axis=axis + 1)
        return
    if not r.all_are_taken:
        raise Declined("it could fail on elements that no step takes")
    if not axis:
        r.result("Gather", r.values())
        return
    rank = data.rank + indices.rank
    r.result("Transpose", [r.between("Gather", r.values(), axis=axis)], perm=steps_to_front(axis, rank))
