"""`--ab`: a pass or a switch on and off, in one process, in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from webrnn.errors import OptionError
from webrnn.passes.pipeline import ALL_PASSES, SWITCHES
from webrnn.tables import table

from .case import Case
from .rounds import Effort, ModelResult, measure, prepare
from .runners import Runner, backend_runner
from .table import time_text

Make = Callable[[Case], Runner]


@dataclass(frozen=True)
class Switch:
    """Something that can be on or off."""

    name: str
    on_options: Mapping[str, Any]
    """Of the session."""
    off_options: Mapping[str, Any]
    about: str
    is_in_plan: bool = True
    """Whether it changes the plan, not only what runs it."""

    @property
    def on(self) -> Make:
        return partial(backend_runner, **self.on_options)

    @property
    def off(self) -> Make:
        return partial(backend_runner, **self.off_options)


ABOUT = {
    "scan_buffers": "the Python Scan executor reuses buffers of body states, inputs and results (backend numpy)",
    "fused_sequences": "one instruction for a whole recurrent sequence instead of a loop of a product and a cell",
    "side_by_side": "with two threads, directions and branches at the same time",
    "inline_single_step": "a loop of one step becomes the step",
    "hoist_sequences": "work on sequences, X·Wᵀ first, is done for all steps before the loop",
    "hoist_invariants": "what is the same in all steps is computed once",
    "relaxed": "wasm with relaxed SIMD, whose multiply-adds are fused, instead of plain SIMD128",
}
"""The comparisons that are built in."""


def switch(name: str, backend: str = "native") -> Switch:
    """By name: a pass, a switch of `disable`, or "relaxed"."""
    if name == "relaxed":
        return Switch(name, {"backend": "wasm:relaxed"}, {"backend": "wasm:simd"}, ABOUT[name], is_in_plan=False)
    known = [*SWITCHES, *(step.name for step in ALL_PASSES)]
    if name not in known:
        raise OptionError(f"--ab {name}: there is no such pass or switch; there are relaxed, {', '.join(known)}")
    if name == "scan_buffers":
        backend = "numpy"
    off = {"backend": backend, "disable": [name]}
    return Switch(name, {"backend": backend}, off, ABOUT.get(name, f"the pass {name}"))


@dataclass(frozen=True)
class Comparison:
    """A switch on one model."""

    switch: str
    model: ModelResult
    """The runner "on" first, then "off"."""
    same_program: bool = False
    """Whether it makes no difference here."""

    def as_data(self) -> dict[str, Any]:
        return {"switch": self.switch, "same_program": self.same_program, **self.model.as_data()}

    def row(self) -> list[str]:
        on, off = self.model.results
        if not on.seconds or not off.seconds:
            return [self.switch, self.model.name, on.failure or off.failure, "", "", "", ""]
        ratio = off.ratio_to(on)
        bits = "same" if off.same_bits else f"differ, {abs_error(on.error, off.error):.0e}"
        if self.same_program:
            bits = "same program"
        times = [time_text(on.best), time_text(off.best)]
        return [self.switch, self.model.name, *times, f"{ratio.median:.3f}", f"±{ratio.spread:.0%}", bits]


def abs_error(*errors: float | None) -> float:
    return max((error for error in errors if error is not None), default=0.0)


def compare(
    switches: Sequence[Switch], cases: Sequence[Case], effort: Effort, say: Callable[[str], None] = lambda line: None
) -> list[Comparison]:
    """Each switch on each model; on and off are made in the same process and timed in turn."""
    found = []
    for each in switches:
        for case in cases:
            say(f"{each.name}: {case.name}")
            model, live = prepare(case, {"on": each.on, "off": each.off}, None)
            measure(live, effort)
            plans = [getattr(runner, "plan", None) for runner, _ in live]
            same = None not in plans and len(set(plans)) == 1 and each.is_in_plan
            found.append(Comparison(each.name, model, same))
    return found


def text(found: Sequence[Comparison]) -> str:
    header = ("switch", "model", "on µs", "off µs", "off ÷ on", "spread", "bits")
    names = dict.fromkeys(each.switch for each in found)
    lines = [f"{name}: {ABOUT[name]}" for name in names if name in ABOUT]
    return "\n".join([table("on and off", [each.row() for each in found], header, is_wide=True), *lines])
