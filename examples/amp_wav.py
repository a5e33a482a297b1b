"""Plays a wav file through an amp model, block by block: .nam, or JSON of RTNeural, AIDA-X or Proteus.

    python examples/amp_wav.py guitar.wav loud.wav --amp amp.nam
    python examples/amp_wav.py - loud.wav               # a plucked string, and webrnn's own amp

The amp runs at the rate of its file; the signal is resampled to it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import webrnn
from webrnn.audio import Resampler, mono, read_wav, write_wav

OURS = Path(__file__).parents[1] / "web_demo" / "amp" / "crunch.nam"
BLOCK = 128


def plucked(rate: int, frequency: float = 110.0, seconds: float = 2.0) -> np.ndarray:
    """A string: noise in a loop that loses its high frequencies."""
    period = round(rate / frequency)
    string = np.random.default_rng(0).uniform(-1, 1, period)
    turns = []
    for _ in range(int(seconds * rate / period)):
        turns.append(string)
        string = 0.498 * (string + np.roll(string, 1))
    return np.concatenate(turns).astype(np.float32)


def play(amp: webrnn.InferenceSession, signal: np.ndarray) -> np.ndarray:
    """What comes out, a block at a time, as on a stage."""
    stream = amp.stream()
    blocks = [stream.step({"x": signal[at : at + BLOCK]})[0] for at in range(0, len(signal), BLOCK)]
    return np.concatenate(blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("input", help='a wav file, or "-" for a plucked string')
    parser.add_argument("output")
    parser.add_argument("--amp", default=OURS)
    arguments = parser.parse_args()
    amp = webrnn.InferenceSession(arguments.amp)
    rate = int(amp.about["audio"]["sample_rate"])
    if arguments.input == "-":
        signal = plucked(rate)
    else:
        samples, given = read_wav(arguments.input)
        resampler = Resampler(given, rate)
        signal = np.concatenate([resampler.push(mono(samples)), resampler.flush()])
    loud = play(amp, signal)
    write_wav(arguments.output, loud, rate)
    print(f"{len(loud) / rate:.1f} s at {rate} Hz, peak {np.abs(signal).max():.2f} -> {np.abs(loud).max():.2f}")


if __name__ == "__main__":
    main()
