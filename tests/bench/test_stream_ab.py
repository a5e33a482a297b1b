"""Ticks with a switch on and off."""

from __future__ import annotations

from array import array

import pytest

from webrnn.bench import ab, pair_report, stream_ab
from webrnn.bench.models import streaming_gru
from webrnn.bench.pairs import PairEffort
from webrnn.bench.streams import StreamBench
from webrnn.errors import PlanError, UnsupportedOp

QUICK = PairEffort(0, 1)


def gru() -> StreamBench:
    return StreamBench(streaming_gru(4, 8), "auto", {"steps": 3}, {})


def test_a_stream_and_pools_on_and_off():
    switches = [ab.switch("fused_sequences"), ab.switch("prune_branches")]
    found = stream_ab.compare(switches, gru, [2], QUICK)
    assert [(row.switch, row.way, row.depth) for row in found] == [
        ("fused_sequences", "native stream", 1),
        ("fused_sequences", "native pool", 2),
        ("prune_branches", "native stream", 1),
        ("prune_branches", "native pool", 2),
    ]
    assert [row.same_program for row in found] == [False, False, True, True]
    assert all(row.off == 0 and row.seconds["on"] and row.seconds["off"] for row in found)
    text = pair_report.switches(found, switches)
    assert "same program" in text
    assert "prune_branches: the pass prune_branches" in text


def test_builds_are_named_where_they_differ():
    [stream, _] = stream_ab.compare([ab.switch("relaxed")], gru, [1], QUICK)
    assert stream.way == "wasm:relaxed stream / wasm:simd stream"
    assert not stream.same_program


def test_what_fails_without_the_pass_is_told(monkeypatch):
    add = StreamBench.add_backend

    def without(self, backend, depths, disable=()):
        if disable:
            raise UnsupportedOp("no plan")
        add(self, backend, depths)

    monkeypatch.setattr(StreamBench, "add_backend", without)
    switches = [ab.switch("hoist_sequences")]
    [row] = stream_ab.compare(switches, gru, [1], PairEffort(0, 6))
    assert row.failure == "off: UnsupportedOp: no plan"
    assert row.as_data()["verdict"] is None
    assert row.failure in pair_report.switches([row], switches)


def test_a_model_that_has_no_streams_is_an_error(monkeypatch):
    monkeypatch.setattr(StreamBench, "add_backend", lambda self, **options: (_ for _ in ()).throw(PlanError("none")))
    with pytest.raises(PlanError, match="none"):
        stream_ab.compare([ab.switch("relaxed")], gru, [1], QUICK)


def test_five_percent_are_found(monkeypatch):
    """Times are made up: without the switch ticks take 5% longer."""
    calls = []

    def pretended(self, runner, ticks):
        calls.append(ticks)
        is_off = self.runners.index(runner) >= len(self.runners) // 2
        return array("d", [1e-3 * (1.05 if is_off else 1) * (1 + 0.002 * (len(calls) % 7))] * ticks)

    monkeypatch.setattr(StreamBench, "run", pretended)
    [stream, pool] = stream_ab.compare([ab.switch("fused_sequences")], gru, [2], PairEffort(0, 12, 6))
    for row in (stream, pool):
        assert str(row.verdict).startswith("slower by ")
        assert row.as_data()["us"]["off"]["p50"] > row.as_data()["us"]["on"]["p50"]


def test_noise_gets_more_sittings(monkeypatch):
    """Times are made up: what is off is quicker in every other sitting."""
    made = []

    def noisy():
        made.append(gru())
        return made[-1]

    def pretended(self, runner, ticks):
        is_off = self.runners.index(runner) >= len(self.runners) // 2
        return array("d", [(0.8, 1.2)[len(made) % 2] if is_off else 1.0] * ticks)

    monkeypatch.setattr(StreamBench, "run", pretended)
    found = stream_ab.compare([ab.switch("fused_sequences")], noisy, [2], PairEffort(0, 6, 6))
    assert [len(row.sittings) for row in found] == [12, 12]
    assert "noise hides changes" in pair_report.switches(found, [])
