"""The tests inside Pyodide in parts, each of which is one process."""

from __future__ import annotations

PARTS = {
    "kernels": (["tests/conformance", "tests/plan", "tests/wasm_kernels", "tests/ir", "tests/onnx"], 600),
    "sessions": (
        ["tests/engine", "tests/audio", "tests/formats", "tests/models", "pyodide_pkg/suite/only_inside"],
        440,
    ),
    "passes": (["tests/passes", "tests/report", "tests/shapes", "tests/reference", "tests/test_docstrings.py"], 250),
}
"""Folders, and how many tests pass there at least: a suite that finds nothing to run is no success."""
