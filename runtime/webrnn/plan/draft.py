"""A plan while it is made: instructions whose operands are views and symbolic sizes, in nested blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from webrnn.ir import Dim

from .instructions import ROWS, RUN_ALONG
from .views import View

Operand = View | Dim | float | None


@dataclass(eq=False, slots=True)
class Instruction:
    """`operands` in the order of its row in instructions.py, without the lengths of its blocks; `rest` is its list."""

    name: str
    operands: list[Operand]
    rest: list[Dim] = field(default_factory=list)
    blocks: list[list[Instruction]] = field(default_factory=list)
    node: str = ""
    """The label of the graph's node that it is for."""

    def views(self) -> Iterator[View]:
        return (operand for operand in self.operands if isinstance(operand, View))

    @property
    def target(self) -> View:
        """Where an instruction of RUN_ALONG writes."""
        target = self.operands[[operand.name for operand in ROWS[self.name].operands].index("y")]
        assert isinstance(target, View)
        return target

    @property
    def takes_the_next_along(self) -> bool:
        """Whether the expression behind it is run with it, block by block."""
        return self.name in RUN_ALONG and self.operands[-1] == 1


@dataclass(frozen=True, slots=True)
class ExpressionOp:
    """One operation; operands are registers: the inputs, then the constants, then the results of operations."""

    code: str
    operands: tuple[int, ...]
    alpha: float = 0.0
    beta: float = 0.0


@dataclass(eq=False, slots=True)
class ExpressionInstruction(Instruction):
    inputs: list[View] = field(default_factory=list)
    outputs: list[tuple[View, int]] = field(default_factory=list)
    constants: list[tuple[str, float | int]] = field(default_factory=list)
    """(dtype, number)"""
    ops: list[ExpressionOp] = field(default_factory=list)

    def views(self) -> Iterator[View]:
        yield from self.inputs
        yield from (view for view, _ in self.outputs)


@dataclass(eq=False, slots=True)
class LoopInstruction(Instruction):
    """blocks: the body, and what is done after the last step with all views where that step left them."""

    id: int = 0
    n_steps: Dim | None = None
    n_steps_view: View | None = None
    most_steps: Dim = 0
    condition: View | None = None
    body_condition: View | None = None
    iteration: View | None = None
    taken: View | None = None
    strictness: int = 0

    def views(self) -> Iterator[View]:
        fields = (self.n_steps_view, self.condition, self.body_condition, self.iteration, self.taken)
        return (view for view in fields if view is not None)


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output: an external buffer."""

    name: str
    dtype: str
    shape: tuple[Dim, ...]
    external: int


@dataclass(slots=True)
class Draft:
    inputs: list[Port]
    outputs: list[Port]
    code: list[Instruction]

    def written_over(self) -> dict[int, tuple[int, Dim]]:
        """For the external of each output that is an input's ring with new frames in it: the external of that input,
        and how many frames more could be new without overwriting one that the input still needs. If that is not
        negative, both may be the same memory: nothing else reads or writes either."""
        counts = Counter(view.storage for each in self.walk() for view in each.views())
        found = {}
        for each in self.code:
            if each.name == "ring":
                ring, rows, _, following, _, _, history, *_ = each.operands
                assert isinstance(ring, View) and isinstance(rows, View) and isinstance(following, View)  # noqa: PT018
                assert isinstance(history, int)
                own = (ring.storage, following.storage)
                if all(storage.kind == "external" and counts[storage] == 1 for storage in own):
                    room = ring.shape[1] - history - rows.shape[1]
                    found[following.storage.external] = (ring.storage.external, room)
        return found

    def walk(self) -> Iterator[Instruction]:
        """All instructions in the order of the code, outer ones first."""
        yield from _walk(self.code)


def _walk(block: list[Instruction]) -> Iterator[Instruction]:
    for instruction in block:
        yield instruction
        for inner in instruction.blocks:
            yield from _walk(inner)
