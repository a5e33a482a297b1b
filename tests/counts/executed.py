"""How often each instruction of a plan runs, computed from the plan alone."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.plan.decode import Decoded, Tables


class DependsOnData(Exception):
    """A branch, or a loop whose steps are counted only when it runs."""


def executed(tables: Tables, sizes: Sequence[int]) -> dict[int, int]:
    """By the word of the code that an instruction starts at."""
    found: dict[int, int] = {}
    _count(tables.code, 1, sizes, found)
    return found


def _count(block: list[Decoded], times: int, sizes: Sequence[int], found: dict[int, int]) -> None:
    for instruction in block:
        found[instruction.at] = times
        if instruction.name == "branch":
            raise DependsOnData("branch")
        if instruction.name == "beside":
            for inner in instruction.blocks:
                _count(inner, times, sizes, found)
        if instruction.name == "loop":
            body, epilogue = instruction.blocks
            _count(body, times * _steps(instruction, sizes), sizes, found)
            _count(epilogue, times, sizes, found)


def _steps(loop: Decoded, sizes: Sequence[int]) -> int:
    steps, steps_tensor, most, condition, body_condition, *_ = loop.operands
    if max(steps_tensor, condition, body_condition) >= 0:
        raise DependsOnData("loop")
    return sizes[most if steps < 0 else steps]
