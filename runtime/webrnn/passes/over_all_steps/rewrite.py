"""One node on its way out of a loop, and the table of rules for its op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from webrnn.ir import Node, Value
from webrnn.ir.fused import is_linear
from webrnn.shapes.facts import Fact, Facts

from ..rewriting import Additions


class Declined(Exception):
    """The reason why an op stays in the loop."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand outside the loop, and what is known of it inside."""

    value: Value
    inside: Fact
    has_steps: bool
    """Whether it has one element for each step, on its first axis."""

    @property
    def rank(self) -> int:
        if self.inside.rank is None:
            raise Declined("the rank of its operands is not known")
        return self.inside.rank


@dataclass
class Rewrite:
    """One node on its way out."""

    node: Node
    operands: Sequence[Operand | None]
    outputs: Sequence[Value | None]
    new: Additions
    facts: Facts
    all_are_taken: bool
    """Whether some step takes each element of the operands, so that the node fails only where the loop would."""

    def __post_init__(self) -> None:
        self.nodes: list[Node] = []

    @property
    def first(self) -> Operand:
        operand = self.operands[0] if self.operands else None
        if operand is None:
            raise Declined("an operand is missing")
        return operand

    def given(self) -> list[Operand]:
        return [operand for operand in self.operands if operand is not None]

    def operand(self, index: int) -> Operand | None:
        return self.operands[index] if index < len(self.operands) else None

    def ints(self, index: int) -> list[int]:
        operand = self.operand(index)
        numbers = None if operand is None or operand.has_steps else operand.inside.ints
        if numbers is None:
            raise Declined("its axes or sizes are not constants")
        return list(numbers)

    def only_first_has_steps(self) -> None:
        if not self.first.has_steps or any(operand.has_steps for operand in self.given()[1:]):
            raise Declined("an operand other than the first is a sequence")

    def sizes(self, value: Value | None, start: int = 0) -> list[int]:
        """The sizes of a value inside, from axis `start` on; all are known and none is 0."""
        shape = self.facts.shape(value)
        sizes = None if shape is None else [size for size in shape[start:] if isinstance(size, int) and size]
        if shape is None or sizes is None or len(sizes) != len(shape[start:]):
            raise Declined("the shape of its operand or result is not known")
        return sizes

    def moved(self, axis: int, rank: int | None = None) -> int:
        """Where an axis of the first operand is outside."""
        rank = self.first.rank if rank is None else rank
        if not -rank <= axis < rank:
            raise Declined("it has no such axis")
        return axis % rank + 1

    def values(self) -> list[Value | None]:
        return [None if operand is None else operand.value for operand in self.operands]

    def result(self, op: str, inputs: Sequence[Value | None], **attrs: Any) -> None:
        """Add the node that has the outputs; one of the same op keeps the attributes that are not given."""
        kept = self.node.attrs if op == self.node.op else {}
        self.nodes.append(Node(op, list(inputs), list(self.outputs), {**kept, **attrs}, self.node.name))

    def between(self, op: str, inputs: Sequence[Value | None], **attrs: Any) -> Value:
        value = self.new.value(f"{self.node.op.lower()}_all")
        self.nodes.append(Node(op, list(inputs), [value], attrs, self.node.name))
        return value

    def axes(self, numbers: Sequence[int]) -> Value:
        return self.new.constant(np.array(numbers, np.int64), "axes")


Rule: TypeAlias = Callable[[Rewrite], None]

RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"two rules for {name}")
            RULES[name] = function
        return function

    return register


def over_all_steps(
    node: Node,
    operands: Sequence[Operand | None],
    outputs: Sequence[Value | None],
    new: Additions,
    facts: Facts,
    all_are_taken: bool,
) -> list[Node]:
    """The nodes, the last of which has the outputs."""
    if (node.domain and not is_linear(node)) or node.op not in RULES:
        raise Declined("it is not known how to do it for all steps at once")
    rewrite = Rewrite(node, operands, outputs, new, facts, all_are_taken)
    RULES[node.op](rewrite)
    return rewrite.nodes
