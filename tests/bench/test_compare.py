"""Figures beside earlier ones: what counts as a change."""

from __future__ import annotations

import json

import pytest

from webrnn.bench import compare
from webrnn.errors import OptionError


def figures(median, noise, runner="native"):
    row = {"runner": runner, "median_us": median, "noise": noise}
    return {"kind": compare.KIND, "format": compare.FORMAT, "date": "today",
            "models": [{"model": "m", "results": [row, {"runner": "tract", "failure": "no"}]}]}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "noise", "verdict"),
    [
        (100, 104, 0.0, ""),
        (100, 106, 0.0, "slower"),
        (100, 94, 0.0, "faster"),
        (100, 96, 0.0, ""),
        (100, 114, 0.05, ""),
        (100, 116, 0.05, "slower"),
        (100, 80, 0.1, ""),
        (100, 76, 0.1, "faster"),
    ],
)
def test_a_change_is_more_than_five_percent_and_three_times_the_noise(old, new, noise, verdict):
    [change] = compare.changes(figures(new, 0.0), figures(old, noise))
    assert change.verdict == verdict
    [change] = compare.changes(figures(new, noise), figures(old, 0.0))
    assert change.verdict == verdict
    text = compare.text([change], figures(old, 0.0))
    assert f"{int(verdict == 'slower')} slower, {int(verdict == 'faster')} faster, of 1" in text


def test_only_what_both_have_is_compared():
    assert compare.changes(figures(1, 0, "wasm:simd"), figures(1, 0)) == []


@pytest.mark.parametrize("content", ["", "{}", json.dumps({**figures(1, 0), "format": 0}), '{"kind": 1, "format": 1}'])
def test_files_that_are_something_else(content, tmp_path):
    (tmp_path / "old.json").write_text(content)
    with pytest.raises(OptionError, match="figures of"):
        compare.load(tmp_path / "old.json")
