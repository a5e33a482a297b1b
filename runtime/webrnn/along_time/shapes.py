"""Shapes of results, and sizes computed from others, where those of any graph say less: there are frames enough for
whatever is cut, and as many as a stride needs for quotients to be whole."""

from __future__ import annotations

from collections.abc import Callable

from webrnn.ir import Dim, Node, Shape, SymbolicDim
from webrnn.ir.dims import floor_divide, is_nonnegative, quotient
from webrnn.shapes.facts import Facts

from .kinds import BreaksTime, NeedsStride
from .layout_rules import reshape_target
from .paces import FAR, STRIDES, Pace, longer_by, mentions_strides

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
        if size is None or start is None or end is None or step < 1:
            continue
        if not mentions_strides(size):
            if mentions_strides(end) and isinstance(start, int) and start >= 0 and step == 1:
                # A table that lasts for all frames.
                shape[axis] = end - start
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


def _counted(node: Node, facts: Facts) -> Shape | None:
    """How many numbers a Range gives."""
    first, last, step = ((facts.of(value).content or (None,))[0] for value in node.inputs)
    if first is None or last is None or not isinstance(step, int) or step < 1 or not mentions_strides(last - first):
        return None
    return (_divided(last - first + step - 1, step),)


SHAPES_OF_MANY: dict[str, Callable[[Node, Facts], Shape | None]] = {
    "Reshape": _reshaped,
    "Slice": _sliced,
    "Pad": _padded,
    "Range": _counted,
}


def content_of_many(node: Node, facts: Facts) -> tuple[Dim | None, ...] | None:
    """Sizes that a node computes from the number of frames."""
    rule, operands = _SIZES_OF_MANY.get(node.op), [facts.of(value).content for value in node.inputs]
    if node.op == "Neg" and operands[0] is not None:
        return tuple(None if size is None else -size for size in operands[0])
    if (
        rule is None
        or len(operands) != 2
        or not any(mentions_strides(size) for each in operands for size in each or ())
    ):
        return None
    first, second = operands
    if not first or not second or (len(first) != len(second) and 1 not in (len(first), len(second))):
        return None
    count, made = max(len(first), len(second)), facts.of(node.outputs[0]).content
    if made is None or len(made) != count:
        return None
    pairs = zip(first * (count // len(first)), second * (count // len(second)), strict=True)
    return tuple(None if a is None or b is None else rule(a, b) for a, b in pairs)


def _divided(a: Dim, b: Dim) -> Dim | None:
    """Rounded towards zero."""
    if not isinstance(b, int) or b < 1:
        return quotient(a, b)
    for size, sign in ((a, 1), (-a, -1)):
        if _grows(size):
            Pace.of(size).every(b)
            return floor_divide(size, b) * sign
    return floor_divide(a, b) if is_nonnegative(a) else quotient(a, b)


def _remainder(a: Dim, b: Dim) -> Dim | None:
    """From 0 to below the divisor, also of what is negative."""
    if not isinstance(b, int) or b < 1:
        return None
    for size, sign in ((a, 1), (-a, -1)):
        if _grows(size):
            pace = Pace.of(size)
            pace.every(b)
            return pace.extra * sign % b
    return a % b if isinstance(a, int) else None


def _larger(a: Dim, b: Dim) -> Dim | None:
    for larger, smaller in ((a, b), (b, a)):
        # Where frames are too few for a size, there are none.
        if _is_never_less(larger, smaller) or (_grows(larger) and isinstance(smaller, int) and smaller <= 0):
            return larger
    return None


def _grows(size: Dim) -> bool:
    try:
        Pace.of(size)
    except BreaksTime:
        return False
    return True


def _smaller(a: Dim, b: Dim) -> Dim | None:
    return next((less for less, more in ((a, b), (b, a)) if _is_never_less(more, less)), None)


def _is_never_less(larger: Dim, smaller: Dim) -> bool:
    """For one stride or more."""
    least = larger - smaller
    return is_nonnegative(
        least.substitute(dict.fromkeys(STRIDES.names, STRIDES + 1)) if isinstance(least, SymbolicDim) else least
    )


KEEP_NONE = frozenset(
    {"Cast", "Concat", "Div", "Gather", "Identity", "Mul", "Reshape", "Slice", "Split", "Squeeze"}
) | {"Unsqueeze"}
"""Ops that make no size of none: if Max(0, size) says that there are none, so do their results."""

_SIZES_OF_MANY: dict[str, Callable[[Dim, Dim], Dim | None]] = {
    "Div": _divided,
    "Mod": _remainder,
    "Max": _larger,
    "Min": _smaller,
}
