"""ONNX's node tests with all passes on, with each one off, and with all off."""

from functools import cache

import pytest

from tests.conformance.suite import ROUNDING, assert_expected, uses_loops
from tests.passes.examine import assert_is_fixpoint
from tests.reference.onnx_cases import node_cases, to_webrnn
from webrnn.engine.executor.executor import Executor
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
            assert_expected(case, result, to_webrnn(wanted), ROUNDING.get(case.name, case.atol))
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


def test_cases_with_loops_are_optimized_once():
    for case in filter(uses_loops, node_cases().values()):
        try:
            graph = read_model(case.model.SerializeToString())
        except Error:
            continue
        run_passes(graph)
        assert_is_fixpoint(graph)


@cache
def loops_and_a_sample():
    """The cases with recurrent ops or sub-graphs, and every thirtieth of the others."""
    loops = [case for case in node_cases().values() if uses_loops(case)]
    others = [case for _, case in sorted(node_cases().items()) if not uses_loops(case)]
    return [*loops, *others[::30]]


@pytest.mark.parametrize("disabled", ["all", *(step.name for step in ALL_PASSES)])
def test_each_pass_off(disabled):
    assert count(loops_and_a_sample(), [disabled]) > 100
