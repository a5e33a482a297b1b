"""Instructions in parts, on several threads: the same bits, and no two threads in one place."""

from __future__ import annotations

import random

import pytest

from tests.plan.corpus import samples
from tests.plan.fuzzing import THREAD, compiler, run_plans
from tests.plan.hostile import hostile
from tests.plan.test_verify import refused_by_c
from webrnn.plan.decode import decode


@pytest.mark.skipif(compiler(THREAD) is None, reason="no compiler here links ThreadSanitizer")
def test_threads_keep_out_of_each_others_way():
    plans = [(sample.name, sample.data, 1, sample.symbols) for sample in samples()]
    plans += [(sample.name, sample.data, 2, [17] * len(sample.symbols)) for sample in samples() if sample.symbols]
    outcomes = run_plans(plans, THREAD, name="team_driver")
    assert sum(outcomes.values()) == len(plans)
    assert outcomes["ran"] > len(plans) * 0.8


@pytest.mark.skipif(compiler(THREAD) is None, reason="no compiler here links ThreadSanitizer")
def test_blocks_that_no_lowering_made_do_so_too():
    """What the VM lets run at the same time is independent, whoever wrote it."""
    plans = []
    for seed in range(6000):
        data = hostile(random.Random(seed)).data
        if not refused_by_c(data, []) and any(each.name == "beside" for each in decode(data).code):
            plans.append((f"seed {seed}", data, seed, []))
    assert len(plans) > 30
    outcomes = run_plans(plans, THREAD, argument=2**30, name="team_driver")
    assert outcomes["ran"] > len(plans) * 0.5
