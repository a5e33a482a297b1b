"""What silero-vad finds in a minute of speech, with several sets of parameters: `make silero`.

It runs in an environment with torch and silero-vad, and without webrnn; tests compare with the file that it writes.
"""

from __future__ import annotations

import argparse
import json
import wave
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).parent / "silero_segments.json"

SETS: list[tuple[int, dict[str, Any]]] = [
    (16000, {}),
    (16000, {"threshold": 0.3}),
    (16000, {"threshold": 0.8, "neg_threshold": 0.2}),
    (16000, {"threshold": 0.1}),
    (16000, {"min_silence_duration_ms": 500, "speech_pad_ms": 200}),
    (16000, {"min_silence_duration_ms": 0, "speech_pad_ms": 0, "min_speech_duration_ms": 0}),
    (16000, {"min_speech_duration_ms": 1500}),
    (16000, {"max_speech_duration_s": 3, "min_silence_duration_ms": 800}),
    (16000, {"max_speech_duration_s": 3, "min_silence_duration_ms": 800, "use_max_poss_sil_at_max_speech": False}),
    (16000, {"max_speech_duration_s": 1.5, "min_silence_at_max_speech": 20, "min_silence_duration_ms": 2000}),
    (
        16000,
        {
            "max_speech_duration_s": 5,
            "min_silence_at_max_speech": 200,
            "min_silence_duration_ms": 2000,
            "use_max_poss_sil_at_max_speech": False,
        },
    ),
    (16000, {"return_seconds": True}),
    (16000, {"return_seconds": True, "time_resolution": 3, "speech_pad_ms": 45.5}),
    (8000, {}),
    (8000, {"threshold": 0.7, "max_speech_duration_s": 4}),
    (48000, {}),
]
"""A rate and what else is given."""


def at_rate(samples: np.ndarray, rate: int) -> np.ndarray:
    """Of samples at 16 kHz; the way does not matter, as long as it is the same for all."""
    return np.repeat(samples, rate // 16000) if rate > 16000 else samples[:: 16000 // rate]


def speech(path: str) -> np.ndarray:
    with wave.open(path) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16000, 1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / np.float32(32768)


def main() -> None:
    import torch
    from silero_vad import get_speech_timestamps, load_silero_vad

    parser = argparse.ArgumentParser(prog="python -m tests.audio.silero_record", description=__doc__)
    parser.add_argument("speech", help="a wav file")
    parser.add_argument("-o", "--output", default=str(RECORDED))
    arguments = parser.parse_args()
    samples, model = speech(arguments.speech), load_silero_vad()
    rows = []
    for rate, options in SETS:
        given = torch.from_numpy(np.ascontiguousarray(at_rate(samples, rate)))
        with torch.no_grad():
            found = get_speech_timestamps(given, model, sampling_rate=rate, **options)
        rows.append(json.dumps({"rate": rate, "options": options, "found": [[s["start"], s["end"]] for s in found]}))
    Path(arguments.output).write_text("[\n" + ",\n".join(rows) + "\n]\n")


if __name__ == "__main__":
    main()
