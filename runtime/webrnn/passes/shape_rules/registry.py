"""The table of shape rules: `@rule("Name")` puts a function in it.

A rule takes a node and one fact for each of its inputs and returns one fact for each of its outputs. It never guesses:
it may assume that the op succeeds on the operands, and nothing else. It may raise any of `NOT_A_RULE_BUG` on operands
on which the op itself would fail; then nothing is known of the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from webrnn.errors import Error
from webrnn.ir import Node, Shape

from ..facts import UNKNOWN, Fact

Rule: TypeAlias = Callable[[Node, Sequence[Fact]], Sequence[Fact]]

RULES: dict[tuple[str, str], Rule] = {}
"""By domain and op."""

NOT_A_RULE_BUG = (Error, IndexError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError)
"""What operands that do not fit an op can raise in its rule."""


def rule(*names: str, domain: str = "") -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for name in names:
            if (domain, name) in RULES:
                raise ValueError(f"two rules for {domain}:{name}")
            RULES[domain, name] = function
        return function

    return register


def operand(inputs: Sequence[Fact], index: int) -> Fact:
    return inputs[index] if index < len(inputs) else UNKNOWN


def is_given(node: Node, index: int) -> bool:
    return index < len(node.inputs) and node.inputs[index] is not None


def unknown_sizes(rank: int | None) -> Shape | None:
    return None if rank is None else (None,) * rank


def from_front(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} of {rank}")
    return axis % rank
