"""One model on one backend: its results, and how long n runs take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np

from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.engine.session import InferenceSession

from .case import Case

clock = time.thread_time
"""What this thread computes, waiting for a processor that others use not counted. Everything that is timed in this
process runs on one thread."""
CALLS, SHORTEST = 2, 1e-9


class Timed(Protocol):
    def seconds(self, times: int) -> float:
        """How long so many runs take."""
        ...


class Runner(Timed, Protocol):
    name: str
    note: str
    """What a reader has to know of these figures."""

    def results(self) -> list[np.ndarray]: ...

    def close(self) -> None: ...


class CallRunner:
    """Anything that is called from Python."""

    def __init__(
        self,
        name: str,
        call: Callable[[], Any],
        note: str = "",
        shown: Callable[[Any], np.ndarray] = np.asarray,
    ):
        self.name, self.note, self._call, self._shown = name, note, call, shown

    def results(self) -> list[np.ndarray]:
        return [self._shown(result) for result in self._call()]

    def seconds(self, times: int) -> float:
        call = self._call
        started = clock()
        for _ in range(times):
            call()
        return clock() - started

    def close(self) -> None:
        pass


class RepeatRunner:
    """Something that runs so many times in one call."""

    def __init__(self, repeat: Callable[[int], Any]):
        self._repeat = repeat

    def seconds(self, times: int) -> float:
        started = clock()
        self._repeat(times)
        return clock() - started


class PlanRunner(RepeatRunner):
    """A plan that is run again and again inside one call. What the call costs, tens of microseconds into wasmtime, is
    measured with each sample and does not count."""

    note = ""

    def __init__(self, name: str, program: PlanProgram, feeds: dict[str, np.ndarray]):
        super().__init__(program.repeat)
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
        call = min(super(PlanRunner, self).seconds(0) for _ in range(CALLS))
        return max(super().seconds(times) - call, SHORTEST)

    def close(self) -> None:
        pass


def backend_runner(
    case: Case, backend: str, disable: Iterable[str] = (), name: str = "", weights: str | Mapping[str, str] = "f32"
) -> Runner:
    """A model on a backend of this process."""
    session = InferenceSession(case.model, backend=backend, disable=disable, fixed=case.fixed, weights=weights)
    return session_runner(session, case.feeds, name or backend)


def flat_results(results: Any) -> list[np.ndarray]:
    """The arrays of a run or a step, or those that a pool gives by stream.

    >>> flat_results({0: [np.zeros(1)], 1: [np.ones(1)]})
    [array([0.]), array([1.])]
    """
    if isinstance(results, Mapping):
        return [array for outputs in results.values() for array in flat_results(outputs)]
    return [np.asarray(result) for result in results]


def session_runner(session: InferenceSession, feeds: dict[str, np.ndarray], name: str) -> Runner:
    """A session on given inputs. What is not one plan for them is timed through Python."""
    call = partial(session.run, None, feeds)
    if session.backend == "numpy":
        return CallRunner(name, call)
    call()
    program: Any = getattr(session._program, "recent", None)
    if program is not None:
        return PlanRunner(name, program, feeds)
    return CallRunner(name, call, "not one plan: timed through Python")
