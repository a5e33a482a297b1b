"""Which arena storages can share memory: those that are never alive at the same time, and what an expression makes of
an operand that nothing reads any more, element by element.

Sizes are symbolic, so places are slots, each as large as the largest storage in it is once sizes are known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from webrnn.ir import Dim, SymbolicDim

from .draft import Draft, ExpressionInstruction, Instruction, LoopInstruction
from .opcodes import DTYPES, ITEM_BYTES
from .views import Storage, View


@dataclass(slots=True)
class _Life:
    first: int
    last: int
    side: tuple[int, int] | None = None
    """The block of a `beside` outside of which it is not alive: where that begins, and which of the two it is."""


def assign_slots(draft: Draft) -> dict[Storage, int]:
    """The slot of each arena storage."""
    lives = _lifetimes(draft)
    overwritten = _overwritten(draft)
    slots: list[_Slot] = []
    found: dict[Storage, int] = {}
    for storage in sorted(lives, key=lambda storage: (lives[storage].first, -lives[storage].last)):
        life = lives[storage]
        n_bytes = storage.size * ITEM_BYTES[DTYPES.index(storage.dtype)]
        free = [index for index, slot in enumerate(slots) if slot.is_free(life) and slot.suits(n_bytes)]
        index = min(free, key=lambda index: slots[index].waste(n_bytes), default=-1)
        before = overwritten.get(storage)
        if before in found and slots[found[before]].busy_until == lives[before].last == life.first + 1:
            index = found[before]  # one instruction reads the one for the last time, and writes the other
        if index < 0:
            index = len(slots)
            slots.append(_Slot(n_bytes, life.last))
        slots[index].take(n_bytes, life)
        found[storage] = index
    return found


def _overwritten(draft: Draft) -> dict[Storage, Storage]:
    """By result of an expression: an operand whose elements are read where those of the result are written."""
    found: dict[Storage, Storage] = {}
    before: Instruction | None = None
    for instruction in draft.walk():
        if isinstance(instruction, ExpressionInstruction):
            only = before.target.storage if before is not None and before.takes_the_next_along else None
            for result, _ in instruction.outputs:
                for operand in instruction.inputs:
                    if _is_overwritable(operand, result, instruction) and only in (None, operand.storage):
                        found.setdefault(result.storage, operand.storage)
        before = instruction
    return found


def _is_overwritable(operand: View, result: View, instruction: ExpressionInstruction) -> bool:
    storage = operand.storage
    return (
        storage.kind == result.storage.kind == "arena"
        and (storage.dtype, storage.size) == (result.storage.dtype, result.storage.size)
        and result == replace(operand, storage=result.storage)
        and not operand.motions
        and operand.follows is None
        and operand.is_contiguous
        and all(view == operand for view in instruction.inputs if view.storage is storage)
        and sum(view.storage is result.storage for view, _ in instruction.outputs) == 1
    )


@dataclass(slots=True)
class _Slot:
    n_bytes: Dim
    busy_until: int
    side: tuple[int, int] | None = None
    """The last block of a `beside` that had it."""

    def is_free(self, life: _Life) -> bool:
        """Both blocks of a `beside` are alive at the same time."""
        is_other_side = self.side is not None and life.side is not None and self.side[0] == life.side[0]
        return self.busy_until < life.first and not (is_other_side and self.side != life.side)

    def suits(self, n_bytes: Dim) -> bool:
        """Numbers share with numbers; a symbolic size only with its like, because which one is larger is not known."""
        if isinstance(self.n_bytes, SymbolicDim) or isinstance(n_bytes, SymbolicDim):
            return _kind(self.n_bytes) == _kind(n_bytes)
        return True

    def waste(self, n_bytes: Dim) -> int:
        if isinstance(self.n_bytes, int) and isinstance(n_bytes, int):
            return abs(self.n_bytes - n_bytes)
        return 0 if self.n_bytes == n_bytes else 1

    def take(self, n_bytes: Dim, life: _Life) -> None:
        if isinstance(self.n_bytes, int) and isinstance(n_bytes, int):
            self.n_bytes = max(self.n_bytes, n_bytes)
        self.busy_until, self.side = life.last, life.side or self.side


def _kind(n_bytes: Dim) -> frozenset[str]:
    return n_bytes.names if isinstance(n_bytes, SymbolicDim) else frozenset()


def _lifetimes(draft: Draft) -> dict[Storage, _Life]:
    """From the first to the last instruction that touches a storage. A storage that is used both inside and outside of
    a loop lives through all of it, because each step finds what the one before has left; so does one that a state of
    the loop follows. What is touched in a block of a `beside`, and not in it alone, lives through both."""
    walk = _Walk(_followed(draft))
    walk.visit(draft.code)
    for start, end in walk.loops:  # inner loops come before the ones around them
        for life in walk.lives.values():
            crosses = life.first < start <= life.last or life.first <= end < life.last
            if crosses:
                life.first, life.last = min(life.first, start), max(life.last, end)
    for start, middle, end in walk.sides:
        for life in walk.lives.values():
            if start < life.first and life.last < middle:
                life.side = start, 0
            elif middle <= life.first and life.last < end:
                life.side = start, 1
            elif life.first <= end and start <= life.last:
                life.first, life.last = min(life.first, start), max(life.last, end)
    return walk.lives


class _Walk:
    """Goes through instructions in their order and counts two positions for each: when it begins and when it ends."""

    def __init__(self, followed: dict[int, list[View]]):
        self.lives: dict[Storage, _Life] = {}
        self.loops: list[tuple[int, int]] = []
        self.sides: list[tuple[int, int, int]] = []
        """Of each `beside`: its beginning, the end of its first block, its end."""
        self._followed, self._position = followed, 0

    def visit(self, block: list[Instruction]) -> None:
        carried: list[View] = []
        for instruction in block:
            touched = [*instruction.views(), *carried]
            carried = touched if instruction.takes_the_next_along else []
            if isinstance(instruction, LoopInstruction):
                touched += self._followed.get(instruction.id, ())
            start = self._touch(touched)
            middle = 0
            for inner in instruction.blocks:
                self.visit(inner)
                middle = middle or self._touch([])
            end = self._touch(touched)
            if instruction.name == "beside":
                self.sides.append((start, middle, end))
            if isinstance(instruction, LoopInstruction):
                self.loops.append((start, end))

    def _touch(self, views: list[View]) -> int:
        self._position += 1
        for view in views:
            _touch(self.lives, view, self._position)
        return self._position


def _followed(draft: Draft) -> dict[int, list[View]]:
    """By loop: what its states follow."""
    found: dict[int, list[View]] = {}
    for instruction in draft.walk():
        for view in instruction.views():
            if view.follows is not None:
                found.setdefault(view.follows_in, []).append(view.follows)
    return found


def _touch(lives: dict[Storage, _Life], view: View, position: int) -> None:
    follows = view.follows
    if follows is not None:
        _touch(lives, follows, position)
    if view.storage.kind == "arena":
        life = lives.setdefault(view.storage, _Life(position, position))
        life.first, life.last = min(life.first, position), max(life.last, position)
