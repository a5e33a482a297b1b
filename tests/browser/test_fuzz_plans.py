"""Damaged plan files through the JavaScript host in Node: a WebrnnError or a normal run. More: `make fuzz-node`."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.browser.fuzz_plans import run

PLANS = 8000


def test_damaged_files_do_no_harm() -> None:
    outcomes = sum(run(0, PLANS), Counter[str]())
    assert outcomes["plans"] == PLANS
    for action in ("open", "run", "run with out", "stream", "step", "step, borrowed", "state", "load", "dispose"):
        assert outcomes[f"{action}: done"] > PLANS // 100, outcomes
    assert outcomes["flush: done"]


@pytest.mark.parametrize(
    ("weakness", "said"),
    [
        ("short", "something was written behind a block"),
        ("foreign", "TypeError: not ours"),
        ("forgetful", "has raised, and changed the stream"),
    ],
)
def test_a_host_that_is_wrong_is_seen(weakness: str, said: str) -> None:
    with pytest.raises(AssertionError, match=rf"seed \d+: exit code \d+\n(.|\n)*{said}"):
        for _ in run(0, 2000, weakness):
            pass
