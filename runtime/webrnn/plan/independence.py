"""Whether the blocks of a `beside` may run at the same time, asked as the VM asks it (wasm_kernels/beside.c), in code
of its own: neither writes memory that the other one touches, nor moves a tensor that the other one has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from .bound import INT_MAX, BoundTensor
from .decode import Decoded, Move
from .opcodes import MAX_RANK, MOST_BESIDE_TENSORS

_NO_GRAIN = 1 << 50
"""Larger than any stride: tensors are apart if one ends before the other begins."""
_FAR = 1 << 34
"""What is farther than any buffer is long."""
_MOST_WAYS = 2 * MAX_RANK
Ways = list[tuple[int, int]]
"""How a tensor goes on from where it begins, along its axes and in the steps of loops: strides, and how far it is."""


@dataclass(slots=True)
class Memory:
    """What is known of all tensors of a plan."""

    tensors: Sequence[BoundTensor]
    places: Sequence[tuple[str, int]]
    """Of each buffer: its kind and its place; two with the same are the same memory."""
    impossible: set[int]
    """Tensors with a negative size, or too many elements."""
    sizes: Sequence[int]


class _Side:
    def __init__(self, memory: Memory, block: list[Decoded]):
        self.memory = memory
        self.moves: list[tuple[Move, int]] = []
        """Those by a stride, with the steps of their loop."""
        self.touched: set[tuple[int, str]] = set()
        self._visit(block)

    def _visit(self, block: list[Decoded]) -> None:
        """What runs: nothing does in a loop of no steps, but for what is behind it."""
        for each in block:
            blocks, skipped = each.blocks, set()
            if each.name == "loop":
                loop = each.named()
                steps = self.memory.sizes[loop["most"] if loop["steps"] < 0 else loop["steps"]]
                if not steps:
                    blocks = blocks[1:]
                    skipped = {loop["body_condition"], loop["iteration"]} - {
                        loop[name] for name in ("steps_tensor", "condition", "taken")
                    }
                self._move(each.moves, steps)
            tensors = [(tensor, written) for tensor, written in each.tensors() if tensor not in skipped]
            self.touched |= {(tensor, "written" if written else "read") for tensor, written in tensors}
            for inner in blocks:
                self._visit(inner)

    def _move(self, moves: list[Move], steps: int) -> None:
        for move in moves:
            if move.follows >= 0:
                self.touched |= {(move.tensor, "led"), (move.follows, "written")}
            else:
                self.touched.add((move.tensor, "moved"))
                self.moves.append((move, steps))

    @property
    def is_clear(self) -> bool:
        """Whether it is known where all is: what follows another tensor is not moved beside."""
        led, moved = ({tensor for tensor, how in self.touched if how == name} for name in ("led", "moved"))
        return len(self.touched) <= MOST_BESIDE_TENSORS and not led & moved

    def ways(self, tensor: int) -> Ways | None:
        bound, sizes = self.memory.tensors[tensor], self.memory.sizes
        found = [(stride, (n - 1) * stride) for n, stride in zip(bound.shape, bound.strides, strict=True)]
        for move, steps in self.moves:
            if move.tensor == tensor:
                reach = max(steps - 1 - max(sizes[move.after], 0), 0) * sizes[move.stride]
                found.append((sizes[move.stride], max(min(reach, _FAR), -_FAR)))
        is_near = all(abs(reach) <= INT_MAX for _, reach in found)
        return found if len(found) <= _MOST_WAYS and is_near else None


def are_independent(memory: Memory, blocks: Sequence[list[Decoded]]) -> bool:
    one, two = (_Side(memory, block) for block in blocks)
    if not one.is_clear or not two.is_clear:
        return False
    for (tensor, how), (other, others) in product(one.touched, two.touched):
        if {how, others} & {"moved", "led"}:
            if tensor == other:
                return False
        elif "written" in (how, others) and not _are_apart(one, tensor, two, other):
            return False
    return True


def _are_apart(one: _Side, tensor: int, two: _Side, other: int) -> bool:
    memory = one.memory
    first, second = memory.tensors[tensor], memory.tensors[other]
    place = memory.places[first.buffer]
    if place != memory.places[second.buffer] or place[0] == "constant":
        return True
    if any(not memory.tensors[each].count and each not in memory.impossible for each in (tensor, other)):
        return True
    ways, others = one.ways(tensor), two.ways(other)
    if first.dtype != second.dtype or ways is None or others is None:
        return False
    grains = (_NO_GRAIN, *(abs(stride) for stride, _ in ways if stride))
    return any(_lie_side_by_side((first.offset, ways), (second.offset, others), grain) for grain in grains)


def _lie_side_by_side(one: tuple[int, Ways], two: tuple[int, Ways], grain: int) -> bool:
    """On a circle of `grain` elements."""
    (first, length), (second, others) = (
        (
            start + sum(min(reach, 0) for stride, reach in ways if stride % grain),
            sum(abs(reach) for stride, reach in ways if stride % grain),
        )
        for start, ways in (one, two)
    )
    between = (second - first) % grain
    return between > length and grain - between > others
