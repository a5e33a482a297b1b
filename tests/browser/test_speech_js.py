"""Speech in JavaScript, in Node: the segments of vad-web and of silero-vad."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.audio.test_speech import random_options, random_probabilities
from tests.models.fetch import speech_path
from webrnn.audio import read_wav, segments, segments_of, speech_probabilities

from . import sound_cases
from .node import node
from .vad_web import vad_web

HERE = Path(__file__).parent
SECONDS = 20


@pytest.fixture(scope="module")
def site(host: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = sound_cases.write_site(host, tmp_path_factory.mktemp("speech") / "site")
    rng = np.random.default_rng(3)
    (folder / "segments.json").write_text(json.dumps([_random_case(rng) for _ in range(400)]))
    samples = read_wav(speech_path())[0][: 16000 * SECONDS]
    (folder / "speech.f32").write_bytes(samples.tobytes())
    (folder / "speech.json").write_text(json.dumps(segments(samples)))
    (folder / "probabilities.f32").write_bytes(speech_probabilities(samples).tobytes())
    return folder


def _random_case(rng: np.random.Generator) -> dict:
    probabilities, options = random_probabilities(rng), random_options(rng)
    length = max(0, 512 * len(probabilities) - int(rng.integers(200)))
    found = segments_of(probabilities, length=length, **options)
    if options["max_speech_duration_s"] == np.inf:
        del options["max_speech_duration_s"]
    given = {_camel_case(name): value for name, value in options.items()}
    return {"probabilities": probabilities, "options": {**given, "length": length}, "found": found}


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def test_in_node(site: Path) -> None:
    told = node("--test-reporter=tap", str(HERE / "speech.test.mjs"), f"{site.as_uri()}/", str(vad_web()))
    assert "# fail 0" in told
