"""Profiling a program: rounds of plain and of counted runs, taken in turn."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from webrnn.engine.kernels.loading import load

from .clock import calibrate
from .entry import CATEGORIES, Entry, Sums
from .parts import Builds, Counted, Part, PlanPart, parts_of
from .timed_plan import profiling_kernels
from .watch import Spent

ROUND_SECONDS = 0.01
"""Long against a call into wasm, and short enough to be left alone now and then on a machine that does other things."""
ATTEMPTS = 8
"""To find out how long a run takes when nothing disturbs it."""
MOST_RUNS = 10_000
MOST_ROUNDS, FEWEST_ROUNDS = 100, 3
TOTAL_SECONDS = 3.0
"""For all rounds, which are plain, profiled and a caller's, if nothing else runs."""


@dataclass(slots=True)
class Profile:
    """Times are of one run, in seconds, and those of the quickest round: what disturbs a run makes it longer."""

    model: str
    backend: str
    """With its variant, as native:avx2; what the plans run on."""
    runs: int
    rounds: int
    unprofiled: float
    """What a caller waits for."""
    plain: float
    """Without Python and without copies: runs inside one call, what an empty call takes taken off, nothing counted."""
    profiled: float
    """The same with everything counted, by the clock on the wall."""
    overhead: float
    """How much more of the processor's time the counted runs took than the plain ones: the median over the rounds, each
    of which took both in turn. Other programs disturb that less than they disturb the clock on the wall."""
    clock: float
    """What reading the clock took."""
    laps: float
    root: Entry
    notes: Sequence[str] = ()
    """What the session says about parts that have no plan."""

    @property
    def accounted(self) -> float:
        """Which part of the profiled time the entries and the clock add up to."""
        return (self.root.total + self.clock) / self.profiled if self.profiled > 0 else 1.0

    def categories(self) -> dict[str, Sums]:
        """The largest first. Fused instructions are counted by what they contain."""
        found: dict[str, Sums] = {}
        for entry in self.root.walk():
            if entry.kind in ("plan", "node", "numpy") or not (entry.calls or entry.seconds):
                continue
            sums = found.setdefault(entry.category, Sums())
            sums.add(entry)
            if entry.kind == "part" or not entry.children or entry.kind in ("loop", "branch", "beside"):
                sums.calls += entry.calls
        order = sorted(found, key=lambda name: (-found[name].seconds, CATEGORIES.index(name)))
        return {name: found[name] for name in order}

    def nodes(self) -> dict[str, Sums]:
        """By the labels of the nodes, the largest first."""
        found: dict[str, Sums] = {}
        for entry in self.root.walk():
            if entry.kind in ("plan", "numpy", "node"):
                continue
            sums = found.setdefault(entry.label or entry.name, Sums())
            sums.add(entry)
            sums.contents[entry.name if entry.kind in ("instruction", "part", "fallback") else entry.kind] = None
            if entry.kind != "part":
                sums.calls = max(sums.calls, entry.calls)
        return dict(sorted(found.items(), key=lambda item: -item[1].seconds))


def profile(
    model: str,
    program: Any,
    arguments: Sequence[Any],
    backend: str,
    call: Callable[[], Any],
    runs: int | None = None,
    seconds: float = TOTAL_SECONDS,
) -> Profile:
    """Profile a program on these arguments, for about so many seconds; `call` is what its caller calls."""
    builds = None
    if backend != "numpy":
        shipped = load(backend)
        profiling = profiling_kernels(shipped.spec)
        builds = Builds(shipped, profiling, calibrate(profiling))
    call()
    parts = parts_of(program, arguments, builds)
    _timed(parts, 1)  # warm from here on
    once = max(_timed(parts, runs), 1e-9) if runs else 0.0
    if not runs:
        runs, once = _enough_runs(parts)
    rounds = min(MOST_ROUNDS, max(FEWEST_ROUNDS, round(seconds / (3 * runs * once))))
    calls = min(runs, math.ceil(ROUND_SECONDS / max(_call_seconds(call, 1), 1e-6)))
    unprofiled, plain, longer = [], [], []
    for _ in range(rounds):
        unprofiled.append(_call_seconds(call, calls))
        plain.append([part.timed(runs) for part in parts])
        profiled = [part.profiled(runs) for part in parts]
        longer.append(_processor(profiled) / max(_processor(plain[-1]), 1e-9))
    quickest = [min(each.seconds for each in times) for times in zip(*plain, strict=True)]
    counted = [part.counted(seconds) for part, seconds in zip(parts, quickest, strict=True)]
    return Profile(
        model,
        _builds_of(parts) or (builds.plain.spec if builds is not None else backend),
        runs,
        rounds,
        min(unprofiled),
        sum(quickest),
        sum(each.seconds for each in counted),
        statistics.median(longer) - 1,
        sum(each.clock_seconds for each in counted),
        sum(each.laps for each in counted),
        _root(parts, counted),
    )


def _enough_runs(parts: Sequence[Part]) -> tuple[int, float]:
    """As many runs as take long enough for a round, and how long one of them takes."""
    runs = 1
    while True:
        once = max(min(_timed(parts, runs) for _ in range(ATTEMPTS)), 1e-9)
        if runs * once >= ROUND_SECONDS or runs == MOST_RUNS:
            return runs, once
        runs = min(math.ceil(1.2 * ROUND_SECONDS / once), 8 * runs, MOST_RUNS)


def _timed(parts: Sequence[Part], runs: int) -> float:
    return sum(part.timed(runs).seconds for part in parts)


def _processor(parts: Sequence[Spent]) -> float:
    return sum(each.processor for each in parts)


def _call_seconds(call: Callable[[], Any], runs: int) -> float:
    started = time.perf_counter()
    for _ in range(runs):
        call()
    return (time.perf_counter() - started) / runs


def _builds_of(parts: Sequence[Part]) -> str:
    return ", ".join(dict.fromkeys(part.spec for part in parts if isinstance(part, PlanPart)))


def _root(parts: Sequence[Part], measured: Sequence[Counted]) -> Entry:
    """One plan is the root itself; parts are numbered in the order in which they run."""
    if len(parts) == 1:
        return Entry("plan" if parts[0].name == "plan" else "numpy", parts[0].name, children=measured[0].entries)
    root = Entry("plan", "model", detail="plans, and numpy between them")
    for index, (part, each) in enumerate(zip(parts, measured, strict=True), 1):
        kind = "plan" if part.name == "plan" else "numpy"
        root.children.append(Entry(kind, f"{index}. {part.name}", children=each.entries))
    return root
