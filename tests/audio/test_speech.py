"""Segments of speech: those of silero-vad 6.2.3, on a recording and on random probabilities."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import webrnn
from tests.audio.silero_record import RECORDED, at_rate
from tests.models.fetch import CACHE, speech_path
from webrnn.audio import AudioError, read_wav, segments, segments_of, speech_probabilities
from webrnn.models import Source, fetch_source

ROWS = json.loads(RECORDED.read_text())
UTILITIES = Source(
    "silero_utils_vad.py",
    "silero-vad==6.2.3",
    "silero_vad/utils_vad.py",
    "15d0f6b3ef9590e22ca2f146e1436f6901da356cb552d3183df4100862b333cb",
    "MIT",
)


@cache
def probabilities_at(rate: int) -> np.ndarray:
    samples, _ = read_wav(speech_path())
    return speech_probabilities(at_rate(samples, rate), rate)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['rate']}-{index}" for index, row in enumerate(ROWS)])
def test_a_minute_of_speech(row, speech):
    rate, options = row["rate"], row["options"]
    samples = at_rate(speech, rate)
    if options:
        found = segments_of(probabilities_at(rate), rate, length=len(samples), **options)
    else:
        found = segments(samples, rate)
    assert [[each["start"], each["end"]] for each in found] == row["found"]
    assert found


@pytest.fixture(scope="module")
def of_silero() -> Callable[..., Any]:
    """silero-vad's own function, out of its file: the rest of that needs torch."""
    tree = ast.parse(fetch_source(UTILITIES, CACHE).read_text())
    (function,) = (
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "get_speech_timestamps_from_probs"
    )
    scope: dict[str, Any] = {"List": list}
    exec(compile(ast.Module([function], []), "utils_vad.py", "exec"), scope)
    return scope[function.name]


def random_options(rng: np.random.Generator) -> dict[str, Any]:
    options: dict[str, Any] = {
        "threshold": float(rng.choice([0.1, 0.5, 0.9, 0.05])),
        "min_speech_duration_ms": float(rng.choice([0, 32, 250, 1000])),
        "max_speech_duration_s": float(rng.choice([0.2, 0.5, 2, np.inf])),
        "min_silence_duration_ms": float(rng.choice([0, 32, 100, 500, 3000])),
        "speech_pad_ms": float(rng.choice([0, 30, 45.5, 400])),
        "min_silence_at_max_speech": float(rng.choice([0, 32, 98, 300])),
        "use_max_poss_sil_at_max_speech": bool(rng.integers(2)),
        "return_seconds": bool(rng.integers(2)),
        "time_resolution": int(rng.integers(1, 4)),
    }
    return options | ({"neg_threshold": float(rng.choice([0.05, 0.3, 0.6]))} if rng.integers(2) else {})


def random_probabilities(rng: np.random.Generator) -> list[float]:
    """Stretches of speech and of silence, with some noise."""
    parts = [
        np.clip(rng.choice([0.02, 0.3, 0.5, 0.95]) + 0.2 * rng.standard_normal(rng.integers(1, 30)), 0, 1)
        for _ in range(rng.integers(0, 12))
    ]
    return [float(each) for part in parts for each in part]


def test_random_probabilities(of_silero):
    rng = np.random.default_rng(7)
    count = 0
    for _ in range(1500):
        probabilities, options = random_probabilities(rng), random_options(rng)
        rate = int(rng.choice([8000, 16000]))
        length = max(0, len(probabilities) * rate * 32 // 1000 - int(rng.integers(200)))
        expected = of_silero(probabilities, rate, audio_length_samples=length, **options)
        assert segments_of(probabilities, rate, length=length, **options) == expected, (probabilities, options)
        count += len(expected)
    assert count > 3000


def test_silence_and_nothing():
    assert segments(np.zeros(0, np.float32)) == []
    assert segments(np.zeros((1, 16000), np.float32)) == []
    assert segments_of([]) == []


def test_progress_and_probabilities(speech):
    told: list[float] = []
    found = segments(speech[:40000], progress_tracking_callback=told.append)
    assert told[-1] == 100
    assert told == sorted(told)
    probabilities = speech_probabilities(speech[:40000])
    assert len(probabilities) == len(told) == 79
    assert segments_of(probabilities, length=40000) == found


@pytest.mark.parametrize(
    ("error", "message", "samples", "options"),
    [
        (AudioError, "not 44100: use resample", np.zeros(100, np.float32), {"rate": 44100}),
        (AudioError, "not 12000", np.zeros(100, np.float32), {"rate": 12000}),
        (AudioError, "more channels than one: use mono", np.zeros((100, 2), np.float32), {}),
        (AudioError, "divide int16 by 32768", np.zeros(100, np.int16), {}),
        (AudioError, "sample 3 is not finite", np.array([0, 0, 0, np.nan]), {}),
        (webrnn.OptionError, "threshold=1.5: a probability", np.zeros(100, np.float32), {"threshold": 1.5}),
        (webrnn.OptionError, "a duration of -1", np.zeros(100, np.float32), {"speech_pad_ms": -1}),
    ],
)
def test_misuse(error, message, samples, options):
    with pytest.raises(error, match=message):
        segments(samples, **options)
