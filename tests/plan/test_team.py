"""Instructions in parts, on several threads: the same bits, and no two threads in one place."""

from __future__ import annotations

import pytest

from tests.plan.corpus import samples
from tests.plan.fuzzing import THREAD, compiler, run_plans


@pytest.mark.skipif(compiler(THREAD) is None, reason="no compiler here links ThreadSanitizer")
def test_threads_keep_out_of_each_others_way():
    plans = [(sample.name, sample.data, 1, sample.symbols) for sample in samples()]
    plans += [(sample.name, sample.data, 2, [17] * len(sample.symbols)) for sample in samples() if sample.symbols]
    outcomes = run_plans(plans, THREAD, name="team_driver")
    assert sum(outcomes.values()) == len(plans)
    assert outcomes["ran"] > len(plans) * 0.8
