"""Damaged plans under AddressSanitizer: refused, or a normal run. `make fuzz-plans` does many more."""

from __future__ import annotations

import pytest

from tests.plan.fuzzing import compiler, run

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
