"""The benchmark of cold starts runs; what it times depends on the machine."""

from __future__ import annotations

from bench import cold_start


def test_a_round() -> None:
    times = cold_start.measure(peer=None, rounds=1)
    assert list(times) == ["webrnn"]
    assert times["webrnn"][0] > 0
