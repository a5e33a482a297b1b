"""What of a plan some builds do not have: what the tables of instructions, operations and types call rare, which only
full modules have, and instructions that only unfused builds have."""

from __future__ import annotations

from collections.abc import Iterator

from .decode import Tables
from .operations import RARE_TYPES
from .text import walk


def rare_parts(tables: Tables) -> list[str]:
    """Names of instructions, operations and element types; a core module runs a plan that has none."""
    return sorted(set(_parts(tables)))


def unfused_parts(tables: Tables) -> list[str]:
    """Names of instructions; fused builds run a plan that has none."""
    return sorted({instruction.name for instruction in walk(tables.code) if instruction.row.is_unfused})


def _parts(tables: Tables) -> Iterator[str]:
    yield from (buffer.dtype for buffer in tables.buffers if buffer.dtype in RARE_TYPES)
    for instruction in walk(tables.code):
        if instruction.row.is_rare:
            yield instruction.name
        if instruction.expression is not None:
            yield from (dtype for dtype, _ in instruction.expression.constants if dtype in RARE_TYPES)
            yield from (each.row.name for each in instruction.expression.operations if each.row.is_rare)
