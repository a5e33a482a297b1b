"""What a rule sees of a node, and the table of rules: `@rule("Name")` puts a function in it.

A rule takes a `NodeView`, of a node with at least one operand that has an axis of time, none of them faulty, and gives
one `Along` for each output. It raises `BreaksTime` where one place of an output depends on more than one frame, and
where it cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeAlias

import numpy as np

from webrnn.ir import Dim, Node, Shape, Value
from webrnn.ir.dims import quotient
from webrnn.ops.registry import Registry
from webrnn.shapes.facts import Fact, Facts

from .kinds import Along, BreaksTime
from .numbers import Numbers
from .paces import STRIDES


@dataclass(frozen=True)
class NodeView:
    node: Node
    operands: Sequence[Along]
    facts: Facts
    constants: dict[Value, np.ndarray]
    frames: Dim
    """How many frames there are: a multiple of the strides and some more, or a number if the model is for that number
    only."""
    fills: Mapping[Value, float] = field(default_factory=dict)
    """Values that are one number everywhere."""
    numbers: Mapping[Value, Numbers] = field(default_factory=dict)
    """Values that count frames."""
    fixed: int | None = None
    """Of how many strides the model's own run is, if that is a fixed number."""

    @property
    def operand(self) -> Value:
        """The first operand."""
        value = self.node.inputs[0]
        assert value is not None
        return value

    @property
    def result(self) -> Value:
        """The first result."""
        value = self.node.outputs[0]
        assert value is not None
        return value

    def fact(self, index: int) -> Fact:
        return self.facts.of(self.node.inputs[index]) if self.has(index) else Fact()

    def has(self, index: int) -> bool:
        return index < len(self.node.inputs) and self.node.inputs[index] is not None

    def shape(self, index: int) -> Shape:
        shape = self.fact(index).shape
        if shape is None:
            raise BreaksTime("the rank of an operand is not known before it runs")
        return shape

    def rank(self, index: int) -> int:
        return len(self.shape(index))

    def output_shape(self, index: int = 0) -> Shape:
        shape = self.facts.shape(self.node.outputs[index])
        if shape is None:
            raise BreaksTime("the rank of its result is not known before it runs")
        return shape

    def ints(self, index: int, what: str) -> tuple[int, ...]:
        """The elements of an operand that has to be known."""
        found = self.fact(index).ints
        if found is None:
            raise BreaksTime(f"its {what} are only known when it runs")
        return found

    def axis_attribute(self, default: int, index: int = 0) -> int:
        return self.from_front(self.node.attrs.get("axis", default), self.rank(index))

    @staticmethod
    def from_front(axis: int, rank: int) -> int:
        if not -rank <= axis < rank:
            raise BreaksTime(f"it has no axis {axis}")
        return axis % rank

    def time_of(self, index: int) -> int:
        """Where time is in an operand that has it."""
        axis = self.operands[index].axis
        if axis is None:
            raise BreaksTime("it takes frames where only what does not depend on them is understood")
        return axis

    def fixed_length(self, index: int) -> int | None:
        """How many frames of an operand the model's own run has, if it is for a fixed number of frames."""
        length = self.operands[index].length
        if self.fixed is None:
            return None
        return length if isinstance(length, int) else int(str(length.substitute({str(STRIDES): self.fixed})))

    def reduced_axes(self) -> set[int]:
        """Over which axes of the first operand a reduction or a norm runs; none if it does nothing."""
        attrs, rank = self.node.attrs, self.rank(0)
        if self.node.op == "LpNormalization":
            return {self.axis_attribute(-1)}
        if self.node.op == "MeanVarianceNormalization":
            return {self.from_front(axis, rank) for axis in attrs.get("axes", (0, 2, 3))}
        axes = self.ints(1, "axes") if self.has(1) else tuple(attrs.get("axes") or ())
        does_nothing = not axes and attrs.get("noop_with_empty_axes", 0)
        return set() if does_nothing else {self.from_front(axis, rank) for axis in axes or range(rank)}

    def only(self, *indices: int) -> None:
        """Require that no other operands depend on frames."""
        for index, operand in enumerate(self.operands):
            if index not in indices and not operand.is_timeless:
                raise BreaksTime(f"its operand {self._name(index)} depends on frames")

    def _name(self, index: int) -> str:
        value = self.node.inputs[index]
        return repr(value.name) if value is not None else str(index)

    def numbers_of(self, index: int) -> Numbers | None:
        """What an operand that counts frames is in the first ones."""
        value = self.node.inputs[index]
        return None if value is None else self.numbers.get(value)

    def fill_of(self, value: Value | None) -> float | None:
        """The number that a value is everywhere."""
        if value is None or value in self.fills:
            return None if value is None else self.fills[value]
        array = self.constants.get(value)
        if array is None or array.size == 0 or array.dtype.kind not in "fiub" or (array != array.flat[0]).any():
            return None
        return float(array.flat[0])

    def is_same_for_all_frames(self, index: int, axis: int, broadcasts: bool = True) -> bool:
        """Whether an operand that does not depend on frames is the same at all places of an axis beside them."""
        size = self.shape(index)[axis]
        if size == 1 and (broadcasts or self.frames == 1):
            return True
        if not isinstance(self.frames, int):
            return False  # it is for so many frames only
        value = self.node.inputs[index]
        array = self.constants.get(value) if value is not None else None
        return array is not None and bool((array == array.take([0], axis)).all())


