"""Takes the noise out of a wav file with DTLN, block by block, as one would in a call.

    python examples/denoise_wav.py noisy.wav clean.wav
    python examples/denoise_wav.py                      # a minute of speech with noise added, and what was gained

DTLN has two models. Every 8 ms the first one gets the magnitudes of the last 32 ms and gives a mask for them; the
second one gets the masked 32 ms and gives the clean ones, which overlap and are added up. Both have LSTM states, which
their streams carry.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import webrnn
from webrnn import models
from webrnn.audio import FrameFilter, Resampler, WavReader, WavWriter, mono, read_wav

RATE, SIZE, HOP = 16000, 512, 128
BLOCK = 4096

Stage = Callable[[np.ndarray], np.ndarray]
"""One step of one of the two models: [1, 1, 257] or [1, 1, 512], and the same back."""


def stage(name: str, backend: str = "auto") -> Stage:
    session = webrnn.InferenceSession(models.fetch(name), backend=backend)
    stream = session.stream()  # finds the pair of state input and state output
    (fed,) = (value.name for value in session.get_inputs() if value.name not in stream.carry)
    return lambda array: stream.step({fed: array}, borrow=True)[0]


def denoiser(mask: Stage, refine: Stage) -> FrameFilter:
    """Samples at 16 kHz in and out, blocks of any size."""

    def denoise(frame: np.ndarray) -> np.ndarray:
        spectrum = np.fft.rfft(frame)
        masked = spectrum * mask(np.abs(spectrum)[None, None])[0, 0]
        return refine(np.fft.irfft(masked)[None, None])[0, 0]

    return FrameFilter(denoise, SIZE, HOP)


def denoise_file(source: str, target: str, denoise: FrameFilter) -> None:
    with WavReader(source) as wav, WavWriter(target, wav.rate) as out:
        down, up = Resampler(wav.rate, RATE), Resampler(RATE, wav.rate)
        for block in wav.blocks(BLOCK):
            out.write(up.push(denoise.push(down.push(mono(block)))))
        out.write(up.push(denoise.push(down.flush())))
        out.write(up.push(denoise.flush()))
        out.write(up.flush())


def denoise_samples(samples: np.ndarray, denoise: FrameFilter) -> np.ndarray:
    blocks = [denoise.push(samples[first : first + BLOCK]) for first in range(0, len(samples), BLOCK)]
    return np.concatenate([*blocks, denoise.flush()])


def with_noise(speech: np.ndarray, decibels: float, seed: int = 0) -> np.ndarray:
    """Speech in a hiss that fades with frequency, this much weaker than the speech."""
    white = np.random.default_rng(seed).standard_normal(len(speech))
    spectrum = np.fft.rfft(white) / np.sqrt(1 + np.arange(len(speech) // 2 + 1) / len(speech) * 50)
    noise = np.fft.irfft(spectrum, len(speech))
    noise *= np.sqrt(np.mean(speech**2) / np.mean(noise**2)) * 10 ** (-decibels / 20)
    return (speech + noise).astype(np.float32)


def snr(speech: np.ndarray, found: np.ndarray) -> float:
    """How much stronger the speech is than what is not speech, in decibels."""
    return float(10 * np.log10(np.sum(speech**2) / np.sum((found - speech) ** 2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("noisy", nargs="?", help="a wav file of any rate")
    parser.add_argument("clean", nargs="?", default="clean.wav", help="where to write the result (%(default)s)")
    parser.add_argument("--backend", default="auto", help="native, wasm, numpy, ... (%(default)s: the fastest)")
    arguments = parser.parse_args()
    denoise = denoiser(stage("dtln_1", arguments.backend), stage("dtln_2", arguments.backend))
    if arguments.noisy:
        denoise_file(arguments.noisy, arguments.clean, denoise)
        print(f"{arguments.clean} is written")
        return
    speech, _ = read_wav(models.fetch("speech"))
    noisy = with_noise(speech, 10)
    print(f"SNR {snr(speech, noisy):.1f} dB -> {snr(speech, denoise_samples(noisy, denoise)):.1f} dB")


if __name__ == "__main__":
    main()
