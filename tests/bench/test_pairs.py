"""Two sides in turn; times are made up."""

from __future__ import annotations

import pytest

from webrnn.bench.pairs import BLOCK, FEWEST_CALLS, MOST_CALLS, PairEffort, Sitting, calls_of_a_block, sit


class Side:
    def __init__(self, name, seconds, log):
        self.name, self._seconds, self._log = name, seconds, log

    def block(self, calls):
        self._log.append((self.name, calls))
        return self._seconds(len(self._log)) if callable(self._seconds) else self._seconds


def test_blocks_alternate():
    log = []
    found = sit(Side("a", 2e-3, log), Side("b", 3e-3, log), PairEffort(0, 2), clock=lambda: 0.0)
    assert "".join(name for name, _ in log[-8:]) == "abbabaab"
    assert {calls for _, calls in log[-8:]} == {FEWEST_CALLS}
    assert found.ratio == pytest.approx(1.5)
    assert found.as_data() == {"ratio": 1.5, "base_us": [2000.0] * 2, "other_us": [3000.0] * 2}


def test_rounds_are_made_until_the_time_is_up():
    now = iter(range(100))
    found = sit(Side("a", 1, []), Side("b", 1, []), PairEffort(10, 2), clock=lambda: next(now))
    assert len(found.base) == len(found.other) == 11


@pytest.mark.parametrize(
    ("seconds", "calls"), [(1e-9, MOST_CALLS), (1e-4, BLOCK / 1e-4), (8e-3, FEWEST_CALLS), (0.1, 1), (0.0, MOST_CALLS)]
)
def test_calls_fill_a_block(seconds, calls):
    assert calls_of_a_block(Side("a", seconds / 2, []), Side("b", seconds, [])) == pytest.approx(calls, abs=1)


def test_a_drift_falls_on_both_sides():
    log = []
    drifting = lambda number: 1e-3 * (1 + 0.01 * number)  # noqa: E731
    found = sit(Side("a", drifting, log), Side("b", drifting, log), PairEffort(0, 4), clock=lambda: 0.0)
    assert found.ratio == pytest.approx(1.0, abs=1e-3)


def test_calm_rounds_count():
    assert Sitting([1.0, 1.0, 5.0, 1.0], [1.1, 1.1, 1.0, 9.0]).ratio == pytest.approx(1.1)


def test_parts_of_an_effort():
    assert PairEffort(3.0, 20, 10).part() == PairEffort(0.3, 2, 10)
    assert PairEffort(3.0, 2, 10).n_sittings == 2
