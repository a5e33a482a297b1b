"""A report as text and as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from webrnn.ir import Dim, SymbolicDim
from webrnn.ir.dims import factor_text
from webrnn.tables import bytes_text, table

from .measures import Measures
from .memory import Peak
from .report import Report, Step
from .work import Work

WIDEST_CELL = 40
"""What is longer stands below the table."""

SHOWN = 4
"""So many rewrites and declines of one pass are shown unless all are asked for."""


def report_text(report: Report, everything: bool = False) -> str:
    """The report for people; `everything` shows each rewrite and decline."""
    return "\n\n".join(_sections(report, everything))


def _sections(report: Report, everything: bool) -> Iterator[str]:
    end = "nothing more to do" if report.reached_fixpoint else "stopped before the end"
    yield f"{report.graph.name}: {report.rounds} rounds in {report.seconds * 1e3:.1f} ms, {end}"
    rows = list(_measure_rows(report.before, report.after))
    yield table("graph", [row for row in rows if not _is_wide(row)], ("", "before", "after"))
    for title, before, after in filter(_is_wide, rows):
        yield f"{title.strip()}\n  before  {before}\n  after   {after}"
    for place in ("outside", "inside"):
        works = [getattr(measures, place) for measures in (report.before, report.after)]
        ops = _op_rows(*works)
        if ops:
            yield table(f"ops {place} loops", ops, ("op", "before", "after"))
    passes = [(step.name, step.count, len(step.declined), f"{step.seconds * 1e3:.1f}") for step in report.steps]
    yield table("passes", passes, ("pass", "fired", "declined", "ms"))
    done = [line for step in report.steps if step.fired for line in _fired_lines(step, everything)]
    if done:
        yield "\n".join(["what they did", *done])
    declined = [line for step in report.steps if step.declined for line in _decline_lines(step, everything)]
    if declined:
        yield "\n".join(["why they did no more", *declined])


def _is_wide(row: tuple[str, str, str]) -> bool:
    return max(map(len, row[1:])) > WIDEST_CELL


def _measure_rows(before: Measures, after: Measures) -> Iterator[tuple[str, str, str]]:
    yield "nodes", str(before.nodes), str(after.nodes)
    yield "nodes in loops", str(before.inside.nodes), str(after.inside.nodes)
    yield "loops", str(before.loops), str(after.loops)
    yield "Ifs", str(before.ifs), str(after.ifs)
    yield "constants", bytes_text(before.constant_bytes), bytes_text(after.constant_bytes)
    for title, place in (("FLOPs outside loops", "outside"), ("FLOPs in loops", "inside")):
        works: list[Work] = [getattr(measures, place) for measures in (before, after)]
        if place == "outside" or before.loops or after.loops:
            yield title, scaled(works[0].flops), scaled(works[1].flops)
        if any(work.per_step for work in works):
            yield f"{title}, each step of unknown many", scaled(works[0].per_step), scaled(works[1].per_step)
        if any(work.uncounted for work in works):
            missing = [", ".join(sorted(work.uncounted)) or "none" for work in works]
            yield f"{title}, not counted", missing[0], missing[1]
    if before.peak is not None and after.peak is not None:
        yield "peak memory", _peak_text(before.peak), _peak_text(after.peak)
        yield "peak memory is at", before.peak.where, after.peak.where


def scaled(dim: Dim) -> str:
    """A number in words of a thousand, a polynomial term by term.

    >>> from webrnn.ir import Symbol
    >>> scaled(1_234_567), scaled(Symbol("n") * 98_304 + 12)
    ('1.2 M', '98.3 k*n + 12')
    """
    if isinstance(dim, SymbolicDim):
        terms = sorted(dim.terms, key=lambda term: (not term[0], term[0]))
        products = ("*".join([_scaled_number(factor), *map(factor_text, names)]) for names, factor in terms)
        return " + ".join(products).replace("+ -", "- ")
    return _scaled_number(dim)


def _scaled_number(number: int) -> str:
    for unit, scale in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if abs(number) >= scale:
            return f"{number / scale:.1f} {unit}"
    return str(number)


def _peak_text(peak: Peak) -> str:
    text = bytes_text(peak.bytes) if isinstance(peak.bytes, int) else f"{scaled(peak.bytes)} B"
    return f"{text} and {peak.unknown} values of unknown size" if peak.unknown else text


def _op_rows(before: Work, after: Work) -> list[tuple[str, int, int]]:
    names = sorted({*before.ops, *after.ops}, key=lambda name: (-before.ops[name], -after.ops[name], name))
    return [(name, before.ops[name], after.ops[name]) for name in names]


def _fired_lines(step: Step, everything: bool) -> Iterator[str]:
    yield f"  {step.name} ({step.count})"
    yield from _limited(Counter(step.fired), everything)


def _decline_lines(step: Step, everything: bool) -> Iterator[str]:
    yield f"  {step.name} ({len(step.declined)})"
    if everything:
        yield from (f"    {decline.where}: {decline.reason}" for decline in step.declined)
        return
    for reason, count in Counter(decline.reason for decline in step.declined).most_common():
        first = next(decline.where for decline in step.declined if decline.reason == reason)
        yield f"    {first}{f' and {count - 1} more' if count > 1 else ''}: {reason}"


def _limited(lines: Counter[str], everything: bool) -> Iterator[str]:
    shown = lines.items() if everything else list(lines.items())[:SHOWN]
    for line, count in shown:
        yield f"    {line}{f', {count} times' if count > 1 else ''}"
    left = lines.total() - sum(count for _, count in shown)
    if left:
        yield f"    and {left} more"


def as_data(report: Report) -> dict[str, Any]:
    """The report as plain data, fit for JSON; symbolic costs are text."""
    return {
        "name": report.graph.name,
        "rounds": report.rounds,
        "reached_fixpoint": report.reached_fixpoint,
        "seconds": report.seconds,
        "before": _measures_data(report.before),
        "after": _measures_data(report.after),
        "steps": [
            {
                "name": step.name,
                "count": step.count,
                "fired": step.fired,
                "declined": [{"where": item.where, "reason": item.reason} for item in step.declined],
                "seconds": step.seconds,
            }
            for step in report.steps
        ],
    }


def _measures_data(measures: Measures) -> dict[str, Any]:
    data: dict[str, Any] = {
        "nodes": measures.nodes,
        "loops": measures.loops,
        "ifs": measures.ifs,
        "constant_bytes": measures.constant_bytes,
    }
    for place, work in (("outside", measures.outside), ("inside", measures.inside)):
        data[place] = {
            "ops": dict(work.ops),
            "flops": _plain(work.flops),
            "flops_per_step": _plain(work.per_step),
            "uncounted": dict(work.uncounted),
        }
    if measures.peak is not None:
        peak = measures.peak
        data["peak_memory"] = {"bytes": _plain(peak.bytes), "where": peak.where, "unknown_values": peak.unknown}
    return data


def _plain(dim: Dim) -> int | str:
    return dim if isinstance(dim, int) else str(dim)
