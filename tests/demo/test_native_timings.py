"""How long benchmark models take natively, as the page shows it: on a busy machine, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from webrnn.bench.rounds import Effort
from webrnn.demo import native_timings
from webrnn.engine.kernels import native


class Disturbed:
    """A run takes a millisecond; what else the machine does makes it longer, now and then or always."""

    def __init__(self, *factors: float):
        self.factors, self.calls = factors, 0

    def seconds(self, times: int) -> float:
        self.calls += 1
        return 1e-3 * times * self.factors[self.calls % len(self.factors)]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are counted, not seconds."""
    monkeypatch.setattr(native_timings, "MOST_SITTINGS", 5)


def rounds(seconds: float = 1e-9) -> Effort:
    return Effort(seconds, rounds=9)


def test_the_calm_rounds_count() -> None:
    calm, disturbed = native_timings.timed([Disturbed(1), Disturbed(*[1, 1, 1, 1, 1, 45, 45])], rounds())
    assert calm.calm == disturbed.calm == pytest.approx(1e-3)
    assert (calm.is_busy, disturbed.is_busy) == (False, False)


def test_what_was_disturbed_has_more_sittings_and_says_so() -> None:
    calm, busy = native_timings.timed([Disturbed(1), Disturbed(*([30] * 5), 1)], rounds())
    assert busy.is_busy
    assert len(calm.seconds) == 9
    assert len(busy.seconds) == 5 * 3


def test_few_rounds_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_timings, "MODELS", ("gru_128_t1",))
    said: list[str] = []
    native_timings.write(tmp_path, said.append, rounds=2)
    timings = json.loads((tmp_path / "timings.json").read_text())
    (row,) = timings["models"]
    assert (timings["rounds"], timings["native"]) == (2, native.available()[0])
    assert row["native"][timings["native"]] > 0
    assert isinstance(row["busy"], bool)
    assert set(row["digests"]) == {*native.available()}
    assert said[0] == "timing 1 models natively"
    assert len(said) == 1 + row["busy"]
