"""ONNX's node cases with recurrent ops, loops and branches, on the kernels."""

import pytest

from tests.conformance.suite import listed, node_cases, run_case, uses_loops

LOOPS = sorted(name for name, case in node_cases().items() if uses_loops(case))


def test_there_are_56():
    assert len(LOOPS) == 56


@pytest.mark.parametrize("name", [name for name in LOOPS if name not in listed()])
def test_case(name):
    run_case(node_cases()[name], backend="pyodide")
