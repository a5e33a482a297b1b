"""Results as tables that fit 120 columns, live in a terminal where rich is installed, plain text elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from .case import CELLS, WHOLE
from .peaks import Limits
from .rounds import ModelResult, Result

WIDTH = 120
LONGEST_NAME = 16
LONGEST_US = 100_000
SECONDS_BETWEEN_DRAWINGS = 0.25
MOST_COLUMNS = 4
"""Runners beside the first in one table; more make another table."""
OWN, HOSTS = ("native", "wasm", "numpy", "pyodide"), ("node", "chromium")
SAME = "="
"""Marks results that are the first runner's bit for bit."""

Row = list[str]


def time_text(seconds: float) -> str:
    """Microseconds with three digits or more; long times say in what they are.

    >>> time_text(3.456e-6), time_text(45.6e-6), time_text(1234e-6), time_text(0.2)
    ('3.46', '45.6', '1,234', '200 ms')
    """
    us = seconds * 1e6
    if us >= LONGEST_US:
        return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:,.0f}"


def ratio_text(ratio: float) -> str:
    """
    >>> ratio_text(1.234), ratio_text(99.96)
    ('1.23', '100')
    """
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:.1f}" if ratio < 99.95 else f"{ratio:.0f}"


def runners_of(models: Sequence[ModelResult]) -> list[str]:
    return list(dict.fromkeys(result.runner for model in models for result in model.results))


def headers(names: Sequence[str]) -> Row:
    """`names` are the runners of the table, the first first."""
    return ["model", names[0], "median", "x limit", *(name.removeprefix("wasm:") for name in names[1:]), "±", "error"]


def row(model: ModelResult, names: Sequence[str]) -> Row:
    """One line: the first runner's best and median time and its distance to the limit; for each other runner its best
    time and how much longer it took; the largest spread of these ratios, and the largest error."""
    base = model.of(names[0])
    cells = [model.name if len(model.name) <= LONGEST_NAME else model.name[: LONGEST_NAME - 1] + "…"]
    if base is None or not base.seconds:
        cells += ["failed" if base is not None and base.failure else "", "", ""]
    else:
        limit = ratio_text(base.best / model.bound.seconds) if model.bound else ""
        cells += [time_text(base.best), time_text(base.median), limit]
    others = [result for name in names[1:] if (result := model.of(name)) is not None]
    cells += [_other(model.of(name), base) for name in names[1:]]
    timed = [result for result in others if result.seconds] if base is not None and base.seconds else []
    spread = max((result.ratio_to(base).spread for result in timed if base is not None), default=None)
    errors = [result.error for name in names if (result := model.of(name)) is not None and result.error is not None]
    return [*cells, "" if spread is None else f"{spread:.0%}", f"{max(errors):.0e}" if errors else ""]


def _other(result: Result | None, base: Result | None) -> str:
    if result is None:
        return ""
    if result.failure:
        return "failed  "
    if not result.seconds:
        return "…  "
    text = time_text(result.best)
    if base is not None and base.seconds:
        text += f" {ratio_text(result.ratio_to(base).median):>4}x"
    return f"{text} {SAME if result.same_bits else ' '}"


def groups(names: Sequence[str]) -> list[list[str]]:
    """The runners of each table: those of this process, peers, those of Node, those of Chromium, put together where
    they fit. All tables begin with the first runner.

    >>> groups(["native", "native int8", "wasm:simd", "tract", "node", "node int8", "chromium"])
    [['native', 'native int8', 'wasm:simd', 'tract'], ['native', 'node', 'node int8', 'chromium']]
    """
    families: dict[str, list[str]] = {}
    for name in names[1:]:
        words = name.replace(":", " ").split()
        family = next((word for word in words if word in HOSTS), "own" if words[0] in OWN else "peers")
        families.setdefault(family, []).append(name)
    tables: list[list[str]] = [[]]
    for members in families.values():
        for at in range(0, len(members), MOST_COLUMNS):
            part = members[at : at + MOST_COLUMNS]
            if len(tables[-1]) + len(part) > MOST_COLUMNS:
                tables.append([])
            tables[-1] += part
    return [[names[0], *part] for part in tables]


def sections(models: Sequence[ModelResult]) -> dict[str, list[ModelResult]]:
    """Cells first; a table of one section only has no title."""
    found: dict[str, list[ModelResult]] = {}
    for name in (CELLS, WHOLE):
        if members := [model for model in models if model.section == name]:
            found[name] = members
    return found if len(found) > 1 else {"": list(models)}


def plain(models: Sequence[ModelResult]) -> str:
    """All tables as text."""
    tables = [(title, plain_section(members)) for title, members in sections(models).items()]
    return "\n\n".join(f"{title}\n{text}" if title else text for title, text in tables)


