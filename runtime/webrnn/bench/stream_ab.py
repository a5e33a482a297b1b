"""`--stream --ab`: ticks with a pass or a switch on and off, in one process, in short blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from webrnn.errors import Error

from .ab import Switch
from .pairs import PairEffort, Sitting, in_us, sit
from .rounds import apart
from .runners import flat_results
from .streams import Runner, StreamBench
from .verdict import Verdict, verdict

MakeBench = Callable[[], StreamBench]
"""A bench of the model without any way to run it yet."""


class _Side:
    """The ticks of a way to run streams."""

    def __init__(self, bench: StreamBench, runner: Runner):
        self._bench, self._runner = bench, runner

    def block(self, calls: int) -> float:
        seconds = self._bench.run(self._runner, calls)
        self._runner.seconds += seconds
        return float(np.median(seconds))


@dataclass
class TickComparison:
    """A switch, and one way to run so many streams."""

    switch: str
    way: str
    depth: int
    sittings: list[Sitting] = field(default_factory=list)
    """On is the base."""
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"on": [], "off": []})
    """Of all ticks."""
    off: float = 0.0
    """How far results are apart; 0 if they have the same bits."""
    same_program: bool = False
    failure: str = ""

    @property
    def verdict(self) -> Verdict | None:
        return verdict([each.ratio for each in self.sittings]) if self.sittings else None

    def as_data(self) -> dict[str, Any]:
        said = self.verdict
        return {
            "switch": self.switch,
            "way": self.way,
            "depth": self.depth,
            "us": {side: in_us(seconds) for side, seconds in self.seconds.items() if seconds},
            "verdict": said.as_data() if said else None,
            "sittings": [each.as_data() for each in self.sittings],
            "difference": self.off,
            "same_program": self.same_program,
            "failure": self.failure,
        }


def compare(
    switches: Sequence[Switch],
    make: MakeBench,
    depths: Sequence[int],
    effort: PairEffort,
    say: Callable[[str], None] = lambda line: None,
) -> list[TickComparison]:
    """Each switch on a stream and on pools. Each sitting makes the sessions anew; what noise hides after all of them
    gets as many again, once."""
    found: list[TickComparison] = []
    for each in switches:
        rows: list[TickComparison] = []
        loud: list[bool] = []
        for sitting in range(2 * effort.n_sittings):
            if sitting == effort.n_sittings:
                loud = [row.verdict is not None and row.verdict.is_loud for row in rows]
            chosen = loud if sitting >= effort.n_sittings else None
            if chosen is not None and not any(chosen):
                break
            say(f"{each.name}: sitting {sitting + 1}")
            _sit(each, make(), depths, effort.part(), rows, chosen)
            if rows[0].failure:
                break
        found += rows
    return found


def _sit(
    switch: Switch,
    bench: StreamBench,
    depths: Sequence[int],
    part: PairEffort,
    rows: list[TickComparison],
    chosen: Sequence[bool] | None,
) -> None:
    """Adds to the rows, which the first sitting makes; `chosen` says to which of them."""
    bench.add_backend(depths=depths, **switch.on_options)
    n_ways = len(bench.runners)
    try:
        bench.add_backend(depths=depths, **switch.off_options)
    except Error as error:
        failure = f"off: {type(error).__name__}: {error}"
        rows[:] = [TickComparison(switch.name, bench.runners[0].way, 1, failure=failure)]
        return
    pairs = list(zip(bench.runners[:n_ways], bench.runners[n_ways:], strict=True))
    if not rows:
        for on, off in pairs:
            way = on.way if on.way == off.way else f"{on.way} / {off.way}"
            row = TickComparison(switch.name, way, on.depth)
            row.off = apart(*(flat_results(bench.results(runner)) for runner in (on, off)))
            row.same_program = switch.is_in_plan and on.program is not None and on.program == off.program
            rows.append(row)
    for number, (row, (on, off)) in enumerate(zip(rows, pairs, strict=True)):
        if chosen is None or chosen[number]:
            row.sittings.append(sit(_Side(bench, on), _Side(bench, off), part))
            row.seconds["on"] += on.seconds
            row.seconds["off"] += off.seconds
