"""What ratios of sittings say."""

from __future__ import annotations

import numpy as np
import pytest

from webrnn.bench.verdict import FEWEST, Verdict, verdict


def sittings(ratio, noise, seed, count=10):
    return (ratio * np.exp(np.random.default_rng(seed).normal(0, noise, count))).tolist()


def test_five_percent_are_found_and_nothing_is_not():
    for seed in range(200):
        assert verdict(sittings(1.05, 0.01, seed)).is_slower
        assert verdict(sittings(1 / 1.05, 0.01, seed)).is_faster
        same = verdict(sittings(1.0, 0.01, seed))
        assert not same.is_slower
        assert not same.is_faster
        assert str(same).startswith("the same within ")


def test_noise_makes_it_careful():
    wrong = [verdict(sittings(1.0, 0.1, seed)) for seed in range(400)]
    assert sum(each.is_slower or each.is_faster for each in wrong) <= 400 * 0.05
    assert sum(each.is_loud for each in wrong) > 380


def test_a_disturbed_sitting_does_not_matter():
    calm = [1.0, 1.001, 0.999, 1.002, 0.998, 1.0, 1.001, 0.999]
    assert str(verdict([*calm, 1.4, 0.7])) == "the same within 0.2%"
    assert verdict([*[1.05] * 8, 1.4, 0.7]).is_slower


def test_a_percent_is_nothing():
    assert not verdict([1.008] * 10).is_slower
    assert not verdict([0.992] * 10).is_faster


@pytest.mark.parametrize("count", range(1, FEWEST))
def test_few_sittings_say_nothing(count):
    found = verdict([2.0] * count)
    assert found.ratio == 2
    assert str(found) == "not known: below 6 sittings"
    assert found.as_data() == {"ratio": 2.0, "low": None, "high": None, "says": str(found)}
    assert verdict([2.0] * FEWEST).is_slower


def test_data():
    data = Verdict(1.05, 1.04, 1.06).as_data()
    assert data == {"ratio": 1.05, "low": 1.04, "high": 1.06, "says": "slower by 4.0..6.0%"}
