"""Plain text tables."""

from __future__ import annotations

from collections.abc import Sequence


def table(title: str, rows: Sequence[Sequence[object]], header: Sequence[str]) -> str:
    """Aligned columns under a title.

    >>> print(table("inputs", [("x", "float")], ("name", "type")))
    inputs
      name  type
      x     float
    """
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join([title, *(line.rstrip() for line in lines)])


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
