"""Tables of times as charts: a dot for each ratio to another runtime, on a logarithmic axis, with a line at 1.

The figures are those of the tables in README.md and docs/. Nothing is measured, and each table stands below its chart.
"""

from __future__ import annotations

import html
import math
import re
from dataclasses import dataclass

SECTIONS = (
    ("README.md", "Timings"),
    ("docs/threads.md", "What it costs"),
    ("docs/scan-study.md", "Native"),
    ("docs/scan-study.md", "WebAssembly"),
)
"""Where the tables are: a page and the heading above them."""
ROW, WIDTH, LABELS, RIGHT = 26, 760, 300, 24
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
TIMES = re.compile(r"\(([\d.]+)×\)")
"""A ratio in brackets behind a time."""
SHAPES = ("circle", "square", "diamond", "triangle")


@dataclass
class Table:
    header: list[str]
    rows: list[list[str]]

    @property
    def ratios(self) -> list[int]:
        """The columns that are ratios, by their headings or by brackets in their cells."""
        return [
            index
            for index, text in enumerate(self.header)
            if "÷" in text or any(TIMES.search(row[index]) for row in self.rows if index < len(row))
        ]


def section(markdown: str, heading: str) -> str:
    """What stands below a heading, up to the next one of its level or above."""
    lines = markdown.splitlines()
    fences = 0
    start, level = None, 0
    for index, line in enumerate(lines):
        fences += line.lstrip().startswith("```")
        found = None if fences % 2 else re.match(r"(#+) (.+)", line)
        if found and start is None and found[2].strip() == heading:
            start, level = index, len(found[1])
        elif found and start is not None and len(found[1]) <= level:
            return "\n".join(lines[start:index])
    if start is None:
        raise ValueError(f"no heading {heading!r}")
    return "\n".join(lines[start:])


def pieces(markdown: str) -> list[str | Table]:
    """The text in turn with its tables of ratios; other tables stay text."""
    found: list[str | Table] = []
    for block in re.split(r"((?:^\|.*\n?)+)", markdown, flags=re.M):
        if block.startswith("|"):
            lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
            read = Table(lines[0], lines[2:])
            if read.ratios and len(read.rows) > 2:
                found.append(read)
        found.append(block)
    return found


def numbers(cell: str) -> list[float]:
    """All ratios of a cell: "0.47 / 0.51" has two, "118 (2×)" has one."""
    if found := TIMES.findall(cell):
        return [float(text) for text in found]
    return [float(text.replace(",", "")) for text in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.])", cell)]


def series(table: Table) -> list[tuple[str, int]]:
    """The name of each column of ratios; if two have the same, with the column before it."""
    names = [table.header[index] for index in table.ratios]
    return [
        (f"{table.header[index - 1]} {name}" if names.count(name) > 1 else name, index)
        for name, index in zip(names, table.ratios, strict=True)
    ]


def chart(table: Table, title: str, number: int) -> str:
    """The chart as SVG, with a legend above it."""
    columns = series(table)
    points = [
        (row, order, value)
        for row, cells in enumerate(table.rows)
        for order, (_, index) in enumerate(columns)
        for value in (numbers(cells[index]) if index < len(cells) else [])
        if value > 0
    ]
    values = [value for *_, value in points]
    low = max(tick for tick in (*TICKS, TICKS[0]) if tick <= max(min(values), TICKS[0]))
    high = min((tick for tick in TICKS if tick >= max(*values, 1)), default=TICKS[-1])
    span = math.log(high / low)

    def x(value: float) -> float:
        return LABELS + (WIDTH - LABELS - RIGHT) * math.log(min(max(value, low), high) / low) / span

    height = ROW * len(table.rows) + 34
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'aria-labelledby="chart-{number}-title chart-{number}-about">',
        f'<title id="chart-{number}-title">{html.escape(title)}</title>',
        f'<desc id="chart-{number}-about">{html.escape(about(points, columns))}</desc>',
    ]
    for tick in (tick for tick in TICKS if low <= tick <= high):
        kind = "one" if tick == 1 else "tick"
        parts.append(f'<line class="{kind}" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="4" y2="{height - 26}"/>')
        parts.append(f'<text class="axis" x="{x(tick):.1f}" y="{height - 8}" text-anchor="middle">{tick:g}</text>')
    for row, cells in enumerate(table.rows):
        y = ROW * row + 16
        parts.append(f'<text x="{LABELS - 14}" y="{y + 4}" text-anchor="end">{html.escape(shortened(cells[0]))}</text>')
    for row, order, value in points:
        spread = 3 * (order - (len(columns) - 1) / 2)  # so that equal values do not hide each other
        parts.append(mark(x(value), ROW * row + 16 + spread, order))
    parts.append("</svg>")
    legend = "".join(
        f'<li><svg viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">{mark(7, 7, order)}</svg> '
        f"{html.escape(name)}</li>"
        for order, (name, _) in enumerate(columns)
    )
    note = "Times relative to what the text names: left of the line at 1 is faster. The axis is logarithmic."
    return (
        f'<figure class="figure"><ul class="legend">{legend}</ul><div class="scroll" tabindex="0" role="group" '
        f'aria-label="Chart">{"".join(parts)}</div><figcaption>{note}</figcaption></figure>\n'
    )


def about(points: list[tuple[int, int, float]], columns: list[tuple[str, int]]) -> str:
    """The chart in words, for those who do not see it."""
    said = []
    for order, (name, _) in enumerate(columns):
        values = sorted(value for _, of, value in points if of == order)
        if values:
            said.append(f"{name}: {values[0]:g} to {values[-1]:g}, median {values[len(values) // 2]:g}")
    return ". ".join(said) + "."


def mark(x: float, y: float, order: int) -> str:
    """Told apart by shape as well as by colour."""
    kind = f'class="mark-{order % 7}"'
    match SHAPES[order % 4]:
        case "circle":
            return f'<circle {kind} cx="{x:.1f}" cy="{y:g}" r="5"/>'
        case "square":
            return f'<rect {kind} x="{x - 4.5:.1f}" y="{y - 4.5:g}" width="9" height="9"/>'
        case "diamond":
            return f'<path {kind} d="M{x:.1f} {y - 6:g}l6 6-6 6-6-6z"/>'
        case _:
            return f'<path {kind} d="M{x:.1f} {y - 6:g}l6 10.5h-12z"/>'


def shortened(text: str) -> str:
    text = re.sub(r"[*`]", "", text)
    return text if len(text) <= 46 else f"{text[:45].rstrip()}…"
