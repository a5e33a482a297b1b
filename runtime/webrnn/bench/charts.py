"""Bar charts as SVG, readable on light and dark pages, alone or inside one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = (
    "#2a78d6", "#e8871e", "#3c9d5d", "#7a8794", "#b5506b", "#7b5cc4", "#1f9aa5", "#a07d2c", "#d14f3f", "#5d7f2e",
    "#4f63a8", "#c98a9b", "#2f8f83", "#8c6f5a", "#9a4fb0", "#6fa8dc",
)  # fmt: skip
BAR, GAP, LABEL, WIDTH, LEGEND_WIDTH, LEGEND_ROW = 9, 8, 150, 900, 150, 18
STYLE = "text{fill:#57606a}@media (prefers-color-scheme: dark){text{fill:#c9d1d9}}"
NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'


def bars(
    title: str,
    series: Sequence[str],
    groups: Mapping[str, Sequence[float | None]],
    unit: str = "x",
    origin: float | None = 1.0,
    alone: bool = True,
    first_colour: int = 0,
) -> str:
    """Horizontal bars on a logarithmic axis: one group for each name, with a bar for each of `series` that has a value.

    Bars begin at `origin`, or at the left edge. `alone` makes it a file of its own; otherwise it goes into a page, and
    says beside each bar what it is. Charts of the same series have the same colours if `first_colour` says so.
    """
    colours = [COLOURS[(first_colour + index) % len(COLOURS)] for index in range(len(series))]
    values = [value for group in groups.values() for value in group if value]
    marks = [origin] if origin else []
    low = math.log(min([*values, *marks], default=1.0) * 0.8)
    high = math.log(max([*values, *marks], default=1.0) * 1.3)

    def x(value: float) -> float:
        return LABEL + (math.log(value) - low) / (high - low) * (WIDTH - LABEL - (60 if alone else 120))

    in_row = max(1, (WIDTH - 20) // LEGEND_WIDTH)
    legend_rows = -(-len(series) // in_row)
    top = 40 + legend_rows * LEGEND_ROW
    heights = [sum(1 for value in group if value) * BAR + GAP for group in groups.values()]
    height = top + sum(heights) + 30
    out = [
        f'<svg{NAMESPACE if alone else ""} viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11" '
        f'role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>" if alone else "",
        f'<text x="10" y="20" font-size="15">{escape(title)}</text>',
    ]
    for index, name in enumerate(series):
        left, line = 10 + index % in_row * LEGEND_WIDTH, 30 + index // in_row * LEGEND_ROW
        out.append(f'<rect x="{left}" y="{line}" width="10" height="10" fill="{colours[index]}"/>')
        out.append(f'<text x="{left + 15}" y="{line + 9}">{escape(name)}</text>')
    for tick in _ticks(low, high):
        stroke = "#888" if tick == origin else "#8884"
        out.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top - 6}" y2="{height - 22}" stroke="{stroke}"/>')
        out.append(f'<text x="{x(tick):.1f}" y="{height - 8}" text-anchor="middle">{tick:,g}{escape(unit)}</text>')
    y: float = top
    begin: float = x(origin) if origin else LABEL
    for (name, group), tall in zip(groups.items(), heights, strict=True):
        middle = y + (tall - GAP) / 2 + 4
        out.append(f'<text x="{LABEL - 8}" y="{middle:.1f}" text-anchor="end">{escape(name)}</text>')
        for index, value in enumerate(group):
            if not value:
                continue
            from_, to = sorted((begin, x(value)))
            label = f"{name}, {series[index]}: {_number(value)}{unit}"
            out.append(
                f'<rect x="{from_:.1f}" y="{y}" width="{max(to - from_, 1):.1f}" height="{BAR - 1}" '
                f'fill="{colours[index]}"><title>{escape(label)}</title></rect>'
            )
            shown = _number(value) if alone else f"{_number(value)}  {series[index]}"
            out.append(f'<text x="{to + 4:.1f}" y="{y + BAR - 2}" font-size="8">{escape(shown)}</text>')
            y += BAR
        y += GAP
    return "\n".join([line for line in out if line] + ["</svg>", ""])


def _number(value: float) -> str:
    """
    >>> _number(1234.5), _number(0.1234)
    ('1,234', '0.123')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers in a range of logarithms: 1, 2, 5 and so on, or powers of ten where those are many."""
    steps: tuple[int, ...] = (1, 2, 5) if high - low < math.log(2000) else (1,)
    first, last = math.floor(low / math.log(10)), math.ceil(high / math.log(10))
    candidates = [digit * 10.0**power for power in range(first, last + 1) for digit in steps]
    return [tick for tick in candidates if low <= math.log(tick) <= high]
