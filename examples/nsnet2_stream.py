"""Runs NSNet2, a denoiser that was exported for whole recordings, frame by frame.

    python examples/nsnet2_stream.py noisy.wav clean.wav
    python examples/nsnet2_stream.py                      # a minute of speech with noise added
    python examples/nsnet2_stream.py --check              # ... and the difference from one run over all of it

The model has no input for the state of its two GRUs: they start from zeros inside. carry="internal" carries them.
Its features are the logarithms of the power of frames of 20 ms, one every 10 ms; its output is a gain for each bin.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import webrnn
from webrnn import models
from webrnn.audio import SpectrumFilter, mono, read_wav, resample, stft, write_wav

RATE, SIZE, HOP = 16000, 320, 160
WINDOW = np.sqrt(np.hanning(SIZE))
"""The symmetric form, with which the model was trained."""
LEAST_GAIN = 10 ** (-80 / 20)

Gain = Callable[[np.ndarray], np.ndarray]
"""From the features [161] of the next frame to its gains."""


def features(spectra: np.ndarray) -> np.ndarray:
    return np.log10(np.maximum(spectra.real**2 + spectra.imag**2, np.float32(1e-12)))


def gain(session: webrnn.InferenceSession) -> Gain:
    stream = session.stream(carry="internal")
    return lambda frame: stream.step({"input": frame[None, None]}, borrow=True)[0][0, 0]


def denoiser(gain: Gain) -> SpectrumFilter:
    """Samples at 16 kHz in and out, blocks of any size."""
    return SpectrumFilter(lambda s: s * np.clip(gain(features(s)), LEAST_GAIN, 1), SIZE, HOP, WINDOW)


def difference(session: webrnn.InferenceSession, samples: np.ndarray) -> float:
    """The largest difference of gains between frame by frame and one run."""
    inputs = features(stft(samples, SIZE, HOP, WINDOW))
    step = gain(session)
    by_frames = np.array([step(frame).copy() for frame in inputs])
    return float(np.abs(by_frames - session.run(None, {"input": inputs[None]})[0][0]).max())


def with_noise(speech: np.ndarray) -> np.ndarray:
    noise = np.random.default_rng(0).standard_normal(len(speech)).astype(np.float32)
    return speech + noise * np.sqrt(np.mean(speech**2)) / 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("noisy", nargs="?", help="a wav file of any rate")
    parser.add_argument("clean", nargs="?", default="clean.wav", help="where to write the result (%(default)s)")
    parser.add_argument("--backend", default="auto", help="native, wasm, numpy, ... (%(default)s: the fastest)")
    parser.add_argument("--check", action="store_true", help="compare with a run over the whole recording")
    arguments = parser.parse_args()
    samples, rate = read_wav(arguments.noisy or models.fetch("speech"))
    samples = resample(mono(samples), rate, RATE)
    if not arguments.noisy:
        samples = with_noise(samples)
    session = webrnn.InferenceSession(models.fetch("nsnet2_16k"), backend=arguments.backend)
    denoise = denoiser(gain(session))
    blocks = [denoise.push(samples[first : first + 1000]) for first in range(0, len(samples), 1000)]
    write_wav(arguments.clean, np.concatenate([*blocks, denoise.flush()]), RATE)
    print(f"{arguments.clean} is written")
    if arguments.check:
        print(f"largest difference from one run over all of it: {difference(session, samples):.1e}")


if __name__ == "__main__":
    main()
