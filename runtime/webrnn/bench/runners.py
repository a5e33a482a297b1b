"""One model on one backend: its results, and how long n runs take."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from webrnn.engine.plan_program import PlanProgram
from webrnn.engine.session import InferenceSession

from .case import Case

clock = time.thread_time
"""What this thread computes, waiting for a processor that others use not counted. Everything that is timed in this
process runs on one thread."""
CALLS, SHORTEST = 2, 1e-9


class Runner(Protocol):
    name: str
    note: str
    """What a reader has to know of these figures."""

    def results(self) -> list[np.ndarray]: ...

    def seconds(self, times: int) -> float:
        """How long so many runs take."""
        ...

    def close(self) -> None: ...


class SessionRunner:
    """`session.run`, timed in Python."""

    note = ""

    def __init__(self, name: str, session: InferenceSession, feeds: dict[str, np.ndarray]):
        self.name, self._session, self._feeds = name, session, feeds

    def results(self) -> list[np.ndarray]:
        return self._session.run(None, self._feeds)

    def seconds(self, times: int) -> float:
        run, feeds = self._session.run, self._feeds
        started = clock()
        for _ in range(times):
            run(None, feeds)
        return clock() - started

    def close(self) -> None:
        pass


class PlanRunner:
    """A plan that is run again and again inside one call. What the call costs, tens of microseconds into wasmtime, is
    measured with each sample and does not count."""

    note = ""

    def __init__(self, name: str, program: PlanProgram, feeds: dict[str, np.ndarray]):
        self.name, self._program = name, program
        arguments = [feeds[port.name] for port in program.file.inputs]
        program.bind(tuple(argument.shape for argument in arguments))
        for place, argument in zip(program.inputs, arguments, strict=True):
            place[...] = argument

    @property
    def plan(self) -> bytes:
        return self._program.file.data

    def results(self) -> list[np.ndarray]:
        self._program.repeat(2)
        return self._program.results()

    def seconds(self, times: int) -> float:
        call = min(self._elapsed(0) for _ in range(CALLS))
        return max(self._elapsed(times) - call, SHORTEST)

    def _elapsed(self, times: int) -> float:
        started = clock()
        self._program.repeat(times)
        return clock() - started

    def close(self) -> None:
        pass


def backend_runner(case: Case, backend: str, disable: Iterable[str] = (), name: str = "") -> Runner:
    """A model on a backend of this process. What is not one plan for these inputs is timed through Python."""
    session = InferenceSession(case.model, backend=backend, disable=disable, fixed=case.fixed)
    name = name or backend
    if backend == "numpy":
        return SessionRunner(name, session, case.feeds)
    session.run(None, case.feeds)
    program: Any = getattr(session._program, "recent", None)
    if program is not None:
        return PlanRunner(name, program, case.feeds)
    runner = SessionRunner(name, session, case.feeds)
    runner.note = "not one plan: timed through Python"
    return runner
