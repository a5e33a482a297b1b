"""Damaged plan files through the Python host: refused with a webrnn.Error, or a normal run. More: `make fuzz-hosts`."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.plan.fuzzing import compiler
from tests.plan.host_fuzzing import run

needs_sanitizer = pytest.mark.skipif(compiler() is None, reason="no compiler here links AddressSanitizer")


@pytest.mark.parametrize(
    ("backend", "plans"), [pytest.param("native", 2000, marks=needs_sanitizer), ("wasm:simd", 2000)]
)
def test_damaged_files_do_no_harm(backend, plans):
    outcomes = sum(run(0, plans, backend), Counter[str]())
    assert outcomes["plans"] == plans
    for action in ("run", "run_again", "run_named", "run_other", "stream", "pool"):
        assert outcomes[f"{action}: done"] > plans // 200, outcomes


@needs_sanitizer
@pytest.mark.parametrize("weakness", ["unruly", "short"])
def test_a_host_that_is_wrong_is_seen(weakness):
    """Arrays that are passed although the plan uses more than they have, and memory that is a byte too short."""
    with pytest.raises(AssertionError, match=r"seed \d+: exit code \d+\n(.|\n)*AddressSanitizer: heap-buffer-overflow"):
        for _ in run(0, 3000, weakness=weakness):
            pass
