"""Says when somebody speaks in a wav file, with Silero's voice activity detector, block by block.

    python examples/vad.py recording.wav
    python examples/vad.py                  # a minute of speech

The model gets 512 samples at 16 kHz with the last 64 of those before in front, and gives the probability of speech.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator

import numpy as np

import webrnn
from webrnn import models
from webrnn.audio import Framer, Resampler, WavReader, mono

RATE, CHUNK, CONTEXT = 16000, 512, 64

Detector = Callable[[np.ndarray], float]
"""The probability of speech in the next chunk, [576]."""


def detector(backend: str = "auto") -> Detector:
    session = webrnn.InferenceSession(models.fetch("silero_v6"), backend=backend, fixed={"sr": RATE})
    stream = session.stream(carry={"state": "stateN"})
    return lambda chunk: float(stream.step({"input": chunk[None]}, borrow=True)[0][0, 0])


def chunks(blocks: Iterable[np.ndarray], rate: int) -> Iterator[np.ndarray]:
    """Blocks of any size and rate as what the model takes."""
    resampler, framer = Resampler(rate, RATE), Framer(CONTEXT + CHUNK, CHUNK)
    for block in blocks:
        yield from framer.push(resampler.push(mono(block)))
    yield from framer.push(resampler.flush())
    yield from framer.flush()


def segments(
    probabilities: Iterable[float], begin: float = 0.5, end: float = 0.35, pause: int = 10, shortest: int = 8
) -> Iterator[tuple[int, int]]:
    """(first, behind the last) chunks of speech: from a probability of `begin` until `pause` chunks are below `end`.

    >>> list(segments([0.1, 0.9, 0.4, 0.9, 0.1, 0.1, 0.1], pause=2, shortest=2))
    [(1, 4)]
    """
    first = last = None
    index = -1
    for index, probability in enumerate(probabilities):
        if probability >= (begin if first is None else end):
            first, last = index if first is None else first, index
        elif first is not None and last is not None and index - last >= pause:
            if last + 1 - first >= shortest:
                yield first, last + 1
            first = None
    if first is not None and last is not None and last + 1 - first >= shortest:
        yield first, last + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wav", nargs="?", help="a wav file of any rate")
    parser.add_argument("--backend", default="auto", help="native, wasm, numpy, ... (%(default)s: the fastest)")
    arguments = parser.parse_args()
    detect = detector(arguments.backend)
    with WavReader(arguments.wav or models.fetch("speech")) as wav:
        probabilities = map(detect, chunks(wav.blocks(4096), wav.rate))
        for first, end in segments(probabilities):
            print(f"speech from {first * CHUNK / RATE:6.2f} s to {end * CHUNK / RATE:6.2f} s", flush=True)


if __name__ == "__main__":
    main()
