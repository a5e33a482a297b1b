"""The numbers in plans given away. `python -m tests.plan.old.numbers` writes those of now to numbers.json. Rows
are added at the end; a test holds the tables to what is written there. Write it before a release."""

from __future__ import annotations

import json
from pathlib import Path

from webrnn.ir.activations import ACTIVATIONS
from webrnn.plan import instructions, opcodes, operations

FILE = Path(__file__).with_name("numbers.json")


def numbers() -> dict[str, list[str]]:
    """Each table as texts, in the order of its numbers."""
    return {
        "header": list(opcodes.HEADER),
        "sizes": list(opcodes.SIZE_KINDS),
        "element types": list(opcodes.DTYPES),
        "buffers": list(opcodes.BUFFER_KINDS),
        "activations": list(ACTIVATIONS),
        "instructions": [_instruction(row) for row in instructions.INSTRUCTIONS],
        "operations": [row.name for row in operations.OPERATIONS],
        **{name: list(names) for name, names in instructions.NAMES.items()},
    }


def _instruction(row: instructions.InstructionRow) -> str:
    operands = [f"{each.name}:{each.type}{'!' * each.is_written}{'?' * each.is_optional}" for each in row.operands]
    return " ".join([row.name, *operands, *["..."] * row.has_list])


if __name__ == "__main__":
    FILE.write_text(json.dumps(numbers(), indent=1) + "\n")
