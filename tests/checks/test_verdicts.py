"""What one backend refuses, all refuse: by an error of the same class that names the node."""

from __future__ import annotations

import pytest

from .cases import BAD, GOOD
from .harness import refused_alike, same_results, verdicts


@pytest.mark.parametrize("case", BAD, ids=str)
def test_bad_operands_are_refused_by_all(case):
    assert not refused_alike(verdicts(case))


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_operands_at_the_edge_are_taken_by_all(case):
    assert not same_results(verdicts(case))
