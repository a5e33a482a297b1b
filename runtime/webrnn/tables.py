"""Plain text tables."""

from __future__ import annotations

import os
from collections.abc import Sequence

COLUMNS, FEWEST = 80, 40
"""Of a terminal that does not say how many it has, and the fewest that are taken for true."""
_NARROW = 12
"""Columns of cells that are no longer than this keep their width."""


def columns() -> int:
    """How wide text may be: as $COLUMNS says, or 80."""
    given = os.environ.get("COLUMNS", "")
    return max(int(given), FEWEST) if given.isdecimal() else COLUMNS


def shortened(text: str, width: int) -> str:
    """With what is in the middle left out, if it is longer.

    >>> shortened("/model/decoder/layers.0/Gather", 15)
    '/model/…/Gather'
    """
    if len(text) <= width or width < 3:
        return text
    front = width // 2
    return f"{text[:front]}…{text[len(text) - (width - front - 1) :]}"


def wrapped(text: str, width: int | None = None) -> str:
    """With its long lines broken at spaces; what follows is indented below its line. Words stay whole."""
    from textwrap import wrap

    most = columns() if width is None else width
    lines: list[str] = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        options = {"subsequent_indent": indent + "  ", "break_long_words": False, "break_on_hyphens": False}
        lines += [line] if len(line) <= most else wrap(line, most, initial_indent=indent, **options)  # type: ignore[arg-type]
    return "\n".join(lines)


def table(title: str, rows: Sequence[Sequence[object]], header: Sequence[str], is_wide: bool = False) -> str:
    """Aligned columns under a title. What is too wide for the terminal is shortened in the middle of its longest cells,
    unless the table `is_wide` by nature: one of many figures.

    >>> print(table("inputs", [("x", "float")], ("name", "type")))
    inputs
      name  type
      x     float
    """
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    widths = widths if is_wide else _fitted(widths)
    cells = [[shortened(cell, width) for cell, width in zip(row, widths, strict=True)] for row in cells]
    lines = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join([title, *(line.rstrip() for line in lines)])


def _fitted(widths: list[int]) -> list[int]:
    """The widest columns made narrower, as long as all of them do not fit."""
    over = sum(widths) + 2 * len(widths) - columns()
    found = list(widths)
    while over > 0 and max(found, default=0) > _NARROW:
        found[found.index(max(found))] -= 1
        over -= 1
    return found


def bytes_text(size: int) -> str:
    """
    >>> bytes_text(900), bytes_text(2_300_000)
    ('900 B', '2.3 MB')
    """
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"


def number_text(number: float) -> str:
    """A large number with three digits, in front of a unit.

    >>> number_text(1234567), number_text(12), number_text(2.5e9)
    ('1.23 M', '12 ', '2.5 G')
    """
    for prefix in ("", "k", "M", "G"):
        if number < 1000 or prefix == "G":
            break
        number /= 1000
    return f"{number:.3g} {prefix}"
