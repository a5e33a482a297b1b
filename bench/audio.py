"""`python -m bench.audio`: DTLN and Silero on speech, webrnn against onnxruntime on one thread each.

Both run the pipeline of the examples, block by block; onnxruntime gets its state fed back by hand. Each round runs each
engine once, in turns, and gives one ratio; printed are medians, and all ratios. CPU time stands beside the time on the
wall, because it shows less of what else runs on the machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import onnxruntime

from examples import denoise_wav, vad
from webrnn import models
from webrnn.audio import FrameFilter, read_wav

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


@dataclass
class Contestant:
    """Something that is run once a round, and its (wall, CPU) seconds."""

    run: Callable[[], None]
    rounds: list[tuple[float, float]] = field(default_factory=list)

    def once(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        self.run()
        self.rounds.append((time.perf_counter() - wall, time.process_time() - cpu))

    def median(self, clock: int) -> float:
        return statistics.median(times[clock] for times in self.rounds)


def compete(contestants: dict[str, Contestant], rounds: int) -> None:
    for contestant in contestants.values():
        contestant.run()
    for index in range(rounds):
        order = list(contestants.values())
        for contestant in order if index % 2 else reversed(order):
            contestant.once()


def report(contestants: dict[str, Contestant], unit: str, units: float, audio_seconds: float) -> None:
    """`units` is how much of `unit` a round has done."""
    print(f"  {'':<16}{'wall':>12}{'CPU':>12}  {unit:<16}{'x realtime (wall)':>18}")
    for name, contestant in contestants.items():
        wall, cpu = (1e6 * contestant.median(clock) / units for clock in (0, 1))
        print(f"  {name:<16}{wall:>9.1f} us{cpu:>9.1f} us{'':<18}{audio_seconds / contestant.median(0):>18.0f}")
    for clock, label in enumerate(("wall", "CPU")):
        pairs = zip(contestants[WEBRNN].rounds, contestants[PEER].rounds, strict=True)
        ratios = [ours[clock] / theirs[clock] for ours, theirs in pairs]
        text = " ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"  webrnn / onnxruntime, {label}: {statistics.median(ratios):.2f} (by round: {text})")
    print()


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
    contestants = {name: Contestant(partial(push_all, pipeline, blocks)) for name, pipeline in pipelines.items()}
    compete(contestants, rounds)
    print(f"DTLN, {len(speech) / RATE:g} s of speech in noise, blocks of {block} samples, pipeline included")
    report(contestants, "a second", len(speech) / RATE, len(speech) / RATE)


def silero(speech: np.ndarray, backend: str, rounds: int) -> None:
    chunks = list(vad.chunks([speech], RATE))
    detectors = {WEBRNN: vad.detector(backend), PEER: peer_detector()}
    contestants = {name: Contestant(partial(detect_all, detect, chunks)) for name, detect in detectors.items()}
    compete(contestants, rounds)
    print(f"Silero, {len(chunks)} chunks of 32 ms of speech")
    report(contestants, "a chunk", len(chunks), len(speech) / RATE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="native")
    parser.add_argument("--seconds", type=float, default=10, help="of speech in each round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--block", type=int, default=128, help="samples that reach DTLN at a time (%(default)s)")
    arguments = parser.parse_args()
    speech = read_wav(models.fetch("speech"))[0][: int(arguments.seconds * RATE)]
    load = f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
    print(f"backend {arguments.backend}, {arguments.rounds} rounds; {load}\n")
    dtln(speech, arguments.backend, arguments.block, arguments.rounds)
    silero(speech, arguments.backend, arguments.rounds)


if __name__ == "__main__":
    main()
