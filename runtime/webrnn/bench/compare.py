"""Results beside those of an earlier `--json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webrnn.errors import OptionError
from webrnn.tables import table

from .revision import SHORT
from .table import time_text

FORMAT, KIND = 1, "webrnn bench"
"""Of the JSON."""
SMALLEST_CHANGE = 0.05
NOISE_FACTOR = 3


@dataclass(frozen=True)
class Change:
    model: str
    runner: str
    old: float
    """Seconds."""
    new: float
    noise: float
    """The larger of both runs'."""

    @property
    def ratio(self) -> float:
        return self.new / self.old

    @property
    def threshold(self) -> float:
        """By how much a ratio has to be off 1 to mean anything: 5%, or three times the noise where that is more."""
        return max(SMALLEST_CHANGE, NOISE_FACTOR * self.noise)

    @property
    def verdict(self) -> str:
        """
        >>> Change("m", "native", 1.0, 1.1, 0.01).verdict, Change("m", "native", 1.0, 1.1, 0.05).verdict
        ('slower', '')
        """
        if self.ratio > 1 + self.threshold:
            return "slower"
        return "faster" if self.ratio < 1 / (1 + self.threshold) else ""


def load(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text())
        if data["kind"] == KIND and data["format"] == FORMAT:
            return dict(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OptionError(f"{str(file)!r} has no figures of `webrnn bench --json`: {error}") from None
    raise OptionError(f"{str(file)!r} has figures of another kind or version")


def changes(new: dict[str, Any], old: dict[str, Any]) -> list[Change]:
    """Of what both have times of."""
    before = dict(_rows(old))
    found = []
    for key, row in _rows(new):
        if key in before:
            noise = max(row["noise"], before[key]["noise"])
            found.append(Change(*key, before[key]["median_us"] / 1e6, row["median_us"] / 1e6, noise))
    return found


def _rows(data: dict[str, Any]) -> list[tuple[tuple[str, str], dict[str, Any]]]:
    return [
        ((model["model"], row["runner"]), row)
        for model in data["models"]
        for row in model["results"]
        if "median_us" in row
    ]


def text(found: Sequence[Change], old: dict[str, Any]) -> str:
    rows = [
        (each.model, each.runner, time_text(each.old), time_text(each.new), f"{each.ratio:.2f}",
         f"±{each.threshold:.0%}", each.verdict)
        for each in found
    ]  # fmt: skip
    header = ("model", "runner", "old µs", "new µs", "new ÷ old", "threshold", "")
    verdicts = [each.verdict for each in found]
    summary = f"{verdicts.count('slower')} slower, {verdicts.count('faster')} faster, of {len(found)}"
    commit = old.get("revision", {}).get("commit", "")
    title = f"beside the figures of {old['date']}{f', {commit[:SHORT]}' if commit else ''} (medians)"
    return f"{table(title, rows, header, is_wide=True)}\n{summary}"
