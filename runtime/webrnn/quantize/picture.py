"""Error against size as SVG: a point for each form, and a curve of mixed forms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from webrnn.bench.charts import COLOURS, NAMESPACE, STYLE
from webrnn.tables import bytes_text

from .study import Point, Quantization
from .text import error_text

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 30, 60, 50
CURVE, CHOSEN = COLOURS[3], COLOURS[1]


def picture(found: Quantization, title: str) -> str:
    return chart(title, found.same_form_everywhere(), found.curve(), Point(found.weight_bytes, found.error))


def chart(title: str, forms: Mapping[str, Point], curve: Sequence[Point], chosen: Point) -> str:
    """Errors are on a logarithmic axis; those of 0 stand at its foot."""
    points = [*forms.values(), *curve, chosen]
    errors = [point.error for point in points if 0 < point.error < math.inf]
    low = math.floor(math.log10(min(errors, default=1e-3)))
    high = max(math.ceil(math.log10(max(errors, default=1e-2))), low + 1)
    most = max(point.weight_bytes for point in points) or 1
    foot = HEIGHT - BOTTOM

    def x(size: float) -> float:
        return LEFT + size / most * (WIDTH - LEFT - RIGHT)

    def y(error: float) -> float:
        if not error:
            return foot
        share = (min(math.log10(error), high) - low) / (high - low)
        return foot - 30 - share * (foot - 30 - TOP)

    out = [
        f'<svg{NAMESPACE} viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" role="img" '
        f'aria-label="{escape(title)}: error against size">',
        f"<style>{STYLE}</style>",
        f'<text x="10" y="22" font-size="15">{escape(title)}</text>',
        '<text x="10" y="42">error, relative to the largest magnitude of an output</text>',
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">size of the weights</text>',
    ]
    for error in [0.0, *(10.0**power for power in range(low, high + 1))]:
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(error):.1f}" y2="{y(error):.1f}" stroke="#8884"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(error) + 4:.1f}" text-anchor="end">{error:g}</text>')
    for quarter in range(5):
        size = most * quarter / 4
        out.append(f'<text x="{x(size):.1f}" y="{foot + 18}" text-anchor="middle">{bytes_text(round(size))}</text>')
    line = " ".join(f"{x(point.weight_bytes):.1f},{y(point.error):.1f}" for point in curve)
    out.append(f'<polyline points="{line}" fill="none" stroke="{CURVE}" stroke-width="1.5"/>')
    out += [_dot(x(point.weight_bytes), y(point.error), 2.5, CURVE, f"mixed: {_said(point)}") for point in curve]
    for form, point in forms.items():
        at = x(point.weight_bytes), y(point.error)
        out.append(_dot(*at, 5, COLOURS[0], f"{form}: {_said(point)}"))
        below = any(point.weight_bytes == other.weight_bytes and point.error < other.error for other in forms.values())
        out.append(f'<text x="{at[0] - 9:.1f}" y="{at[1] + (16 if below else -8):.1f}" text-anchor="end">{form}</text>')
    at = x(chosen.weight_bytes), y(chosen.error)
    out.append(
        f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="9" fill="none" stroke="{CHOSEN}" stroke-width="2">'
        f"<title>{escape(f'chosen: {_said(chosen)}')}</title></circle>"
    )
    return "\n".join([*out, "</svg>", ""])


def _dot(x: float, y: float, radius: float, colour: str, said: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"><title>{escape(said)}</title></circle>'


def _said(point: Point) -> str:
    return f"{bytes_text(point.weight_bytes)}, error {error_text(point.error)}"
