"""`make soak`: a million steps of one stream. Memory stays, the state stays finite, and no tick stands out.

Prints figures and fails when one of them is out of bounds:
- resident memory after two tenths and at the end: at most 1 MB apart;
- Python's memory over the steps that tracemalloc watches: at most 4 KB more;
- the state is finite, and the stream gives what a stream that starts from its last snapshot gives;
- natively, the p99.9 of a tick is below 3 times the median, or what stands out is no more than in plain Python work of
  the same length that is timed in turn with the ticks: interrupts, and other processes, take what they take.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import webrnn
from webrnn.bench.models import streaming_gru
from webrnn.bench.streams import percentiles, time_ticks
from webrnn.engine.streams.stream import Stream

BLOCKS = 10
MOST_RESIDENT = 1 << 20
MOST_TRACED = 4096
MOST_RATIO = 3.0
MOST_BESIDE_PYTHON = 1.5


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def soak(model: str | bytes, backend: str, steps: int, carry: str) -> list[str]:
    """The bounds that were broken."""
    session = webrnn.InferenceSession(model, backend=backend)
    stream = session.stream(carry)
    rng = np.random.default_rng(0)
    fed = [value for value in session.inputs if value.name not in stream.carry]
    shapes = {value.name: [dim if isinstance(dim, int) else 1 for dim in value.shape or ()] for value in fed}
    frames = [
        {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()} for _ in range(64)
    ]
    for frame in frames:
        stream.step(frame)
    n = steps // BLOCKS
    memory: list[int] = []
    work = _plain_work(stream.step, frames)
    all_seconds = np.ones((2, n * BLOCKS))  # written, so that its memory is there from the start
    gc.collect()
    for block in range(BLOCKS):
        times = time_ticks([stream.step, lambda frame: sum(work)], frames, n)
        for whole, part in zip(all_seconds, times, strict=True):
            whole[block * n : (block + 1) * n] = part
        memory.append(resident_bytes())
        print(f"{(block + 1) * n:9,} steps  {memory[-1] / 1e6:7.1f} MB  {_Figures(times[0]).text}")
    broken = []
    tick, python = map(_Figures, all_seconds)
    print(f"ticks:             {tick.text}")
    print(f"plain Python work: {python.text}")
    is_worse_than_python = tick.excess > MOST_BESIDE_PYTHON * python.excess
    if session.backend.startswith("native") and tick.ratio >= MOST_RATIO and is_worse_than_python:
        broken.append(f"p99.9 is {tick.ratio:.2f} times the median")
    grown = memory[-1] - memory[1]  # the first block is followed by the first figures, which take memory, too
    print(f"resident memory: {grown:+,} bytes from step {2 * n:,} on")
    if grown > MOST_RESIDENT:
        broken.append(f"resident memory grew by {grown} bytes")
    traced = _traced_growth(stream, frames, min(n, 50_000))
    print(f"Python's memory: {traced:+,} bytes in {min(n, 50_000):,} steps")
    if traced > MOST_TRACED:
        broken.append(f"Python's memory grew by {traced} bytes")
    if not all(np.isfinite(state).all() for state in stream.state.values()):
        broken.append("the state is not finite")
    twin = session.stream(carry)
    twin.load(stream.state)
    ours, theirs = stream.step(frames[0]), twin.step(frames[0])
    if any(a.tobytes() != b.tobytes() for a, b in zip(ours, theirs, strict=True)):
        broken.append("a stream from the last snapshot gives something else")
    return broken


class _Figures:
    """In microseconds."""

    def __init__(self, seconds: Sequence[float] | np.ndarray):
        self.median, self.p99, self.p999, self.worst = percentiles(1e6 * np.asarray(seconds))
        self.excess, self.ratio = self.p999 - self.median, self.p999 / self.median

    @property
    def text(self) -> str:
        times = f"median {self.median:.2f} us, p99 {self.p99:.2f}, p99.9 {self.p999:.2f} ({self.ratio:.2f} x)"
        return f"{times}, worst {self.worst:.0f}"


def _plain_work(step: Callable[[Any], Any], frames: Sequence[Any]) -> range:
    """A range that takes as long to add up as a step takes."""
    numbers = range(10_000)
    steps, sums = time_ticks([step, lambda frame: sum(numbers)], frames, len(frames))
    return range(int(len(numbers) * min(steps) / min(sums)))


def _traced_growth(stream: Stream, frames: list[dict[str, np.ndarray]], steps: int) -> int:
    tracemalloc.start()
    try:
        for _ in range(100):
            stream.step(frames[0])
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for index in range(steps):
            stream.step(frames[index & 63])
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", help="default: a GRU of 128, frames of 64")
    parser.add_argument("--backend", default="native")
    parser.add_argument("--carry", default="auto")
    parser.add_argument("--steps", type=int, default=1_000_000)
    arguments = parser.parse_args()
    broken = soak(arguments.model or streaming_gru(), arguments.backend, arguments.steps, arguments.carry)
    for line in broken:
        print(f"FAILED: {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
