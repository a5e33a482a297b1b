"""ONNX's node tests with all passes on."""

import pytest

from tests.conformance.suite import ROUNDING, uses_loops
from tests.reference.onnx_cases import assert_same, node_cases, to_webrnn
from webrnn.engine.executor import Executor
from webrnn.errors import Error
from webrnn.onnx.reader import read_model
from webrnn.passes import ALL_PASSES, run_passes


def run_optimized(case, disable=()):
    """Whether the case ran; it does not if webrnn refuses it without passes, too."""
    try:
        graph = read_model(case.model.SerializeToString())
        arguments = [
            [to_webrnn(item) for item in inputs] + [None] * (len(graph.inputs) - len(inputs))
            for inputs, _ in case.data_sets
        ]
        Executor(graph).run(arguments[0])
    except Error:
        return False
    assert run_passes(graph, disable=disable, check=True).reached_fixpoint
    for values, (_, expected) in zip(arguments, case.data_sets, strict=True):
        for result, wanted in zip(Executor(graph).run(values), expected, strict=True):
            assert_same(result, to_webrnn(wanted), case.rtol, ROUNDING.get(case.name, case.atol))
    return True


def count(cases, disable=()):
    ran = 0
    for case in cases:
        try:
            ran += run_optimized(case, disable)
        except BaseException as error:
            error.add_note(f"in ONNX's case {case.name}")
            raise
    return ran


def test_all_passes():
    assert count(node_cases().values()) > 1750


@pytest.mark.parametrize("disabled", [step.name for step in ALL_PASSES])
def test_each_pass_off_on_cases_with_loops(disabled):
    assert count([case for case in node_cases().values() if uses_loops(case)], [disabled]) > 50
