"""Bar charts as self-contained SVG, readable on light and dark pages."""

from __future__ import annotations

import math
from html import escape

COLOURS = ("#2a78d6", "#e8871e", "#7a8794", "#3c9d5d")
BAR, GAP, LABEL, WIDTH = 7, 6, 150, 900


def bars(title: str, series: list[str], groups: dict[str, list[float]]) -> str:
    """Horizontal bars on a logarithmic axis, one group of `series` for each name; 1 is marked."""
    values = [v for group in groups.values() for v in group]
    low, high = math.log(min([*values, 0.8])), math.log(max([*values, 2.0]) * 1.1)

    def x(value: float) -> float:
        return LABEL + (math.log(value) - low) / (high - low) * (WIDTH - LABEL - 50)

    top, step = 60, len(series) * BAR + GAP
    height = top + len(groups) * step + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="11">',
        "<style>text{fill:#57606a}@media (prefers-color-scheme: dark){text{fill:#c9d1d9}}</style>",
        f'<text x="10" y="20" font-size="15">{escape(title)}</text>',
    ]
    for i, name in enumerate(series):
        out.append(f'<rect x="{LABEL + i * 130}" y="32" width="10" height="10" fill="{COLOURS[i]}"/>')
        out.append(f'<text x="{LABEL + i * 130 + 15}" y="41">{escape(name)}</text>')
    ticks = [t for t in (0.5, 1, 2, 4, 8, 16, 32, 64) if low <= math.log(t) <= high]
    for t in ticks:
        stroke = ' stroke="#888"' if t == 1 else ' stroke="#8884"'
        out.append(f'<line x1="{x(t):.1f}" x2="{x(t):.1f}" y1="{top - 6}" y2="{height - 22}"{stroke}/>')
        out.append(f'<text x="{x(t):.1f}" y="{height - 8}" text-anchor="middle">{t:g}x</text>')
    for row, (name, group) in enumerate(groups.items()):
        y = top + row * step
        out.append(
            f'<text x="{LABEL - 8}" y="{y + len(series) * BAR / 2 + 4:.1f}" text-anchor="end">{escape(name)}</text>'
        )
        for i, value in enumerate(group):
            left, right = sorted((x(1), x(value)))
            out.append(
                f'<rect x="{left:.1f}" y="{y + i * BAR}" width="{right - left:.1f}" height="{BAR - 1}" '
                f'fill="{COLOURS[i]}"><title>{escape(name)} {escape(series[i])}: {value:.2f}x</title></rect>'
            )
    return "\n".join([*out, "</svg>", ""])
