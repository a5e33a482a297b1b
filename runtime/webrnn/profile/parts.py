"""The parts of a program that are profiled: plans on the VM, and nodes that run in numpy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from webrnn.engine.executor.executor import Executor, Operation, Step
from webrnn.engine.kernels.loading import Kernels
from webrnn.engine.limits import Budget
from webrnn.engine.programs.backends import ForShapes
from webrnn.engine.programs.open_containers import OpenProgram, flat
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.engine.programs.vm_program import SplitProgram, VmProgram
from webrnn.errors import BackendError

from .clock import Clock
from .counters import Counters
from .entry import Entry
from .plan_tree import PlanTree
from .timed_plan import TimedPlan
from .watch import Spent, Watch


@dataclass(frozen=True, slots=True)
class Counted:
    """A part of a program, profiled; of one run."""

    seconds: float
    """By the clock on the wall."""
    clock_seconds: float
    """Of these, what reading the clock took."""
    laps: float
    entries: list[Entry]


class Part(Protocol):
    name: str

    def timed(self, runs: int) -> Spent:
        """What one run takes, nothing counted."""
        ...

    def profiled(self, runs: int) -> Spent:
        """What one run takes, everything counted; the quickest ones are kept."""
        ...

    def counted(self, plain: float) -> Counted:
        """What was counted in the quickest runs, of which one without counting takes `plain` seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Builds:
    """The kernels to profile on: those that are shipped, and their profiling build."""

    plain: Kernels
    profiling: Kernels
    clock: Clock


class PlanPart:
    def __init__(self, plan: PlanProgram, arguments: Sequence[Any], builds: Builds):
        self.name = "plan"
        self._clock = builds.clock
        self._plain = TimedPlan(plan.file.data, builds.plain, arguments, plan.limits)
        self.spec = self._plain.kernels.spec
        self._profiling = TimedPlan(plan.file.data, builds.profiling, arguments, plan.limits)
        self._tree = PlanTree(plan.file, self._plain.symbols, self._plain.sizes)
        self._best: tuple[float, Counters, int] | None = None

    def timed(self, runs: int) -> Spent:
        return self._plain.timed(runs).each(runs)

    def profiled(self, runs: int) -> Spent:
        all_runs, counters = self._profiling.profiled(runs)
        spent = all_runs.each(runs)
        if self._best is None or spent.seconds < self._best[0]:
            self._best = spent.seconds, counters, runs
        return spent

    def counted(self, plain: float) -> Counted:
        """A reading of the clock has cost what it made the run longer, but not more than one that nothing hides."""
        assert self._best is not None
        seconds, counters, runs = self._best
        laps = counters.laps / runs
        per_lap = min(max((seconds - plain) / max(laps, 1), 0.0), self._clock.seconds_per_lap)
        clock = Clock(self._clock.seconds_per_tick, per_lap / self._clock.seconds_per_tick)
        entries = self._tree.entries(counters, clock, runs)
        in_vm = counters.total_ticks * clock.seconds_per_tick / runs
        return Counted(seconds, max(0.0, in_vm - sum(entry.total for entry in entries)), laps, entries)


class NumpyPart:
    def __init__(self, executor: Executor, arguments: Sequence[Any]):
        self.name = "numpy"
        self._executor, self._arguments = executor, list(arguments)
        self._best: tuple[float, list[float]] | None = None

    def timed(self, runs: int) -> Spent:
        watch = Watch()
        for _ in range(runs):
            self._executor.run(self._arguments)
        return watch.spent().each(runs)

    def profiled(self, runs: int) -> Spent:
        steps = self._executor.steps
        spent, original = [0.0] * len(steps), [step.operation for step in steps]
        for index, step in enumerate(steps):
            step.operation = _counted(step.operation, spent, index)
        try:
            all_spent = self.timed(runs)
        finally:
            for step, operation in zip(steps, original, strict=True):
                step.operation = operation
        if self._best is None or all_spent.seconds < self._best[0]:
            self._best = all_spent.seconds, [each / runs for each in spent]
        return all_spent

    def counted(self, plain: float) -> Counted:
        assert self._best is not None
        seconds, spent = self._best
        entries = [_fallback(step, each) for step, each in zip(self._executor.steps, spent, strict=True)]
        between = Entry("fallback", "between nodes", "fallback", "the executor itself", calls=1)
        between.seconds = max(0.0, seconds - sum(spent))
        return Counted(seconds, 0.0, 0.0, [*entries, between])


def _counted(operation: Operation, spent: list[float], index: int) -> Operation:
    def call(arguments: list[Any], budget: Budget) -> Sequence[Any]:
        started = time.perf_counter()
        result = operation(arguments, budget)
        spent[index] += time.perf_counter() - started
        return result

    return call


def _fallback(step: Step, seconds: float) -> Entry:
    label = step.node.label
    detail = f"{step.node.op} {label} in numpy"
    return Entry("fallback", step.node.op, "fallback", detail, label, calls=1, seconds=seconds)


def parts_of(program: Any, arguments: Sequence[Any], builds: Builds | None) -> list[Part]:
    """What a run of these arguments runs, in order; it is run once to find that out."""
    if isinstance(program, ForShapes):
        return parts_of(program.program_for(arguments), arguments, builds)
    if isinstance(program, Executor):
        return [NumpyPart(program, arguments)]
    if builds is None:
        raise BackendError("there are no kernels to profile")
    if isinstance(program, VmProgram):
        program.run(arguments)
        return parts_of(program.ran_on(arguments), arguments, builds)
    if isinstance(program, OpenProgram):
        return parts_of(program.program, flat(arguments), builds)
    if isinstance(program, SplitProgram):
        values: dict[Any, Any] = dict(program.graph.constants)
        values.update(zip(program.graph.inputs, arguments, strict=True))
        found: list[Part] = []
        for inputs, outputs, part in program.steps:
            given = [values[value] for value in inputs]
            values.update(zip(outputs, part.run(given), strict=True))
            found += parts_of(part, given, builds)
        return found
    return [PlanPart(program, arguments, builds)]
