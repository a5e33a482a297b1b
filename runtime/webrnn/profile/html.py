"""A profile as one HTML file: a flame chart and tables, without anything from the network."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files

from .entry import Sums
from .profiler import Profile
from .text import as_data, figures

COLUMNS = ("calls", "us", "share", "GFLOP/s", "GB/s")


def report_html(profile: Profile) -> str:
    page = files("webrnn.profile").joinpath("flame.html").read_text(encoding="utf-8")
    parts = {
        "TITLE": escape(f"{profile.model} on {profile.backend}"),
        "SUMMARY": _summary(profile),
        "CATEGORIES": _table("category", profile.categories(), profile),
        "NODES": _table("node", profile.nodes(), profile),
        # The only sequence that could end the script early is made harmless.
        "DATA": json.dumps(as_data(profile)["tree"]).replace("<", "\\u003c"),
    }
    return re.sub(r"@([A-Z]+)@", lambda place: parts[place[1]], page)


def _summary(profile: Profile) -> str:
    rows = [
        ("unprofiled", profile.unprofiled, "what a caller waits for"),
        ("without calls", profile.plain, "runs inside one call, nothing counted"),
        ("profiled", profile.profiled, f"{profile.overhead:+.1%} processor time; {profile.laps:,.0f} clock readings"),
        ("all below", profile.root.total, f"with the clock {profile.accounted:.1%} of the profiled time"),
    ]
    cells = [
        f"<tr><th scope=row>{escape(name)}</th><td>{seconds * 1e6:,.1f} us</td><td>{escape(what)}</td></tr>"
        for name, seconds, what in rows
    ]
    notes = "".join(f"<li>{escape(note)}</li>" for note in profile.notes)
    return f"<table>{''.join(cells)}</table>" + (f"<ul>{notes}</ul>" if notes else "")


def _table(title: str, rows: dict[str, Sums], profile: Profile) -> str:
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in (title, *COLUMNS))
    lines = []
    for name, sums in rows.items():
        contents = escape(", ".join(sums.contents))
        cells = "".join(f"<td>{figure}</td>" for figure in figures(sums, profile))
        note = f"<small>{contents}</small>" if contents else ""
        lines.append(f"<tr><th scope=row>{escape(name)}{note}</th>{cells}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
