"""A plan with its inputs in place, run many times in one call: plainly, or with everything counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from webrnn.engine.kernels.loading import FOLDER, Kernels, load
from webrnn.engine.limits import Limits
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.errors import BackendError

from .counters import ROW, Counters
from .watch import Spent, Watch

EMPTY_CALLS = 20
"""To find out what a call costs that runs nothing; that is taken off all times."""
PROFILE_FOLDER = FOLDER / "profile"


def profiling_kernels(spec: str, folder: Path = PROFILE_FOLDER) -> Kernels:
    """The profiling build of these kernels."""
    if spec.partition(":")[0] == "pyodide":
        raise BackendError("there are no profiling builds for Pyodide: profile on native or wasm")
    return load(spec, folder)


class TimedPlan(PlanProgram):
    def __init__(self, data: bytes, kernels: Kernels, arguments: Sequence[np.ndarray], limits: Limits | None = None):
        super().__init__(data, kernels, limits=limits)
        self.bind(tuple(argument.shape for argument in arguments))
        for place, argument in zip(self.inputs, arguments, strict=True):
            place[...] = argument
        if any(self.file.is_late):
            self.execute()  # so that there is all the memory that these inputs need
        self._empty_call = Spent(0.0, 0.0)
        empty = [self._timed("plan_repeat", 0) for _ in range(EMPTY_CALLS)]
        self._empty_call = Spent(min(each.seconds for each in empty), min(each.processor for each in empty))

    @property
    def symbols(self) -> list[int]:
        """The sizes that are bound."""
        return self.file.symbols_of([place.shape for place in self.inputs])

    @property
    def sizes(self) -> list[int]:
        """All sizes; late ones as the last run has set them, 0 where it has not."""
        size_of, late = self.kernels.function("plan_size"), self.file.is_late
        return [
            max(size_of(self._tables.address, row), 0) if late[row] else size
            for row, size in enumerate(self.bound.sizes)
        ]

    @property
    def needed_bytes(self) -> int:
        """What the values inside of the plan need in the arena; those of late sizes, in the last run."""
        return self.kernels.function("plan_arena_bytes")(self._tables.address)

    def timed(self, times: int) -> Spent:
        """What `times` runs take."""
        return self._timed("plan_repeat", times)

    def profiled(self, times: int) -> tuple[Spent, Counters]:
        """What `times` runs take, and what was counted in them."""
        counters = self.kernels.empty((max(self.file.header["code_words"], 1), ROW), np.int64)
        spent = self._timed("plan_profile", counters.address, times)
        return spent, Counters(counters.array.copy())

    def _timed(self, function: str, *arguments: int) -> Spent:
        run, places = self.kernels.function(function), self.run_arguments
        watch = Watch()
        error = run(*places, *arguments)
        spent = watch.spent()
        self._raise_for(error)
        empty = self._empty_call
        return Spent(max(spent.seconds - empty.seconds, 0.0), max(spent.processor - empty.processor, 0.0))
