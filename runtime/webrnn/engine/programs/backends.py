"""The ways to run a graph, by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

from webrnn.checks.graphs import NO_CONDITIONS, SizeConditions
from webrnn.errors import BackendError
from webrnn.ir import Graph

from ..limits import Limits

KNOWN = ("native", "wasm", "pyodide", "numpy")
"""Those with builds for several instruction sets take a variant: wasm:simd, pyodide:scalar, native:sse2."""


class Program(Protocol):
    """A graph, ready to run."""

    def run(self, arguments: Sequence[Any]) -> list[Any]: ...


def make_program(
    graph: Graph,
    backend: str,
    limits: Limits,
    optimize: Callable[[Graph], Any] = lambda graph: None,
    source: Graph | None = None,
    options: frozenset[str] = frozenset(),
    say: Callable[[str], None] = lambda line: None,
    conditions: SizeConditions = NO_CONDITIONS,
) -> Program:
    """Prepare a graph to run on a backend. `source` is the same graph before `optimize` was run on it; `options` are
    ways to run that are switched off; `conditions` are those that `source` has."""
    if backend == "numpy":
        from ..executor.executor import Executor

        return Executor(graph, limits, "scan_buffers" in options, conditions)
    from .vm_program import Setting, VmProgram

    return VmProgram(graph, Setting(kernels_of(backend), limits, optimize, options, say), source, conditions)


def kernels_of(backend: str) -> Callable[[], Any]:
    """What gives the kernels of a backend: the same ones each time if they share this process's memory, else new ones,
    because wasm memory is only released as a whole."""
    platform = backend.partition(":")[0]
    if platform not in ("native", "wasm", "pyodide"):
        names = ", ".join(KNOWN)
        raise BackendError(f"backend {backend!r} is not one of auto, {names}, or one of them with a variant: wasm:simd")
    if platform == "wasm":
        from ..kernels.loading import load

        load(backend)
        return lambda: load(backend)
    _shared(backend)
    return lambda: _shared(backend)


@cache
def _shared(spec: str) -> Any:
    from ..kernels.loading import load

    return load(spec)


def fastest_backend() -> str:
    """What "auto" takes: the first of these that works here."""
    for backend in ("pyodide",) if sys.platform == "emscripten" else ("native", "wasm"):
        try:
            kernels_of(backend)
            return backend
        except BackendError:
            continue
    return "numpy"
