"""A profile as text and as data."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Any

from webrnn.tables import table

from .entry import Entry, Sums, has_parts
from .profiler import Profile

FORMAT = 1
"""Of the JSON."""
SMALL = 0.005
"""Shares below this are left out of the tree."""
MOST_NODES = 20


def report_text(profile: Profile, everything: bool = False) -> str:
    """What the command prints; `everything` leaves nothing out."""
    parts = [_head(profile), _categories(profile), _nodes(profile, everything), _tree(profile, everything)]
    return "\n\n".join([*parts, *(["\n".join(profile.notes)] if profile.notes else [])])


def as_data(profile: Profile) -> dict[str, Any]:
    """For JSON; times in microseconds, all figures of one run."""
    return {
        "format": FORMAT,
        "model": profile.model,
        "backend": profile.backend,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "runs": profile.runs,
        "rounds": profile.rounds,
        "unprofiled_us": profile.unprofiled * 1e6,
        "plain_us": profile.plain * 1e6,
        "profiled_us": profile.profiled * 1e6,
        "overhead": profile.overhead,
        "clock_us": profile.clock * 1e6,
        "laps": profile.laps,
        "accounted": profile.accounted,
        "categories": [_sums_data(name, sums, profile) for name, sums in profile.categories().items()],
        "nodes": [
            {**_sums_data(name, sums, profile), "contains": list(sums.contents)}
            for name, sums in profile.nodes().items()
        ],
        "tree": profile.root.as_data(),
        "notes": list(profile.notes),
    }


def _sums_data(name: str, sums: Sums, profile: Profile) -> dict[str, Any]:
    return {
        "name": name,
        "calls": sums.calls,
        "us": sums.seconds * 1e6,
        "share": _share(sums.seconds, profile),
        "flops": sums.flops,
        "bytes": sums.bytes,
        "gflops": sums.gflops,
        "gbytes": sums.gbytes,
    }


def _share(seconds: float, profile: Profile) -> float:
    total = profile.root.total
    return seconds / total if total > 0 else 0.0


def _head(profile: Profile) -> str:
    each = profile.clock / profile.laps * 1e9 if profile.laps else 0.0
    counted = f"{profile.laps:,.0f} readings of the clock, {each:.0f} ns each" if profile.laps else "in Python"
    rounds = f"the best of {profile.rounds} rounds of {profile.runs}"
    lines = [
        f"{profile.model} on {profile.backend}; one run, {rounds}",
        "",
        f"unprofiled    {_us(profile.unprofiled):>12}  what a caller waits for",
        f"without calls {_us(profile.plain):>12}  runs inside one call, nothing counted",
        f"profiled      {_us(profile.profiled):>12}  {profile.overhead:+.1%} processor time ({counted})",
        f"all below     {_us(profile.root.total):>12}  with the clock {profile.accounted:.1%} of the profiled time",
    ]
    return "\n".join(lines)


def _categories(profile: Profile) -> str:
    rows = [[name, *figures(sums, profile)] for name, sums in profile.categories().items()]
    return table("by category", rows, ["category", "calls", "us", "share", "GFLOP/s", "GB/s"])


def _nodes(profile: Profile, everything: bool) -> str:
    nodes = list(profile.nodes().items())
    shown = nodes if everything else nodes[:MOST_NODES]
    rows = [[_cut(name, 50), *figures(sums, profile), _ended(", ".join(sums.contents), 40)] for name, sums in shown]
    if len(shown) < len(nodes):
        rest = sum(sums.seconds for _, sums in nodes[len(shown) :])
        share = f"{_share(rest, profile):.1%}"
        rows.append([f"{len(nodes) - len(shown)} others", "", f"{rest * 1e6:,.2f}", share, "", "", ""])
    return table("by node", rows, ["node", "calls", "us", "share", "GFLOP/s", "GB/s", "contains"])


def figures(sums: Sums, profile: Profile) -> list[str]:
    return [
        f"{sums.calls:,.0f}",
        f"{sums.seconds * 1e6:,.2f}",
        f"{_share(sums.seconds, profile):.1%}",
        f"{sums.gflops:.1f}" if sums.flops else "",
        f"{sums.gbytes:.1f}" if sums.bytes else "",
    ]


def _tree(profile: Profile, everything: bool) -> str:
    rows = list(_rows(profile.root, profile, everything, 0))
    title = "in the order of the program, what is inside included"
    return table(title, rows, ["", "calls", "us", "share", "GFLOP/s", "GB/s", "category"])


def _rows(entry: Entry, profile: Profile, everything: bool, depth: int) -> Iterator[list[str]]:
    sums = Sums(entry.calls, entry.total, sum(e.flops for e in entry.walk()), sum(e.bytes for e in entry.walk()))
    steps = f" × {entry.steps / entry.calls:,.0f} steps" if entry.kind == "loop" and entry.calls else ""
    category = "" if entry.kind in ("plan", "numpy", "node") or has_parts(entry) else entry.category
    shown = figures(sums, profile)
    if entry.kind in ("plan", "numpy"):
        shown[0] = ""
    yield [_cut("  " * depth + entry.name, 60) + steps, *shown, category]
    hidden = []
    for child in entry.children:
        if everything or _share(child.total, profile) >= SMALL:
            yield from _rows(child, profile, everything, depth + 1)
        else:
            hidden.append(child.total)
    if hidden:
        share = f"{_share(sum(hidden), profile):.1%}"
        yield ["  " * (depth + 1) + f"{len(hidden)} small ones", "", f"{sum(hidden) * 1e6:,.2f}", share, "", "", ""]


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} us"


def _ended(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _cut(text: str, length: int) -> str:
    """Names of nodes differ at their ends.

    >>> _cut("encoder/layer/conv", 10)
    '…ayer/conv'
    """
    pad = len(text) - len(text.lstrip())
    return text if len(text) <= length else text[:pad] + "…" + text[len(text) - length + pad + 1 :]
