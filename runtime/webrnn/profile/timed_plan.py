"""A plan with its inputs in place, run many times in one call: plainly, or with everything counted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from webrnn.engine.kernels import FOLDER, Kernels, load
from webrnn.engine.plan_program import PlanProgram
from webrnn.errors import BackendError

from .counters import ROW, Counters

PROFILE_FOLDER = FOLDER / "profile"


def profiling_kernels(spec: str, folder: Path = PROFILE_FOLDER) -> Kernels:
    """The profiling build of these kernels."""
    if spec.partition(":")[0] == "pyodide":
        raise BackendError("there are no profiling builds for Pyodide: profile on native or wasm")
    return load(spec, folder)


class TimedPlan(PlanProgram):
    def __init__(self, data: bytes, kernels: Kernels, arguments: Sequence[np.ndarray]):
        super().__init__(data, kernels)
        self.bind(tuple(argument.shape for argument in arguments))
        for place, argument in zip(self.inputs, arguments, strict=True):
            place[...] = argument

    @property
    def symbols(self) -> list[int]:
        """The sizes that are bound."""
        return self.file.symbols_of([place.shape for place in self.inputs])

    def timed(self, times: int) -> float:
        """Seconds of `times` runs."""
        return self._timed("plan_repeat", times)

    def profiled(self, times: int) -> tuple[float, Counters]:
        """Seconds of `times` runs, and what was counted in them."""
        counters = self._kernels.empty((max(self.file.header["code_words"], 1), ROW), np.int64)
        elapsed = self._timed("plan_profile", counters.address, times)
        return elapsed, Counters(counters.array.copy())

    def _timed(self, function: str, *arguments: int) -> float:
        run, places = self._kernels.function(function), self._arguments
        started = time.perf_counter()
        error = run(*places, *arguments)
        elapsed = time.perf_counter() - started
        self._raise_for(error)
        return elapsed
