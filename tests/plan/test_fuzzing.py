"""Damaged plans under AddressSanitizer: refused, or a normal run. `make fuzz-plans` does many more."""

from __future__ import annotations

import pytest

from tests.plan.fuzzing import compiler, run, run_plans
from tests.plan.handmade import I64, Handmade
from webrnn.plan.opcodes import ERRORS

PLANS = 3000


@pytest.mark.skipif(compiler() is None, reason="no compiler here links AddressSanitizer")
def test_damaged_plans_do_no_harm():
    outcomes = run(range(PLANS))
    assert sum(outcomes.values()) == PLANS
    assert outcomes["ran"] > PLANS // 10
    assert sum(count for name, count in outcomes.items() if name.startswith("refused")) > PLANS // 10


@pytest.mark.skipif(compiler() is None, reason="no compiler here links AddressSanitizer")
def test_one_byte_too_few_is_seen():
    with pytest.raises(AssertionError, match=r"seed \d+: exit code \d+\n(.|\n)*heap-buffer-overflow"):
        run(range(100), missing_bytes=1)


@pytest.mark.skipif(compiler() is None, reason="no compiler here links AddressSanitizer")
@pytest.mark.parametrize(
    ("n", "outcome"),
    [(5, ""), (100_000, ""), (20_000_000, "more memory is needed"), (400_000_000, "the memory is too small")],
)
def test_a_plan_that_gets_no_more_memory_is_run_again(n, outcome):
    """It has room; it grows; it asks for more than the driver has, and for more than there can be. Buffers that lie
    behind those that grow stay inside the arena."""
    plan = Handmade()
    late = plan.late()
    large = [plan.late_tensor(late, 1, slot) for slot in (0, 1)]
    number = plan.arena([1], I64)
    plan.emit("sizes", number, plan.number(n))
    plan.emit("let", late, number, 0)
    for tensor in large:
        plan.fill(tensor, 7.0, checked=True)
    outcomes = +run_plans([("", plan.data(), 0, ())])
    assert list(outcomes) == [f"failed_{ERRORS.index(outcome)}" if outcome else "ran"]
