import pytest

from tests.backends import KERNELS
from tests.conformance.suite import listed, node_cases, refusals, uses_loops


def test_refused_cases_are_exactly_the_listed_ones():
    assert refusals() == listed(), "run `python -m tests.conformance.suite` and read the difference"


def test_without_passes_the_same_cases_are_refused():
    assert refusals(disable=["all"]).keys() == listed().keys()


@pytest.mark.parametrize("backend", KERNELS)
def test_on_kernels_the_same_cases_are_refused(backend):
    assert refusals(backend=backend).keys() == listed().keys()


def test_only_bfloat16_ranges_are_refused_of_the_cases_with_loops():
    cases = node_cases()
    with_loops = {name for name, case in cases.items() if uses_loops(case)}
    assert len(with_loops) == 56
    assert all(name.startswith("test_range_bfloat16") for name in with_loops & listed().keys())


def test_most_of_the_suite_passes():
    assert len(node_cases()) - len(listed()) >= 1150
