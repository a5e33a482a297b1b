"""What a node becomes in a stream, and the table of rules for nodes that look at several frames.

`@move("Name")` puts a function in the table: it takes a `NodeView` of a node of the outermost graph, with an operand
that has frames, and gives a `Move`, or None if the node works frame by frame, so that its rule along time says all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from .kinds import Along
from .view import NodeView

if TYPE_CHECKING:
    from .writer import Writer

Reads: TypeAlias = Callable[[int], int]
"""If so many frames of a result are needed, beyond its rate: how many frames of an operand are, beyond its rate."""


@dataclass(frozen=True)
class Move:
    results: Sequence[Along]
    write: Callable[[Writer], None]
    """Adds nodes to the stream, and says what stands there for the results of the node."""
    reads: dict[int, Reads] = field(default_factory=dict)
    """By operand with frames; where it says nothing, all frames are needed."""
    oldest: dict[int, Callable[[int], int]] = field(default_factory=dict)
    """By operand with frames: the first of them that a frame of a result reads, if not the one of its own number."""
    rest: int = 0
    """How many strides behind the end it takes until a result without frames is that of the whole run."""
    unread: frozenset[int] = frozenset()
    """The operands that the stream does without."""


MoveRule: TypeAlias = Callable[[NodeView], Move | None]

MOVES: dict[str, MoveRule] = {}
"""By op of ONNX's own domain."""

COUNTING: dict[str, MoveRule] = {}
"""The same, for nodes without operands that have frames, of which one says how many there are."""


def move(*names: str, table: dict[str, MoveRule] = MOVES) -> Callable[[MoveRule], MoveRule]:
    def register(rule: MoveRule) -> MoveRule:
        table.update(dict.fromkeys(names, rule))
        return rule

    return register
