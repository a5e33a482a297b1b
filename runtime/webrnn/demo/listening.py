"""What the page listens to: a recording in noise, and the plans that run on the audio thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from webrnn import models
from webrnn.audio import plans, read_wav, write_wav

RATE = 16000
START, SECONDS = 1.0, 14.0
NOISE_DB = 4.0
"""How much stronger the speech is than the noise."""
WEIGHTS = "int16"
"""Of the plans: half of float32's download, and nothing that can be heard or seen is lost (docs/small-weights.md)."""


def write(folder: Path, say: Callable[[str], None] = print, weights: str = WEIGHTS) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    say("mixing speech and noise")
    speech = read_wav(models.fetch("speech"))[0]
    part = speech[int(START * RATE) : int((START + SECONDS) * RATE)]
    write_wav(folder / "noisy.wav", noisy(part), RATE)
    say("writing the plans of DTLN and Silero")
    files = {"dtln.rnn": plans.dtln(), "silero.rnn": plans.silero()}
    for name, model in files.items():
        model.export(folder / name, weights)
    return {
        "clip": "bundled/noisy.wav",
        "denoiser": "bundled/dtln.rnn",
        "detector": "bundled/silero.rnn",
        "weights": weights,
        "bytes": sum((folder / name).stat().st_size for name in files),
    }


def noisy(speech: np.ndarray, decibels: float = NOISE_DB, seed: int = 3) -> np.ndarray:
    """Speech in a room with a fan, a hum of the mains and somebody who types."""
    rng = np.random.default_rng(seed)
    time = np.arange(len(speech)) / RATE
    spectrum = np.fft.rfft(rng.standard_normal(len(speech)))
    frequencies = np.fft.rfftfreq(len(speech), 1 / RATE)
    fan = np.fft.irfft(spectrum / np.sqrt(1 + (frequencies / 300) ** 1.6), len(speech))
    fan *= 1 + 0.25 * np.sin(2 * np.pi * 0.4 * time)
    hum = sum(np.sin(2 * np.pi * 100 * k * time) / k for k in (1, 2, 3, 5))
    noise = fan / fan.std() + 0.25 * hum + 2.5 * _typing(len(speech), rng)
    noise *= speech.std() / noise.std() * 10 ** (-decibels / 20)
    mixed = speech + noise
    return (mixed * min(1.0, 0.9 / np.abs(mixed).max())).astype(np.float32)


def _typing(length: int, rng: np.random.Generator) -> np.ndarray:
    """Clicks of a keyboard: short bursts of noise, irregular, with pauses."""
    click = rng.standard_normal(RATE // 50) * np.exp(-np.arange(RATE // 50) / (RATE / 400))
    track = np.zeros(length)
    at = 0.0
    while True:
        at += rng.uniform(0.09, 0.28) + (rng.uniform(0.8, 1.8) if rng.random() < 0.1 else 0)
        first = int(at * RATE)
        if first + len(click) > length:
            return track
        track[first : first + len(click)] += click * rng.uniform(0.4, 1)
