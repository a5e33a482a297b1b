"""The project's own tests inside Pyodide under Node 24: all that do not need processes, threads, wasmtime, peers."""

from __future__ import annotations

import pytest

from pyodide_pkg.suite import node
from pyodide_pkg.suite.parts import PARTS


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("part", PARTS)
def test_the_suite_passes_inside_pyodide(part: str) -> None:
    folders, at_least = PARTS[part]
    results = node.run([f"/suite/{folder}" for folder in folders])
    print(results)
    assert not results.failures, f"\n{results}"
    assert results.status == 0, f"\n{results}"
    assert results.passed >= at_least, f"\n{results}"
