"""Two sides beside each other, as tables: revisions, and switches of streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from webrnn.tables import table

from .ab import Switch
from .against import OTHER, THIS, Against, Paired
from .stream_ab import TickComparison
from .table import time_text
from .verdict import LOUD, Verdict


def revisions(found: Sequence[Paired], against: Against, path: str) -> str:
    """A line for each model and way to run it."""
    rows = []
    for each in found:
        row = [each.job.model, each.job.way, str(each.job.depth)]
        if each.verdict is None:
            rows.append([*row, *_empty(), _failures(each.failures)])
            continue
        times = _times(each.seconds, OTHER, THIS)
        rows.append([*row, *times, *_said(each.verdict), _bits(each.off or 0.0)])
    header = (
        "model",
        "way",
        "streams",
        "other p50",
        "p99",
        "this p50",
        "p99",
        "this ÷ other",
        "95%",
        "this is",
        "bits",
    )
    lines = [
        f"this:  {against.revisions[THIS]}",
        f"other: {against.revisions[OTHER]} ({path})",
        table("two revisions (µs)", rows, header, is_wide=True),
    ]
    return "\n".join([*lines, *(f"  {note}" for note in (*against.notes, *_loud([each.verdict for each in found])))])


def switches(found: Sequence[TickComparison], about: Sequence[Switch]) -> str:
    """A line for each switch and way to run streams."""
    rows = []
    for each in found:
        row = [each.switch, each.way, str(each.depth)]
        if each.verdict is None:
            rows.append([*row, *_empty(), each.failure])
            continue
        bits = "same program" if each.same_program else _bits(each.off)
        rows.append([*row, *_times(each.seconds, "on", "off"), *_said(each.verdict), bits])
    header = ("switch", "way", "streams", "on p50", "p99", "off p50", "p99", "off ÷ on", "95%", "off is", "bits")
    notes = [f"{each.name}: {each.about}" for each in about]
    notes += [f"  {line}" for line in _loud([each.verdict for each in found])]
    return "\n".join([table("ticks, on and off (µs)", rows, header, is_wide=True), *notes])


def _times(seconds: Mapping[str, Sequence[float]], *sides: str) -> list[str]:
    return [time_text(float(time)) for side in sides for time in np.percentile(seconds[side], [50, 99])]


def _said(verdict: Verdict) -> list[str]:
    return [f"{verdict.ratio:.3f}", f"{verdict.low:.3f}..{verdict.high:.3f}", str(verdict)]


def _empty() -> list[str]:
    return ["-"] * 7


def _bits(off: float) -> str:
    return "same" if off == 0 else f"differ, {off:.0e}"


def _failures(failures: Mapping[str, str]) -> str:
    return "; ".join(f"{side}: {why}" for side, why in failures.items())


def _loud(verdicts: Sequence[Verdict | None]) -> list[str]:
    if any(each is not None and each.is_loud for each in verdicts):
        return [f"noise hides changes of more than {LOUD:.0%}: a calmer machine or a longer --seconds shows them"]
    return []
