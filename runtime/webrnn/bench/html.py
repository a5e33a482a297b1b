"""Results as one self-contained page: charts, tables, and the figures themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from . import charts
from .rounds import ModelResult
from .table import runners_of, time_text

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #57606a; }
@media (prefers-color-scheme: dark) { :root { --soft: #a8b3bf; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
svg { width: 100%; height: auto; margin: 1rem 0; }
svg text { fill: var(--soft); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: 2px 10px; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; }
small, .about { color: var(--soft); }
"""


def page(data: dict[str, Any], models: Sequence[ModelResult], about: Sequence[str]) -> str:
    """`data` is what `--json` writes; `about` are lines on machine and limits."""
    names = runners_of(models)
    first = names[0]
    times = {model.name: [_best(model, name) for name in names] for model in models}
    ratios = {model.name: [_ratio(model, name) for name in names[1:]] for model in models}
    limit = {model.name: [_to_limit(model, name) for name in names] for model in models if model.bound}
    parts = [
        "<h1>webrnn bench</h1>",
        f'<p class="about">{"<br>".join(escape(line) for line in about)}<br>{escape(data["date"])}</p>',
        charts.bars("Time of a run: the best, in µs (log scale)", names, times, " µs", None, alone=False),
        charts.bars(f"Times {first}, calm rounds (log scale)", names[1:], ratios, alone=False, first_colour=1)
        if len(names) > 1
        else "",
        charts.bars(
            "Distance to the limit: best time ÷ lower bound of this machine (log scale)", names, limit, alone=False
        )
        if limit
        else "",
        "<h2>Figures</h2>",
        f'<div class="wide">{_table(models, names)}</div>',
        f"<p><small>µs: best and (median) of the rounds; ×: times {escape(first)}; = the same bits as {escape(first)}. "
        "The lower bound is the time in which this processor could at best do the arithmetic and read the weights."
        "</small></p>",
        *(f"<p><small>{escape(line)}</small></p>" for line in data.get("notes", [])),
        f'<script type="application/json" id="figures">{_embedded(data)}</script>',
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>webrnn bench</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _best(model: ModelResult, name: str) -> float | None:
    result = model.of(name)
    return result.best * 1e6 if result is not None and result.seconds else None


def _ratio(model: ModelResult, name: str) -> float | None:
    result = model.of(name)
    if model.base is None or result is None or not result.seconds:
        return None
    return result.ratio_to(model.base).median


def _to_limit(model: ModelResult, name: str) -> float | None:
    result = model.of(name)
    if model.bound is None or result is None or not result.seconds:
        return None
    return result.best / model.bound.seconds


def _table(models: Sequence[ModelResult], names: Sequence[str]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in ("model", "limit µs", *names))
    rows = []
    for model in models:
        cells = [escape(model.name), time_text(model.bound.seconds) if model.bound else ""]
        for name in names:
            result = model.of(name)
            if result is None or not result.seconds:
                cells.append(f'<span title="{escape(result.failure)}">failed</span>' if result is not None else "")
                continue
            ratio = _ratio(model, name)
            text = f"{time_text(result.best)} ({time_text(result.median)})"
            if ratio is not None and name != names[0]:
                text += f" {ratio:.2f}×"
            cells.append(text + (" =" if result.same_bits else ""))
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _embedded(data: dict[str, Any]) -> str:
    return json.dumps(data).replace("<", "\\u003c")
