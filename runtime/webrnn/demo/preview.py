"""What the page shows before anybody presses play: spectra and waveforms of the clip, as it is and denoised, and where
somebody speaks. A few kilobytes, computed by the models themselves, so that no audio has to run for it.

The file holds, one byte each: levels [columns, rows] and highs [columns] of the clip, the same of the denoised clip,
then the probabilities of speech.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from webrnn.audio.plans import AudioModel

RATE = 16000
SECONDS = 10
COLUMNS, ROWS = 320, 96
FFT = 512
LOWEST, HIGHEST = -95.0, -25.0
"""Decibels of the first and the last level, as the page's AnalyserNodes have them."""


def write(path: Path, clip: np.ndarray, denoiser: AudioModel, detector: AudioModel) -> dict[str, Any]:
    """Write the file; returns what the page has to know of it."""
    seen = clip[: SECONDS * RATE]
    filtered = denoiser.filter()
    clean = np.concatenate([filtered.push(seen), filtered.flush()])
    probabilities = speech(seen, detector)
    parts = [part for signal in (seen, clean) for part in (levels(signal), highs(signal))]
    path.write_bytes(b"".join(part.tobytes() for part in (*parts, probabilities)))
    numbers = {"columns": COLUMNS, "rows": ROWS, "seconds": SECONDS, "probabilities": len(probabilities)}
    return {"file": f"bundled/{path.name}", **numbers}


def levels(signal: np.ndarray) -> np.ndarray:
    """Spectra as bytes [columns, rows], from low to high frequencies: what an AnalyserNode of 512 samples gives."""
    starts = np.linspace(0, len(signal) - FFT, COLUMNS).astype(int)
    frames = np.stack([signal[start : start + FFT] for start in starts]) * np.blackman(FFT)
    magnitudes = np.abs(np.fft.rfft(frames))[:, : FFT // 2] / FFT
    decibels = 20 * np.log10(np.maximum(magnitudes, 1e-9))
    scaled = np.clip(255 * (decibels - LOWEST) / (HIGHEST - LOWEST), 0, 255)
    return scaled[:, np.arange(ROWS) * (FFT // 2) // ROWS].astype(np.uint8)


def highs(signal: np.ndarray) -> np.ndarray:
    """The largest sample around each column, as bytes."""
    parts = np.array_split(np.abs(signal), COLUMNS)
    return np.array([255 * min(float(part.max()), 1.0) for part in parts]).astype(np.uint8)


def speech(signal: np.ndarray, detector: AudioModel) -> np.ndarray:
    """The probability of speech in each frame of the detector, as bytes."""
    step, size = detector.frames(), detector.audio["hop"]
    found = [float(step(signal[at : at + size]).item()) for at in range(0, len(signal) - size + 1, size)]
    return (255 * np.array(found)).astype(np.uint8)
