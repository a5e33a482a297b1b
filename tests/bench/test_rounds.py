"""Rounds, ratios and what is done about runners that fail; times are made up."""

from __future__ import annotations

import numpy as np
import pytest

from webrnn.bench.case import Case
from webrnn.bench.peaks import Bound
from webrnn.bench.rounds import SAMPLES, TURN, Effort, Result, difference, measure, prepare

ONE = [np.float32([1, 2])]


class Pretended:
    """A runner whose runs take what they are said to take."""

    note = ""

    def __init__(self, name, seconds, results=ONE, log=None):
        self.name, self._seconds, self._results = name, seconds, results
        self.log = log if log is not None else []

    def results(self):
        return self._results

    def seconds(self, times):
        self.log.append(self.name)
        return self._seconds * times

    def close(self):
        self.log.append(f"closed {self.name}")


def case():
    return Case("m", b"", {}, ONE, ["y"])


def test_each_runner_has_its_turn_in_each_round_and_the_order_rotates():
    log = []
    runners = {name: Pretended(name, 1e-4, log=log) for name in "abc"}
    model, live = prepare(case(), {name: lambda case, name=name: runners[name] for name in runners}, None)
    log.clear()
    measure(live, Effort(seconds=0, rounds=3))
    turns = log[-3 * 3 * SAMPLES :: SAMPLES]
    assert turns == [*"abc", *"bca", *"cab"]
    assert [len(result.seconds) for result in model.results] == [3, 3, 3]


def test_short_runs_are_timed_together_and_long_ones_alone():
    for seconds, times, samples in ((1e-6, 1500, SAMPLES), (2e-3, 1, SAMPLES), (4e-3, 1, 2), (0.1, 1, 1)):
        model, live = prepare(case(), {"a": lambda case, seconds=seconds: Pretended("a", seconds)}, None)
        measure(live, Effort(0, 1))
        assert (model.results[0].times, model.results[0].samples) == (times, samples)


def test_runners_that_take_long_have_fewer_turns_but_the_first():
    for first in (1e-4, 0.1):
        makers = {"a": lambda case, first=first: Pretended("a", first), "b": lambda case: Pretended("b", 1e-4)}
        makers |= {"c": lambda case: Pretended("c", 2 * TURN), "d": lambda case: Pretended("d", 99 * TURN)}
        model, live = prepare(case(), makers, None)
        measure(live, Effort(0, 8))
        assert [result.rounds for result in model.results] == [[*range(8)], [*range(8)], [0, 2, 4, 6], [0, 4]]
        measure(live, Effort(0, 2))
        assert [result.rounds[-1] for result in model.results] == [9, 9, 8, 8]
        assert model.of("c").ratio_to(model.base).median == pytest.approx(2 * TURN / first)


def test_an_interruption_while_calibrating_does_not_matter():
    class Interrupted(Pretended):
        calls = 0

        def seconds(self, times):
            self.calls += 1
            return 1e-6 * times + (0.05 if self.calls % 3 == 2 else 0)

    model, live = prepare(case(), {"a": lambda case: Interrupted("a", 0)}, None)
    measure(live, Effort(0, 5))
    assert model.results[0].times == 1500
    assert model.results[0].best == pytest.approx(1e-6)


def test_wrong_results_and_failures_are_told_and_not_timed():
    def broken(case):
        raise ValueError("no such op\nand a long story")

    makers = {
        "right": lambda case: Pretended("right", 1e-3),
        "wrong": lambda case: Pretended("wrong", 1e-3, [np.float32([1, 2.5])]),
        "other": lambda case: Pretended("other", 1e-3, [np.float32([1, np.nextafter(np.float32(2), np.float32(3))])]),
        "shape": lambda case: Pretended("shape", 1e-3, [np.float32([1])]),
        "broken": broken,
    }
    model, live = prepare(case(), makers, None)
    assert [runner.name for runner, _ in live] == ["right", "other"]
    failures = {result.runner: result.failure for result in model.results}
    assert failures["wrong"] == "wrong results: off by 5.0e-01"
    assert "off by inf" in failures["shape"]
    assert failures["broken"] == "ValueError: no such op"
    assert model.of("right").same_bits
    assert model.of("other").same_bits is False
    assert 0 < model.of("other").error < 1e-6


def test_ratios_are_those_of_the_calm_rounds():
    base = Result("a", seconds=[1.0] * 6 + [3.0] * 6)
    other = Result("b", seconds=[2.0] * 6 + [20.0] * 6)
    ratio = other.ratio_to(base)
    assert (ratio.median, ratio.spread) == (2.0, 0.0)
    assert base.ratio_to(base).median == 1.0
    assert (base.median, base.best) == (2.0, 1.0)


def test_noise_is_the_typical_distance_from_the_median():
    assert Result("a", seconds=[0.9, 1.0, 1.1]).noise == pytest.approx(0.1)
    assert Result("a", seconds=[1.0, 1.0, 50.0]).noise == 0


def test_data_of_a_result():
    base, other = Result("a", 1, 1, [1e-6] * 5, 0.0, True), Result("b", 1, 1, [3e-6] * 5, 1e-7, False)
    data = other.as_data(base, Bound(2e-6, "memory", 1, 1))
    assert data["ratio"] == {"to": "a", "median": 3.0, "spread": 0.0}
    assert data["times_bound"] == 1.5
    assert Result("c", failure="no").as_data(base, None) == {"runner": "c", "failure": "no", "error": None}


def test_differences():
    nan = np.float32([np.nan, np.inf])
    assert difference([nan], [nan]) == 0
    assert difference([np.array([True])], [np.array([False])]) == 1
    assert difference([], [nan]) == np.inf


@pytest.mark.parametrize(
    ("seconds", "calm", "is_busy"),
    [
        ([1.0] * 9, 1.0, False),
        ([1.0, 1.1, 1.05, 9.0, 1.0], 1.0, False),
        ([1.0] * 3 + [2.0] * 20, 1.0, True),
        ([1.0] + [28.0] * 8, 28.0, True),
        ([3.0], 3.0, False),
    ],
)
def test_the_calm_rounds_and_whether_the_machine_was_busy(seconds, calm, is_busy):
    result = Result("a", seconds=seconds)
    assert (result.calm, result.is_busy) == (calm, is_busy)
