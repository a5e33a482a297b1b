"""Figures of `webrnn bench --stream` as tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from webrnn.errors import OptionError
from webrnn.tables import table

from .streams import Figures

FORMAT, KIND = 1, "webrnn bench --stream"
"""Of the JSON."""


def report(figures: Sequence[Figures], frame_ms: float | None) -> str:
    """A table: one way and number of streams a line."""
    header = ["way", "streams", "ticks", "ms/tick", "ticks/s", "p50", "p99", "p99.9", "worst", "KiB/tick", "grows by"]
    rows: list[list[object]] = []
    for each in figures:
        times = (each.p50, each.p99, each.p999, each.worst)
        rows.append(
            [
                each.way,
                each.depth,
                each.ticks,
                f"{each.mean:.4f}",
                f"{each.ticks_per_second:,.0f}",
                *(f"{number:.4f}" for number in times),
                *("" if number is None else f"{number:.1f}" for number in (each.kib_per_tick, each.blocks_per_tick)),
            ]
        )
        if frame_ms is not None:
            rows[-1].append(f"{each.times_realtime(frame_ms):,.0f}")
    if frame_ms is not None:
        header.append("× realtime")
    return table("ticks of streams (ms)", rows, header, is_wide=True)


def comparison(figures: Sequence[Figures], old: dict[str, Any]) -> str:
    """New against old times, of rows that both have."""
    before = {(row["way"], row["depth"]): row for row in old["rows"]}
    rows = []
    for each in figures:
        row = before.get((each.way, each.depth))
        if row is not None:
            now = {"p50": each.p50, "mean": each.mean, "p99": each.p99}
            rows.append([each.way, each.depth, *(f"{now[name] / row[name]:.2f}" for name in now)])
    return table(f"new ÷ old (of {old['model']})", rows, ["way", "streams", "p50", "mean", "p99"])


def load(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text())
        if data["format"] == FORMAT and data["rows"] is not None and data.get("kind", KIND) == KIND:
            return dict(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OptionError(f"{str(file)!r} has no figures of `webrnn bench --json`: {error}") from None
    raise OptionError(f"{str(file)!r} has figures of another kind or version")
