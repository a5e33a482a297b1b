"""Streams of a pool open, close, skip ticks, change lengths, are saved, restored and flushed at random, beside a single
stream each: the same bits. `make soak-pool` does so for 100,000 ticks; a test does it for some hundred."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import webrnn
from tests.backends import MAIN
from tests.engine.stream_models import INPUTS, bits, session, stateful
from tests.engine.streams.pool_oracle import same_state
from tests.engine.streams.timed_models import Averages


@dataclass
class Subject:
    """A model, and feeds of so many strides of one stream."""

    session: webrnn.InferenceSession
    carry: Any
    feeds: Callable[[np.random.Generator, int], dict[str, np.ndarray]]
    can_flush: bool = False


def gru(backend: str = MAIN, op: str = "GRU") -> Subject:
    def feeds(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
        return {"x": rng.standard_normal((n, 1, INPUTS)).astype(np.float32)}

    return Subject(session(stateful(op), backend), "auto", feeds)


def averages() -> Subject:
    kind = Averages(width=5, left=1, right=3, stride=3, axis=2)

    def feeds(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
        return {"x": kind.feed(n, seed=int(rng.integers(1 << 30)))}

    return Subject(kind.session(), kind.carry, feeds, can_flush=True)


class PoolSoak:
    """One pool and its oracle. Each `tick` does what comes by chance, and compares."""

    def __init__(self, subject: Subject, max_streams: int = 24, max_batch: int | None = None, seed: int = 0):
        self.subject, self.max_streams = subject, max_streams
        self.pool = subject.session.pool(max_streams, subject.carry, max_batch)
        self.streams: dict[int, Any] = {}
        self.chance, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.fed: set[int] = set()
        """Who had feeds at least once: a snapshot does not say how large they are."""
        self.ticked = 0

    def tick(self) -> None:
        self._come_and_go()
        self._save_and_restore()
        chosen = self._chosen()
        feeds = {handle: self.subject.feeds(self.rng, length) for handle, length in chosen}
        self._submit(feeds)
        if self.chance.random() < 0.3:
            results = self.pool.tick()
            assert list(results) == list(feeds)
        else:
            many = self.pool.tick_many()
            assert len(many) == len(feeds)
            results = {
                int(handle): [array[row] for array in group.arrays]
                for group in many.groups
                for row, handle in enumerate(group.handles)
            }
            assert results.keys() == feeds.keys()
        for handle, fed in feeds.items():
            assert bits(results[handle]) == bits(self.streams[handle].step(fed)), (self.ticked, handle)
        self.fed.update(feeds)
        self.ticked += 1

    def _come_and_go(self) -> None:
        chance, pool = self.chance, self.pool
        if chance.random() < 0.2 and len(self.streams) < self.max_streams:
            count = chance.randint(1, min(4, self.max_streams - len(self.streams)))
            opened = pool.open_many(count).tolist() if chance.random() < 0.5 else [pool.open() for _ in range(count)]
            self.streams |= {handle: self.subject.session.stream(self.subject.carry) for handle in opened}
        if chance.random() < 0.15 and self.streams:
            gone = chance.sample(list(self.streams), chance.randint(1, min(3, len(self.streams))))
            if chance.random() < 0.3:
                pool.submit(gone[0], self.subject.feeds(self.rng, 1))
            if chance.random() < 0.5:
                pool.close_many(gone)
            else:
                for handle in gone:
                    pool.close(handle)
            for handle in gone:
                del self.streams[handle]

    def _save_and_restore(self) -> None:
        chance, pool = self.chance, self.pool
        if not self.streams or chance.random() > 0.2:
            return
        handle, other = chance.choice(list(self.streams)), chance.choice(list(self.streams))
        assert same_state(pool.state(handle), self.streams[handle].state)
        if chance.random() < 0.5:
            snapshot = pool.state(handle)
            pool.load(other, snapshot)
            self.streams[other].load(snapshot)
        if self.subject.can_flush and handle in self.fed and chance.random() < 0.5 and pool.state(handle):
            assert bits(pool.flush(handle)) == bits(self.streams[handle].flush())

    def _chosen(self) -> list[tuple[int, int]]:
        chance, handles = self.chance, list(self.streams)
        if chance.random() < 0.3:
            handles = [handle for handle in handles if chance.random() < 0.6]
        if chance.random() < 0.1:
            chance.shuffle(handles)
        lengths = [chance.choice([1, 1, 1, 2, 3]) if chance.random() < 0.5 else 1 for _ in handles]
        return list(zip(handles, lengths if chance.random() < 0.3 else [1] * len(handles), strict=True))

    def _submit(self, feeds: dict[int, dict[str, np.ndarray]]) -> None:
        chance, pool = self.chance, self.pool
        shapes = {tuple(array.shape for array in fed.values()) for fed in feeds.values()}
        if len(shapes) != 1 or chance.random() < 0.3:
            for handle, fed in feeds.items():
                pool.submit(handle, fed)
            return
        handles, each = list(feeds), list(feeds.values())
        cut = chance.choice([0, 0, len(handles) // 2])
        for some in (slice(0, cut), slice(cut, None)):
            if handles[some]:
                self._submit_many(handles[some], each[some])

    def _submit_many(self, handles: list[int], feeds: list[dict[str, np.ndarray]]) -> None:
        axes = self.pool.stream_axes if self.chance.random() < 0.5 else None
        arrays = {
            name: np.stack([fed[name] for fed in feeds])
            if axes is None
            else np.concatenate([fed[name] for fed in feeds], axes[name])
            for name in feeds[0]
        }
        self.pool.submit_many(np.array(handles) if self.chance.random() < 0.5 else handles, arrays)

    def check_states(self) -> None:
        for handle, stream in self.streams.items():
            assert same_state(self.pool.state(handle), stream.state), handle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name, subject, n_streams in (("GRU", gru(), 24), ("averages with a delay", averages(), 12)):
        soak, started = PoolSoak(subject, n_streams, seed=options.seed), time.monotonic()
        for number in range(options.ticks):
            soak.tick()
            if number % 100 == 0:
                soak.check_states()
            if number % 1000 == 999:
                rate = (number + 1) / (time.monotonic() - started)
                print(f"\r{name}: {number + 1:,} of {options.ticks:,} ticks, {rate:.0f} a second", end="", flush=True)
        soak.check_states()
        assert soak.pool.batched, soak.pool.reason
        print(f"\r{name}: {options.ticks:,} ticks, all bits the same" + " " * 24)


if __name__ == "__main__":
    sys.exit(main())
