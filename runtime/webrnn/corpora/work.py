"""What goes to those who do the work, and what comes back. All of it can be pickled."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from .index import Failure
from .items import Item
from .mapper import Mapper, Model, Result
from .options import Options
from .shards import shard_bytes, write_shard


@dataclass(frozen=True)
class Job:
    """All that a worker has to know before the first items come."""

    model: Model
    options: Options
    batch: int | None = None
    folder: str | None = None
    """Where relative paths begin."""
    shards: str | None = None
    """Where to write shards; None: results, or the bytes of shards, are sent back."""
    sends: str = "results"
    """What is sent back if nothing is written: "results" or "shards"."""

    def mapper(self) -> Mapper:
        return Mapper(self.model, self.options, batch=self.batch, folder=self.folder)


@dataclass
class Chunk:
    """Items for a worker, in their order."""

    items: Sequence[Item]
    kills: int = 0
    """How many workers have ended over it."""


@dataclass
class Finished:
    """What a worker made of the first `count` items of a chunk."""

    count: int
    seconds: float
    failed: list[Failure] = field(default_factory=list)
    shard: Path | bytes | None = None
    results: list[Result] | None = None


@dataclass
class Lost:
    """The worker that had the chunk has ended. `blame`: perhaps because of it."""

    how: str
    blame: bool = True


class Engine(Protocol):
    """Those who do the work."""

    @property
    def workers(self) -> int:
        """How many chunks are worked on at a time."""

    @property
    def room(self) -> int:
        """How many chunks it takes now."""

    def submit(self, chunk: Chunk) -> None: ...

    def wait(self, seconds: float) -> list[tuple[Chunk, Finished | Lost]]:
        """What is finished, after waiting so long at most. Raises what is wrong for all items."""

    def close(self) -> None:
        """End the work; what is not finished is dropped."""


def work(job: Job, mapper: Mapper, items: Sequence[Item], seconds: float) -> Finished:
    """Run items, at least one, and further ones for some time."""
    started = time.perf_counter()
    results = mapper.run(items, seconds)
    bad = [Failure(r.index, r.name, r.kind or "", r.reason or "") for r in results if not r.ok]
    finished = Finished(len(results), 0.0, bad)
    if job.shards is None and job.sends == "results":
        finished.results = results
    elif len(bad) < len(results):
        finished.shard = shard_bytes(results) if job.shards is None else _written(job.shards, results)
    finished.seconds = time.perf_counter() - started
    return finished


def _written(folder: str, results: Sequence[Result]) -> Path:
    handle, path = tempfile.mkstemp(".npz", f"{os.getpid()}-", folder)
    with open(handle, "wb") as file:
        write_shard(file, results)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(path, 0o666 & ~_umask())
    return Path(path)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


class Here:
    """An engine that works in this process, when it is asked for results."""

    workers = 1

    def __init__(self, job: Job):
        self._job, self._mapper = job, job.mapper()
        self._chunks: list[Chunk] = []

    @property
    def room(self) -> int:
        return 1 - len(self._chunks)

    def submit(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)

    def wait(self, seconds: float) -> list[tuple[Chunk, Finished | Lost]]:
        chunk = self._chunks.pop()
        return [(chunk, work(self._job, self._mapper, chunk.items, LONGEST))]

    def close(self) -> None:
        self._chunks.clear()


LONGEST = 30.0
"""Seconds after which a worker hands over what it has."""
