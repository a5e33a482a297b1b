"""Shapes of results, where those of any graph say less: there are frames enough for whatever is cut."""

from __future__ import annotations

from collections.abc import Callable

from webrnn.ir import Node, Shape
from webrnn.ir.dims import floor_divide, is_nonnegative
from webrnn.shapes.facts import Facts

from .kinds import NeedsStride
from .layout_rules import reshape_target
from .paces import FAR, longer_by, mentions_strides

_MOST_FRAMES_IN_ONE = 4096
"""A Reshape may make one of so many frames."""


def _reshaped(node: Node, facts: Facts) -> Shape | None:
    """The shape of the result of a Reshape, given that no size is 0."""
    before, target = facts.of(node.inputs[0]).shape, facts.of(node.inputs[1]).content
    if target is None:
        return None
    shape = reshape_target(before, target, bool(node.attrs.get("allowzero", 0)))
    if None in shape and before is not None and any(mentions_strides(size) for size in before):
        for factor in range(2, _MOST_FRAMES_IN_ONE):
            longer = [longer_by(size, factor) for size in before]
            if None not in reshape_target(tuple(longer), [longer_by(size, factor) for size in target], False):
                raise NeedsStride(factor)
    return shape


def _sliced(node: Node, facts: Facts) -> Shape | None:
    """The shape of the result of a Slice, given that there are enough frames to cut."""
    (before, starts, ends), made = (facts.of(value) for value in node.inputs[:3]), facts.shape(node.outputs[0])
    axes = facts.of(node.inputs[3]).ints if len(node.inputs) > 3 and node.inputs[3] is not None else None
    if before.shape is None or made is None or starts.content is None or ends.content is None:
        return None
    shape = list(made)
    steps = facts.of(node.inputs[4]).ints if len(node.inputs) > 4 else None
    for place, axis in enumerate(range(len(starts.content)) if axes is None else axes):
        size, start, end = before.shape[axis], starts.content[place], ends.content[place]
        step = 1 if steps is None else steps[place]
        if not mentions_strides(size) or size is None or start is None or end is None or step < 1:
            continue
        first = size + start if isinstance(start, int) and start < 0 else start
        last = (size if end >= FAR else size + end if end < 0 else end) if isinstance(end, int) else end
        is_head = isinstance(last, int) and isinstance(first, int)
        if is_head or (mentions_strides(last) and not is_nonnegative(last - size - 1)):
            shape[axis] = floor_divide(last - first + step - 1, step)
    return tuple(shape)


def _padded(node: Node, facts: Facts) -> Shape | None:
    """The shape of the result of a Pad that may cut frames."""
    before, pads, made = facts.shape(node.inputs[0]), facts.of(node.inputs[1]).content, facts.shape(node.outputs[0])
    if before is None or pads is None or made is None:
        return None
    axes = facts.of(node.inputs[3]).ints if len(node.inputs) > 3 and node.inputs[3] is not None else range(len(before))
    if axes is None or len(pads) != 2 * len(axes):
        return None
    shape = list(made)
    for place, axis in enumerate(axes):
        size, first, last = before[axis], pads[place], pads[place + len(axes)]
        if size is not None and mentions_strides(size) and first is not None and last is not None:
            shape[axis] = size + first + last
    return tuple(shape)


SHAPES_OF_MANY: dict[str, Callable[[Node, Facts], Shape | None]] = {
    "Reshape": _reshaped,
    "Slice": _sliced,
    "Pad": _padded,
}
