"""Which tests run inside Pyodide: all below tests/, but for those named here and those that need what is not there."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch

LEFT_OUT = {
    "tests/bench": "peers",
    "tests/browser": "a browser and the page",
    "tests/conformance/test_backend.py": "webrnn.onnx_backend is not in the wheel",
    "tests/engine/test_kernels.py": "native and wasmtime builds",
    "tests/examples": "processes",
    "tests/cli/test_profile.py": "profiling builds",
    "tests/counts": "profiling builds",
    "tests/profile": "profiling builds",
    "tests/pyodide_pkg": "starts Pyodide itself",
    "tests/reference/test_registry.py": "reads the schemas of onnx's C++ part",
}

EVERY: dict[str, int] = {}
"""Of long grids: one test in so many."""


def left_out(path: str) -> str | None:
    """Why a file or folder is not looked at; None if it is."""
    return LEFT_OUT.get(path)


def chosen(ids: Sequence[str]) -> set[str]:
    """The tests that are run."""
    kept, seen = set(), dict.fromkeys(EVERY, 0)
    for test in ids:
        pattern = next((pattern for pattern in EVERY if fnmatch(test, pattern)), None)
        if pattern is not None:
            seen[pattern] += 1
            if (seen[pattern] - 1) % EVERY[pattern]:
                continue
        kept.add(test)
    return kept
