"""`python -m bench.audio`: DTLN and Silero on speech, webrnn against onnxruntime on one thread each.

Both run the pipeline of the examples, block by block; onnxruntime gets its state fed back by hand. They are timed in
interleaved rounds, as `webrnn bench` does it; times are medians of the rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import onnxruntime

from examples import denoise_wav, vad
from webrnn import models
from webrnn.audio import FrameFilter, read_wav
from webrnn.bench import machine
from webrnn.bench.rounds import Result, race
from webrnn.bench.runners import CallRunner

RATE = 16000
WEBRNN, PEER, ALONE = "webrnn", "onnxruntime", "pipeline alone"


def peer_session(name: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(models.fetch(name), options, providers=["CPUExecutionProvider"])


def peer_stage(name: str) -> denoise_wav.Stage:
    """A stage of DTLN on onnxruntime."""
    session = peer_session(name)
    fed, carried = session.get_inputs()
    state = np.zeros(carried.shape, np.float32)

    def step(array: np.ndarray) -> np.ndarray:
        nonlocal state
        output, state = session.run(None, {fed.name: array, carried.name: state})
        return output

    return step


def peer_detector() -> vad.Detector:
    """Silero on onnxruntime."""
    session, state, rate = peer_session("silero_v6"), np.zeros((2, 1, 128), np.float32), np.array(RATE)

    def detect(chunk: np.ndarray) -> float:
        nonlocal state
        output, state = session.run(None, {"input": chunk[None], "state": state, "sr": rate})
        return float(output[0, 0])

    return detect


def report(results: Sequence[Result], unit: str, units: float, audio_seconds: float) -> None:
    """`units` is how much of `unit` a run has done."""
    print(f"  {'':<16}{'CPU':>12}  {unit:<16}{'x realtime':>18}")
    for result in results:
        us = 1e6 * result.median / units
        print(f"  {result.runner:<16}{us:>9.1f} us{'':<18}{audio_seconds / result.median:>18.0f}")
    ratio = results[0].ratio_to(results[1])
    print(f"  {WEBRNN} / {PEER}: {ratio.median:.2f} (±{ratio.spread:.0%})\n")


def push_all(denoise: FrameFilter, blocks: Iterable[np.ndarray]) -> None:
    for block in blocks:
        denoise.push(block)
    denoise.flush()


def detect_all(detect: vad.Detector, chunks: Iterable[np.ndarray]) -> None:
    for chunk in chunks:
        detect(chunk)


def dtln(speech: np.ndarray, backend: str, block: int, rounds: int) -> None:
    noisy = denoise_wav.with_noise(speech, 10)
    blocks = [noisy[first : first + block] for first in range(0, len(noisy), block)]
    mask = np.ones((1, 1, 257), np.float32)
    pipelines = {
        WEBRNN: denoise_wav.denoiser(denoise_wav.stage("dtln_1", backend), denoise_wav.stage("dtln_2", backend)),
        PEER: denoise_wav.denoiser(peer_stage("dtln_1"), peer_stage("dtln_2")),
        ALONE: denoise_wav.denoiser(lambda _: mask, lambda frame: frame),
    }
    calls = {name: CallRunner(name, partial(push_all, pipeline, blocks)) for name, pipeline in pipelines.items()}
    results = race(calls, rounds)
    print(f"DTLN, {len(speech) / RATE:g} s of speech in noise, blocks of {block} samples, pipeline included")
    report(results, "a second", len(speech) / RATE, len(speech) / RATE)


def silero(speech: np.ndarray, backend: str, rounds: int) -> None:
    chunks = list(vad.chunks([speech], RATE))
    detectors = {WEBRNN: vad.detector(backend), PEER: peer_detector()}
    calls = {name: CallRunner(name, partial(detect_all, detect, chunks)) for name, detect in detectors.items()}
    results = race(calls, rounds)
    print(f"Silero, {len(chunks)} chunks of 32 ms of speech")
    report(results, "a chunk", len(chunks), len(speech) / RATE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="native")
    parser.add_argument("--seconds", type=float, default=10, help="of speech in each round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--block", type=int, default=128, help="samples that reach DTLN at a time (%(default)s)")
    arguments = parser.parse_args()
    speech = read_wav(models.fetch("speech"))[0][: int(arguments.seconds * RATE)]
    print(f"backend {arguments.backend}, {arguments.rounds} rounds; load {machine.load()}\n")
    dtln(speech, arguments.backend, arguments.block, arguments.rounds)
    silero(speech, arguments.backend, arguments.rounds)


if __name__ == "__main__":
    main()
