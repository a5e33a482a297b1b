"""Bounds on what a model may use, and what of them is left while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from time import monotonic

from webrnn.errors import LimitError, OptionError
from webrnn.plan.opcodes import ERROR_ROWS


@dataclass(frozen=True)
class Limits:
    """What one run may ask for. Beyond a limit it raises, whatever the model says.

    >>> Limits(loop_steps=100)
    Limits(loop_steps=100, run_steps=1000000000, seconds=None, trace_bytes=2147483648)

    Steps are those of loops as they are run: Scan, Loop, RNN, GRU and LSTM, after the passes.
    """

    loop_steps: int = 10_000_000
    """Steps of one loop."""
    run_steps: int = 1_000_000_000
    """Steps of all loops of a run together, those inside others included."""
    seconds: float | None = None
    """Time of one run, None for any. It is looked at between ops and between the steps of loops."""
    trace_bytes: int = 2**31
    """What the steps of a loop may pile up in one of its outputs."""

    def __post_init__(self) -> None:
        for name in ("loop_steps", "run_steps", "trace_bytes"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise OptionError(f"Limits: {name} is an integer from 1 on, not {number!r}")
        if self.seconds is None:
            return
        is_number = isinstance(self.seconds, int | float) and not isinstance(self.seconds, bool)
        if not is_number or not isfinite(self.seconds) or self.seconds <= 0:
            raise OptionError(f"Limits: seconds is a number above 0, or None, not {self.seconds!r}")


_TEXTS = {row.limit: row.text for row in ERROR_ROWS if row.limit}


def limit_error(limits: Limits, name: str, node: str | None = None) -> LimitError:
    """
    >>> limit_error(Limits(), "loop_steps", "scan")
    LimitError("node 'scan': the loop did not end within 10000000 steps: webrnn.Limits(loop_steps=...) allows more")
    """
    text = _TEXTS[name].format(getattr(limits, name))
    return LimitError(f"{text}: webrnn.Limits({name}=...) allows more", node=node, limit=name)


class Budget:
    """What is left of its limits while a run goes on.

    A loop whose number of steps is known when it begins is charged for all of them then, others step by step. The VM
    does the same (wasm_kernels/budget.h): what one backend refuses, all refuse.
    """

    __slots__ = ("deadline", "limits", "steps_left")

    def __init__(self, limits: Limits):
        self.limits, self.steps_left = limits, limits.run_steps
        self.deadline = None if limits.seconds is None else monotonic() + limits.seconds

    def charge_loop(self, steps: int | None) -> None:
        """A loop of so many steps begins; None is one without end."""
        self._charge(inf if steps is None else steps, inf if steps is None else steps)

    def charge_step(self, taken: int) -> None:
        """A loop that has taken so many steps begins another."""
        self._charge(taken + 1, 1)

    def _charge(self, of_loop: float, of_run: float) -> None:
        if of_loop > self.limits.loop_steps:
            raise limit_error(self.limits, "loop_steps")
        if of_run > self.steps_left:
            raise limit_error(self.limits, "run_steps")
        self.steps_left -= int(of_run)

    def check_time(self) -> None:
        if self.deadline is not None and monotonic() > self.deadline:
            raise limit_error(self.limits, "seconds")
