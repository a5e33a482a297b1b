"""One minute on the audio thread in real time, in three browsers; `make soak-audio` renders half an hour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from . import audio_soak
from .other_browsers import KINDS, ask_for


def test_a_minute_in_real_time(tmp_path: Path) -> None:
    """Nearly all of it is waiting. Late quanta are no matter, other bits are."""
    for name in KINDS:
        ask_for(name)
    found = audio_soak.play_everywhere(tmp_path, 60)
    assert found == {"chromium": [], "firefox": [], "webkit": []}


def test_the_sums_tell_every_bit() -> None:
    samples = np.random.default_rng(0).standard_normal((16000, 2)).astype(np.float32)
    before = audio_soak.sums(samples)
    for place, channel, bit in ((0, 0, 0), (15999, 0, 31), (0, 1, 13), (15999, 1, 22)):
        other = samples.copy()
        other.view(np.uint32)[place, channel] ^= np.uint32(1 << bit)
        assert (audio_soak.sums(other) != before).tolist() == [channel == 0, channel == 1]


REPORT: dict[str, Any] = {
    "found": [],
    "rows": [{"sums": [1, 2], "pages": 92}, {"sums": [3, 4], "pages": 92}],
    "results": [[512, 0.5], [1024, 0.25]],
}
EXPECTED = audio_soak.Expected(
    np.array([[1], [3]]), np.array([[2], [4]]), np.array([0.5, 0.25], np.float32), np.array([512, 1024, 1536])
)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, []),
        ({"found": ["denoise: ModelError"]}, ["denoise: ModelError"]),
        ({"rows": [REPORT["rows"][0], {"sums": [3, 5], "pages": 92}]}, ["out: second 1 has other bits"]),
        ({"rows": REPORT["rows"][:1]}, ["in: 1 seconds, not 2", "out: 1 seconds, not 2"]),
        (
            {"rows": [REPORT["rows"][0], {"sums": [3, 4], "pages": 93}]},
            ["the memories of WebAssembly grew: [92, 93] pages"],
        ),
        ({"results": [[512, 0.5], [1024, 0.125]]}, ["probability 1 has other bits"]),
        ({"results": [[512, 0.5], [1536, 0.25]]}, ["probabilities are not of one frame after the other"]),
        ({"results": []}, ["0 probabilities, not 2"]),
    ],
)
def test_what_differs_is_named(changed: dict[str, Any], said: list[str]) -> None:
    assert EXPECTED.differences({**REPORT, **changed}) == said


def test_a_heap_that_grows_is_named() -> None:
    assert audio_soak.Heap("rendered", [700_000, 700_100], allocated=1000, quanta=100).differences() == []
    (grown, allocated) = audio_soak.Heap("rendered", [700_000, 800_000], allocated=30_000, quanta=100).differences()
    assert grown == "the heap of the audio thread grew: [700000, 800000]"
    assert allocated == "100 quanta allocated 30000 bytes"
