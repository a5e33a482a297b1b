"""The project's own tests inside Pyodide under Node 24: all that do not need processes, threads, wasmtime, peers."""

from __future__ import annotations

import pytest

from pyodide_pkg.suite import node

PARTS = {
    "kernels": (["tests/conformance", "tests/plan", "tests/wasm_kernels", "tests/ir", "tests/onnx"], 600),
    "sessions": (
        ["tests/engine", "tests/audio", "tests/formats", "tests/models", "pyodide_pkg/suite/only_inside"],
        440,
    ),
    "passes": (["tests/passes", "tests/report", "tests/shapes", "tests/reference", "tests/test_docstrings.py"], 250),
}
"""Folders, and how many tests pass there at least: a suite that finds nothing to run is no success."""


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("part", PARTS)
def test_the_suite_passes_inside_pyodide(part: str) -> None:
    folders, at_least = PARTS[part]
    results = node.run([f"/suite/{folder}" for folder in folders])
    print(results)
    assert not results.failures, f"\n{results}"
    assert results.status == 0, f"\n{results}"
    assert results.passed >= at_least, f"\n{results}"
