"""The ways to run a graph, by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

from webrnn.checks.graphs import NO_CONDITIONS, SizeConditions, check_graph
from webrnn.errors import BackendError
from webrnn.ir import Graph

from ..limits import Budget, Limits

KNOWN = ("native", "wasm", "pyodide", "numpy")
"""Those with builds for several instruction sets take a variant: wasm:simd, pyodide:scalar, native:sse2."""


class Program(Protocol):
    """A graph, ready to run."""

    def run(self, arguments: Sequence[Any], *, budget: Budget | None = None) -> list[Any]: ...


def make_program(
    graph: Graph,
    backend: str,
    limits: Limits,
    optimize: Callable[[Graph], Any] = lambda graph: None,
    source: Graph | None = None,
    options: frozenset[str] = frozenset(),
    say: Callable[[str], None] = lambda line: None,
    conditions: SizeConditions = NO_CONDITIONS,
    threads: int = 1,
) -> Program:
    """Prepare a graph to run on a backend. `source` is the same graph before `optimize` was run on it; `options` are
    ways to run that are switched off; `conditions` are those that `source` has."""
    if backend == "numpy":
        from ..executor.executor import Executor

        naive = "scan_buffers" in options
        tensors = [value for value in graph.inputs if not value.container]
        if source is None or all(value.shape is not None for value in tensors) or None in [t.dtype for t in tensors]:
            return Executor(graph, limits, naive, conditions)
        return ForShapes(source, optimize, lambda made: Executor(made, limits, naive))
    from ..kernels.team import least_side
    from .vm_program import Setting, VmProgram

    sides = None if "side_by_side" in options else least_side(threads)
    setting = Setting(kernels_of(backend, threads), limits, optimize, options, say, sides)
    return VmProgram(graph, setting, source, conditions)


class ForShapes:
    """Inputs of unknown rank, in numpy: what is allowed is decided for each set of shapes, as it is for plans."""

    def __init__(self, source: Graph, optimize: Callable[[Graph], Any], make: Callable[[Graph], Program]):
        self._source, self._optimize, self._make = source, optimize, make
        self._recent: tuple[Any, Program | None] = (None, None)

    def run(self, arguments: Sequence[Any], budget: Budget | None = None) -> list[Any]:
        return self.program_for(arguments).run(arguments, budget=budget)

    def program_for(self, arguments: Sequence[Any]) -> Program:
        from .vm_program import shapes_of, with_shapes

        shapes, (known, program) = shapes_of(arguments), self._recent
        if program is None or shapes != known:
            graph = with_shapes(self._source, shapes)
            check_graph(graph, may_refuse=False)
            self._optimize(graph)
            program = self._make(graph)
            self._recent = shapes, program
        return program


def kernels_of(backend: str, threads: int = 1) -> Callable[[], Any]:
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
    _shared(backend, threads)
    return lambda: _shared(backend, threads)


@cache
def _shared(spec: str, threads: int) -> Any:
    from ..kernels.loading import load

    return load(spec, threads=threads)


def fastest_backend() -> str:
    """What "auto" takes: the first of these that works here."""
    for backend in ("pyodide",) if sys.platform == "emscripten" else ("native", "wasm"):
        try:
            kernels_of(backend)
            return backend
        except BackendError:
            continue
    return "numpy"
