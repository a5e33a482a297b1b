"""The tests of the engine, ONNX's cases with loops, and the real models, inside Pyodide in a worker of Chromium."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from pyodide_pkg.suite import chromium
from tests.browser.conftest import browser

__all__ = ["browser"]

FOLDERS = [
    "pyodide_pkg/suite/only_inside",
    "tests/engine/test_session_backends.py",
    "tests/plan/test_budget.py",
    "tests/engine/streams/test_stream.py",
    "tests/engine/streams/test_stream_snapshots.py",
]
LEFT_OUT = ["--deselect", "pyodide_pkg/suite/only_inside/test_heap.py"]


@pytest.mark.timeout(1500)
def test_the_suite_passes_in_a_worker_of_chromium(browser: Browser) -> None:
    results = chromium.run(browser, [*(f"/suite/{folder}" for folder in FOLDERS), *LEFT_OUT])
    print(results)
    assert not results.failures, f"\n{results}"
    assert results.status == 0, f"\n{results}"
    assert results.passed >= 300, f"\n{results}"
