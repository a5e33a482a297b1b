"""What of a plan some builds do not have: what the tables of instructions, operations and types call rare, which the
smaller modules of pages do not have, and instructions that only unfused builds have."""

from __future__ import annotations

from collections.abc import Iterator

from .decode import Tables
from .operations import RARE_TYPES
from .text import walk


def rare_parts(tables: Tables, module: str = "core") -> list[str]:
    """Names of instructions, operations and element types that this module does not have; it runs a plan with none."""
    return sorted({name for name, modules in _parts(tables) if module not in modules})


def unfused_parts(tables: Tables) -> list[str]:
    """Names of instructions; fused builds run a plan that has none."""
    return sorted({instruction.name for instruction in walk(tables.code) if instruction.row.is_unfused})


_FULL = ("full",)


def _parts(tables: Tables) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names, and the modules that have each."""
    yield from ((buffer.dtype, _FULL) for buffer in tables.buffers if buffer.dtype in RARE_TYPES)
    for instruction in walk(tables.code):
        yield instruction.name, instruction.row.modules
        if instruction.expression is not None:
            yield from ((dtype, _FULL) for dtype, _ in instruction.expression.constants if dtype in RARE_TYPES)
            yield from ((each.row.name, _FULL) for each in instruction.expression.operations if each.row.is_rare)