def plain_section(models: Sequence[ModelResult]) -> str:
    parts = []
    for names in groups(runners_of(models)):
        lines = [headers(names), *(row(model, names) for model in models)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
        text = [
            "  ".join(
                cell.ljust(width) if column == 0 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        parts.append("\n".join([text[0], "-" * len(text[0]), *text[1:]]))
    return "\n\n".join(parts)


def failures(models: Sequence[ModelResult]) -> list[str]:
    """Lines about runners that have no times, and about those that are timed in another way; the same are told once."""
    told: dict[str, list[str]] = {}
    for model in models:
        for result in model.results:
            if text := result.failure or result.note:
                told.setdefault(f"{result.runner}: {text}", []).append(model.name)
    return [f"{text} ({', '.join(names)})" for text, names in told.items()]


def oracles(models: Sequence[ModelResult]) -> list[str]:
    """Lines about models whose results are compared with others than numpy's."""
    told: dict[str, list[str]] = {}
    for model in models:
        if model.oracle != "numpy":
            told.setdefault(model.oracle, []).append(model.name)
    return [f"error: difference to the results of {name} ({', '.join(of)})" for name, of in told.items()]


def legend(models: Sequence[ModelResult]) -> str:
    first = runners_of(models)[0]
    return (
        f"Microseconds of the best run, and times {first}: the median of the calm rounds, ± half their range.\n"
        f"{SAME}: the bits of {first}. x limit: best ÷ lower bound of this machine. error: largest difference to numpy."
    )


def rivals(names: Sequence[str]) -> list[tuple[str, str]]:
    """Which of our runners is compared with which other runtime: those of the same place.

    >>> rivals(["native", "numpy", "onnxruntime", "tract", "node", "ort-web node", "chromium"])
    [('native', 'onnxruntime'), ('native', 'tract'), ('node', 'ort-web node')]
    """
    found = []
    for name in names:
        *runtime, last = name.split()
        place = last if runtime and last in HOSTS else "native"
        is_peer = runtime[:1] == ["ort-web"] if runtime else name.split(":")[0] not in (*OWN, *HOSTS)
        if is_peer and place in names:
            found.append((place, name))
    return found


def summary(models: Sequence[ModelResult]) -> list[str]:
    """For each other runtime a line: on how many models ours is ahead, and the worst of our time ÷ theirs."""
    lines = []
    for title, members in sections(models).items():
        for ours, theirs in rivals(runners_of(members)):
            ratios = {model.name: ratio for model in members if (ratio := _between(model, ours, theirs)) is not None}
            if ratios:
                worst = max(ratios, key=lambda name: ratios[name])
                ahead = sum(ratio < 1 for ratio in ratios.values())
                where = f"{title}: " if title else ""
                lines.append(
                    f"{where}{ours} is ahead of {theirs} on {ahead} of {len(ratios)}; time ÷ theirs: "
                    f"median {ratio_text(float(np.median(list(ratios.values()))))}, "
                    f"worst {ratio_text(ratios[worst])} ({worst})"
                )
    return lines


def _between(model: ModelResult, ours: str, theirs: str) -> float | None:
    mine, other = model.of(ours), model.of(theirs)
    if mine is None or other is None or not mine.seconds or not other.seconds:
        return None
    return mine.ratio_to(other).median


def machine_lines(machine: dict[str, Any], limits: Limits | None) -> list[str]:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    load = f"load {machine['load_before']} before, {machine.get('load_after')} after"
    lines = [
        f"{machine['processor']}, {machine['cores']} cores ({', '.join(machine['features'])}); {load}",
        f"builds: {', '.join(machine['builds'])}; {versions}",
        *(f"{name}: {text}" for name, text in machine.get("engines", {}).items()),
    ]
    if limits is not None:
        levels = [f"{_size(size)} {rate / 1e9:.0f}" for size, rate in limits.reading[::2]]
        lines.append(
            f"limits: {limits.flops / 1e9:.0f} GFLOP/s ({limits.isa}); GB/s read by footprint: {', '.join(levels)}"
        )
    return [part for line in lines for part in _folded(line)]


def _size(n_bytes: int) -> str:
    return f"{n_bytes >> 20}M" if n_bytes >= 1 << 20 else f"{n_bytes >> 10}K"


def _folded(line: str) -> list[str]:
    parts = [line]
    while len(parts[-1]) > WIDTH:
        cut = parts[-1].rfind(" ", 0, WIDTH)
        if cut <= 2:
            break
        parts[-1:] = [parts[-1][:cut], "  " + parts[-1][cut + 1 :]]
    return parts


class Screen:
    """The tables while they grow. Without rich, or where the output is no terminal, only the last state is printed."""

    def __init__(self, quiet: bool = False):
        self._live: Any = None
        self._drawn = 0.0
        if quiet or not sys.stdout.isatty():
            return
        try:
            from rich.console import Console
            from rich.live import Live
        except ImportError:
            return
        # No thread that draws while something is timed: the table is drawn between rounds.
        self._live = Live(console=Console(), auto_refresh=False, transient=True)

    def __enter__(self) -> Screen:
        self._context().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._context().__exit__(*raised)

    def _context(self) -> AbstractContextManager[Any]:
        return self._live if self._live is not None else nullcontext()

    @property
    def is_live(self) -> bool:
        return self._live is not None

    def show(self, models: Sequence[ModelResult], state: str) -> None:
        now = time.perf_counter()
        if self._live is not None and models and now - self._drawn > SECONDS_BETWEEN_DRAWINGS:
            self._live.update(_rich(models, state), refresh=True)
            self._drawn = now


def _rich(models: Sequence[ModelResult], state: str) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = []
    for title, members in sections(models).items():
        for names in groups(runners_of(members)):
            grid = Table(box=None, pad_edge=False, header_style="bold")
            for column, name in enumerate(headers(names)):
                grid.add_column(name, justify="left" if column == 0 else "right", no_wrap=True)
            for model in members:
                grid.add_row(*row(model, names))
            parts += [Text(title), grid] if title else [grid]
    return Group(*parts, Text(state, style="dim"))
