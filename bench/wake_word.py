"""`python -m bench.wake_word`: a wake word of openWakeWord in one stream, beside its windows computed anew.

A step is 80 ms of sound. The stream is one plan (`webrnn.audio.plans.openwakeword`). The windowed runs call three
models as openWakeWord does: the last 1760 samples, the last 76 mel frames, the last 16 embeddings; with webrnn and with
onnxruntime. Each is timed in a loop of its own, and in turns, where each finds the caches as the others left them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np
import onnxruntime

from webrnn.audio.plans import openwakeword
from webrnn.engine.session import InferenceSession

HOP, CONTEXT, WINDOW, BANDS, EMBEDDINGS, FEATURES = 1280, 480, 76, 32, 16, 96


def by_windows(melspec, embedding, head) -> Callable[[np.ndarray], np.ndarray]:  # type: ignore[no-untyped-def]
    """A function of 1280 samples that calls three sessions, and keeps what openWakeWord keeps between calls."""
    samples = np.zeros(CONTEXT + HOP, np.float32)
    frames = np.zeros((WINDOW, BANDS), np.float32)
    embeddings = np.zeros((EMBEDDINGS, FEATURES), np.float32)
    names = [session.get_inputs()[0].name for session in (melspec, embedding, head)]

    def step(block: np.ndarray) -> np.ndarray:
        samples[:CONTEXT] = samples[HOP:]
        samples[CONTEXT:] = block
        mel = melspec.run(None, {names[0]: samples[None]})[0][0, 0] / np.float32(10) + np.float32(2)
        frames[: -len(mel)] = frames[len(mel) :]
        frames[-len(mel) :] = mel
        made = embedding.run(None, {names[1]: frames[None, :, :, None]})[0][0, 0]
        embeddings[:-1] = embeddings[1:]
        embeddings[-1:] = made
        return head.run(None, {names[2]: embeddings[None]})[0][0]

    return step


def onnxruntime_session(path: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def seconds(step: Callable[[np.ndarray], object], block: np.ndarray, times: int) -> float:
    start = perf_counter()
    for _ in range(times):
        step(block)
    return (perf_counter() - start) / times


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.wake_word", description=__doc__)
    parser.add_argument("models", nargs=3, metavar="model", help="melspectrogram, embedding and wake word: .onnx files")
    parser.add_argument("--backend", default="native")
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    paths = arguments.models
    stream = openwakeword(*paths).session(arguments.backend).stream(carry="internal")
    runners: dict[str, Callable[[np.ndarray], object]] = {
        "stream": lambda block: stream.step({"samples": block}),
        "windowed": by_windows(*(InferenceSession(path, backend=arguments.backend) for path in paths)),
        "onnxruntime, windowed": by_windows(*map(onnxruntime_session, paths)),
    }
    block = (1000 * np.random.default_rng(0).standard_normal(HOP)).astype(np.float32)
    for step in runners.values():
        seconds(step, block, 30)
    alone: dict[str, float] = {
        name: min(seconds(step, block, 30) for _ in range(arguments.rounds)) for name, step in runners.items()
    }
    turns: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(10 * arguments.rounds):
        for name, step in runners.items():
            turns[name].append(seconds(step, block, 1))
    print("| microseconds of a step | alone, best | stream ÷ it | in turns, median | stream ÷ it |")
    print("|---|---|---|---|---|")
    mixed = {name: median(times) for name, times in turns.items()}
    for name in runners:
        shares = (alone["stream"] / alone[name], mixed["stream"] / mixed[name])
        print(
            f"| {name} | {alone[name] * 1e6:.0f} | {shares[0]:.3f} | {mixed[name] * 1e6:.0f} | {shares[1]:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
