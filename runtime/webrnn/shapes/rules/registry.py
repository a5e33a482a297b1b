"""The table of shape rules, `@rule("Name")` puts a function in it, and what rules share.

A rule takes a node and one fact for each of its inputs and returns one fact for each of its outputs. It never guesses:
it may assume that the op succeeds on the operands, and nothing else. It may raise any of `NOT_A_RULE_BUG` on operands
on which the op itself would fail; then nothing is known of the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from webrnn.errors import Error
from webrnn.ir import Dim, DType, Node, Shape
from webrnn.ops.registry import Registry

from ..facts import UNKNOWN, Fact

Rule: TypeAlias = Callable[[Node, Sequence[Fact]], Sequence[Fact]]

rule: Registry[Rule] = Registry("shape", f"{__package__}.{{}}")

NOT_A_RULE_BUG = (Error, IndexError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError)
"""What operands that do not fit an op can raise in its rule."""


def operand(inputs: Sequence[Fact], index: int) -> Fact:
    return inputs[index] if index < len(inputs) else UNKNOWN


def is_given(node: Node, index: int) -> bool:
    return index < len(node.inputs) and node.inputs[index] is not None


MOST_AXES = 64
"""Of arrays of numpy. A list that says how many axes a result has may claim to be of any length."""


def unknown_sizes(rank: int | None) -> Shape | None:
    return None if rank is None or rank > MOST_AXES else (None,) * rank


def from_front(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} of {rank}")
    return axis % rank


def broadcast_dim(first: Dim | None, second: Dim | None) -> Dim | None:
    """The size of an axis, given that the op succeeds: a size that is not 1 decides over an unknown one.

    >>> broadcast_dim(None, 5), broadcast_dim(None, 1), broadcast_dim(1, 3)
    (5, None, 3)
    """
    if first == second or second == 1:
        return first
    if first == 1:
        return second
    return next((size for size in (first, second) if isinstance(size, int)), None)


def broadcast(*shapes: Shape | None) -> Shape | None:
    """
    >>> broadcast((3, 1), (4,)), broadcast((3,), None)
    ((3, 4), None)
    """
    if not shapes:
        return None
    result: Shape | None = shapes[0]
    for shape in shapes[1:]:
        if result is None or shape is None:
            return None
        rank = max(len(result), len(shape))
        first = (1,) * (rank - len(result)) + result
        second = (1,) * (rank - len(shape)) + shape
        result = tuple(broadcast_dim(a, b) for a, b in zip(first, second, strict=True))
    return result


def common_type(inputs: Sequence[Fact]) -> DType | None:
    """ONNX never mixes types: where one is known, all are of it."""
    return next((fact.dtype for fact in inputs if fact.dtype is not None), None)
