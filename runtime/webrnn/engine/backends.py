"""The ways to run a graph, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from webrnn.errors import BackendError
from webrnn.ir import Graph

from .limits import Limits


class Program(Protocol):
    """A graph, ready to run."""

    def run(self, arguments: Sequence[Any]) -> list[Any]: ...


def _numpy(graph: Graph, limits: Limits) -> Program:
    from .executor import Executor

    return Executor(graph, limits)


BACKENDS: dict[str, Callable[[Graph, Limits], Program]] = {"numpy": _numpy}
"""What makes a program, for each backend."""

PREFERENCE = ["numpy"]
"""What "auto" takes: the first of these that there is."""

KNOWN = ("native", "wasm", "wasm:relaxed", "wasm:simd", "wasm:scalar", "pyodide", "numpy")


def make_program(graph: Graph, backend: str, limits: Limits) -> Program:
    """Prepare a graph to run on a backend."""
    if backend == "auto":
        backend = next(name for name in PREFERENCE if name in BACKENDS)
    make = BACKENDS.get(backend)
    if make is None:
        reason = "is not available here" if backend in KNOWN else f"is not one of auto, {', '.join(KNOWN)}"
        raise BackendError(f"backend {backend!r} {reason}")
    return make(graph, limits)
