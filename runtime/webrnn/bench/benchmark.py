"""A whole benchmark: which runners, all models, and what is known at the end."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from webrnn.engine.kernels.loading import available
from webrnn.errors import Error

from . import machine, table
from .case import Case
from .compare import FORMAT, KIND
from .peaks import Bound, Limits, ModelWork, measure_limits, work_of
from .rounds import Effort, Live, Makers, ModelResult, measure, prepare, prepare_again
from .runners import backend_runner

WASM = ("wasm:relaxed", "wasm:simd", "wasm:scalar")


def own_runners() -> Makers:
    """Those of this process that work here, native first."""
    there = available()
    names = [*(["native"] if any(spec.startswith("native") for spec in there) else [])]
    names += [name for name in WASM if name in there]
    return {name: partial(backend_runner, backend=name) for name in (*names, "numpy")}


@dataclass
class Benchmark:
    """Collects runners, then times all models on them."""

    makers: dict[str, Any] = field(default_factory=dict)
    effort: Effort = field(default_factory=Effort)
    machine: dict[str, Any] = field(default_factory=machine.describe)
    notes: list[str] = field(default_factory=list)
    limits: Limits | None = None
    models: list[ModelResult] = field(default_factory=list)

    def run(self, cases: Mapping[str, Callable[[], Case]], show: Callable[[list[ModelResult], str], None]) -> None:
        """Cases are made one by one; one that cannot be is reported if there are others. `show` is called with what is
        there so far and what is being done."""
        self.limits = measure_limits()
        works: list[tuple[ModelWork | None, ModelResult]] = []
        sitting: list[tuple[str, Case, ModelResult]] = []
        with machine.one_numpy_thread():
            for number, (name, make) in enumerate(cases.items()):
                state = f"model {number + 1} of {len(cases)}: {name}"
                show(self.models, f"{state}: checking results")
                try:
                    case = make()
                except Error as error:
                    if len(cases) == 1:
                        raise
                    self.notes.append(f"{name}: {type(error).__name__}: {error}")
                    continue
                work = work_of(case.model, case.feeds, case.fixed) if self.limits is not None else None
                model, live = prepare(case, self.makers, self._bound(work))
                self.models.append(model)
                works.append((work, model))
                sitting.append((state, case, model))
                self._measure(live, state, show)
            for number in range(1, self.effort.n_sittings):
                for state, case, model in sitting:
                    self._measure(prepare_again(case, self.makers, model), f"{state}: sitting {number + 1}", show)
        self._measure_limits_again(works)
        self.machine["load_after"] = machine.load()
        self.notes += [*table.failures(self.models), *table.oracles(self.models)]

    def _measure(self, live: Live, state: str, show: Callable[[list[ModelResult], str], None]) -> None:
        try:
            measure(live, self.effort.part(), lambda done: show(self.models, f"{state}: round {done}"))
        finally:
            for runner, _ in live:
                runner.close()

    def _bound(self, work: ModelWork | None) -> Bound | None:
        return work.bound(self.limits) if work is not None and self.limits is not None else None

    def _measure_limits_again(self, works: Sequence[tuple[ModelWork | None, ModelResult]]) -> None:
        """A busy machine shows less than it can do: the better of two measurements counts."""
        again = measure_limits()
        if self.limits is None or again is None:
            return
        self.limits = self.limits.or_better(again)
        for work, model in works:
            model.bound = self._bound(work)

    def as_data(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "format": FORMAT,
            "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            "machine": self.machine,
            "limits": self.limits.as_data() if self.limits else None,
            "models": [model.as_data() for model in self.models],
            "notes": self.notes,
        }
