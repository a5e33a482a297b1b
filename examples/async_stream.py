"""Streams in asyncio: `async for` results, while the event loop stays free for everything else.

    python examples/async_stream.py             # 10 s of speech as from a microphone, in real time
    python examples/async_stream.py --speed 20

A step is a call into compiled code that holds no lock of Python's, so a thread of its own is all that is needed. Each
stream has one, which keeps its steps in order.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

import webrnn
from webrnn import models
from webrnn.audio import Framer, WavReader

RATE, CHUNK, CONTEXT = 16000, 512, 64

In = TypeVar("In")
Out = TypeVar("Out")


async def steps(step: Callable[[In], Out], frames: AsyncIterable[In]) -> AsyncIterator[Out]:
    """What `step` gives for each frame, one after the other, in a thread of its own."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(max_workers=1) as thread:
        async for frame in frames:
            yield await loop.run_in_executor(thread, step, frame)


async def microphone(path: str, seconds: float, speed: float) -> AsyncIterator[np.ndarray]:
    """A wav file at 16 kHz as what the detector takes, at the pace at which a microphone would give it."""
    framer = Framer(CONTEXT + CHUNK, CHUNK)
    with WavReader(path) as wav:
        for block in wav.blocks(160):
            await asyncio.sleep(len(block) / RATE / speed)
            for chunk in framer.push(block):
                yield chunk
            seconds -= len(block) / RATE
            if seconds <= 0:
                return


async def pulse(beats: list[float], period: float = 0.005) -> None:
    """Measures by how much the event loop is late: what any other task in it would notice."""
    loop = asyncio.get_running_loop()
    while True:
        expected = loop.time() + period
        await asyncio.sleep(period)
        beats.append(loop.time() - expected)


async def listen(backend: str, seconds: float, speed: float) -> None:
    session = webrnn.InferenceSession(models.fetch("silero_v6"), backend=backend, fixed={"sr": RATE})
    stream = session.stream(carry={"state": "stateN"})
    late: list[float] = []
    other = asyncio.create_task(pulse(late))
    source = microphone(str(models.fetch("speech")), seconds, speed)
    async for (probability,) in steps(lambda chunk: stream.step({"input": chunk[None]}), source):
        print("#" if probability[0, 0] > 0.5 else ".", end="", flush=True)
    other.cancel()
    print(f"\nthe event loop was late by {1000 * max(late):.1f} ms at most, {len(late)} times looked")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="of speech (%(default)s)")
    parser.add_argument("--speed", type=float, default=1, help="times real time (%(default)s)")
    parser.add_argument("--backend", default="auto", help="native, wasm, numpy, ... (%(default)s: the fastest)")
    arguments = parser.parse_args()
    asyncio.run(listen(arguments.backend, arguments.seconds, arguments.speed))


if __name__ == "__main__":
    main()
