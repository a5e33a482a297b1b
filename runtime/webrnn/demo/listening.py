"""What the page listens to: a recording in noise, and the plans that run on the audio thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from webrnn import models
from webrnn.audio import plans, read_wav, write_wav
from webrnn.audio.plans import AudioModel
from webrnn.errors import Error
from webrnn.web.folders import CHECKOUT

from . import preview

RATE = 16000
START, SECONDS = 1.0, 14.0
NOISE_DB = 4.0
"""How much stronger the speech is than the noise."""
WEIGHTS = {"int8": "int8", "float32": "f32"}
"""Forms that the page offers, and how sessions call them; the first is the one to begin with."""
LEAST_SAVED = 0.95
"""Of the bytes of float32: a plan that is larger is not offered as a small one."""
DETECTOR_WEIGHTS = "int8"
GTCRN = CHECKOUT / "tests" / "models" / "files" / "gtcrn_simple.onnx"
"""No package of a registry has it: a checkout does."""


@dataclass(frozen=True)
class Denoiser:
    """A denoiser that the page offers."""

    name: str
    title: str
    what: str
    make: Callable[[], AudioModel]


def _gtcrn() -> AudioModel:
    if not GTCRN.exists():
        raise models.Unavailable("no package of a registry has it")
    return plans.gtcrn(GTCRN)


DENOISERS = (
    Denoiser("dtln", "DTLN", "two pairs of LSTMs, on the spectrum and on samples", plans.dtln),
    Denoiser("nsnet2", "NSNet2", "two GRUs of 400, a gain for each bin", plans.nsnet2),
    Denoiser("gtcrn", "GTCRN", "grouped GRUs, 48 thousand weights", _gtcrn),
)


def write(folder: Path, say: Callable[[str], None] = print) -> dict[str, Any]:
    """The clip, a still picture of it and of what becomes of it, and the plans."""
    folder.mkdir(parents=True, exist_ok=True)
    say("mixing speech and noise")
    speech = read_wav(models.fetch("speech"))[0]
    clip = noisy(speech[int(START * RATE) : int((START + SECONDS) * RATE)])
    write_wav(folder / "noisy.wav", clip, RATE)
    say("writing the plans of denoisers and of Silero")
    detector = plans.silero()
    detector.export(folder / "silero.rnn", DETECTOR_WEIGHTS)
    offered = [row for each in DENOISERS if (row := _denoiser(folder, each, say))]
    return {
        "clip": "bundled/noisy.wav",
        "preview": preview.write(folder / "preview.bin", clip, plans.dtln(), detector),
        "denoisers": offered,
        "detector": _file(folder / "silero.rnn"),
    }


def _denoiser(folder: Path, denoiser: Denoiser, say: Callable[[str], None]) -> dict[str, Any] | None:
    """Its plans, by the form of their weights; None where its model cannot be had."""
    try:
        model = denoiser.make()
    except Error as error:
        if denoiser is DENOISERS[0]:
            raise
        say(f"the page does without {denoiser.title}: {error}")
        return None
    found = {}
    for title, form in WEIGHTS.items():
        model.export(folder / f"{denoiser.name}_{title}.rnn", form)
        found[title] = _file(folder / f"{denoiser.name}_{title}.rnn")
    if found["int8"]["bytes"] > LEAST_SAVED * found["float32"]["bytes"]:
        del found["int8"]  # its matrices are too small to be worth it
    return {"name": denoiser.name, "title": denoiser.title, "what": denoiser.what, "plans": found}


def _file(path: Path) -> dict[str, Any]:
    return {"file": f"bundled/{path.name}", "bytes": path.stat().st_size}


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