Rule: TypeAlias = Callable[[NodeView], Sequence[Along]]

_rules: Registry[Rule] = Registry("time", f"{__package__}.{{}}_rules")

SIZE_OPERANDS: dict[tuple[str, str], frozenset[int]] = {}
"""The operands that say sizes or places, which may depend on the number of frames: the rule looks at what they say."""


def rule(*names: str, domain: str = "", sizes: Sequence[int] = ()) -> Callable[[Rule], Rule]:
    SIZE_OPERANDS.update({(domain, name): frozenset(sizes) for name in names})
    return _rules(*names, domain=domain)


def rule_of(node: Node) -> tuple[Rule | None, frozenset[int]]:
    """The rule of a node, and the operands that say sizes or places."""
    return _rules.get(node.domain, node.op), SIZE_OPERANDS.get((node.domain, node.op), frozenset())


def product(shape: Sequence[Dim | None]) -> Dim:
    if None in shape:
        raise BreaksTime("a size is only known when it runs")
    return prod(size for size in shape if size is not None)


def reshaped(along: Along, before: Shape, after: Shape, frames: Dim) -> Along:
    """Where time is when the elements of a tensor, in their order, get another shape."""
    assert along.axis is not None
    outer, inner = along.outer, along.inner
    if along.uniform:
        size = before[along.axis]
        shares = None if size is None else quotient(size, frames)
        if shares is None:
            raise BreaksTime("it is not known how many frames there are in its result")
        outer, inner = shares, 1
    outer, inner = product(before[: along.axis]) * outer, inner * product(before[along.axis + 1 :])
    found = []
    for axis, size in enumerate(after):
        outside, inside = quotient(outer, product(after[:axis])), quotient(inner, product(after[axis + 1 :]))
        if outside is not None and inside is not None and size == outside * frames * inside:
            found.append(Along(axis, outside, inside, along.uniform))
    if not found:
        raise BreaksTime("it cuts the axis of time, or it is not known where that is in its result")
    # More than one place is possible for a single frame only.
    return min(found, key=lambda option: (not option.is_pure, option.axis != along.axis))


def meeting(view: NodeView, indices: Sequence[int], broadcasts: bool = True) -> Along:
    """Where time is when operands meet place by place: those that have it have it in one place, others are the same
    for all frames. Axes are counted from the last, as broadcasting does.
    """
    found: Along | None = None
    place = 0
    rank = max(view.rank(index) for index in indices)
    for index in indices:
        operand = view.operands[index]
        if operand.axis is None:
            continue
        own = view.rank(index) - operand.axis
        if found is None or (found.uniform and own == place):
            found, place = operand, own
        elif own != place:
            raise BreaksTime("the axis of time of one operand meets another axis of the other")
        elif not operand.uniform and (operand.outer, operand.inner) != (found.outer, found.inner):
            raise BreaksTime("frames meet others in different order", rank - place)
    assert found is not None
    for index in indices:
        operand = view.operands[index]
        if operand.axis is not None:
            continue
        if operand.last:
            raise BreaksTime("it combines each frame with what comes after the last one", rank - place)
        axis = view.rank(index) - place
        if axis >= 0 and not view.is_same_for_all_frames(index, axis, broadcasts):
            raise BreaksTime("it combines each frame with another element of a fixed sequence", rank - place)
    every_uniform = all(view.operands[index].uniform for index in indices if view.operands[index].axis is not None)
    return replace(found, axis=rank - place, uniform=every_uniform)
