"""An engine of processes on this machine. They are started as programs of their own: nothing is forked, and the script
that calls needs no `if __name__ == "__main__"`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from multiprocessing.connection import Pipe, wait
from typing import Any

from .errors import WorkersError
from .work import Chunk, Finished, Job, Lost

QUEUED = 2
"""Chunks that a worker has, so that it need not wait for the next."""
MOST_DEATHS, MOST_EARLY_DEATHS = 50, 5
"""So many workers may end one after the other without a result between; and so many before they were ready."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class _Worker:
    def __init__(self) -> None:
        self.connection, other = Pipe()
        script = (
            f"import sys; sys.path[:] = {sys.path!r}; from webrnn.corpora.worker import main; main({other.fileno()})"
        )
        command = [sys.executable, "-c", script]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sys.__stderr__ if sys.__stderr__ is not None else subprocess.DEVNULL,
            pass_fds=(other.fileno(),),
            process_group=0,  # Ctrl-C is for the process that the user started
            env={**os.environ, **ONE_THREAD},
        )
        other.close()
        self.chunks: deque[Chunk] = deque()
        self.is_ready = False

    def begin(self, job: Job) -> None:
        """It need not be awake yet, but a large job waits until it is."""
        with contextlib.suppress(OSError):  # it has ended, as will be seen
            self.connection.send(job)


class Processes:
    """So many workers, each with a session of its own. One that ends is replaced."""

    def __init__(self, job: Job, count: int):
        self._job = job
        self._deaths = 0
        self._lost: list[tuple[Chunk, Finished | Lost]] = []
        self._all: list[_Worker] = []
        try:
            for _ in range(count):
                self._all.append(_Worker())
            for worker in self._all:
                worker.begin(job)
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> int:
        return len(self._all)

    @property
    def room(self) -> int:
        return sum(QUEUED - len(worker.chunks) for worker in self._all)

    @property
    def process_ids(self) -> list[int]:
        return [worker.process.pid for worker in self._all]

    def submit(self, chunk: Chunk) -> None:
        worker = min(self._all, key=lambda one: (len(one.chunks), not one.is_ready))
        worker.chunks.append(chunk)
        try:
            worker.connection.send(chunk.items)
        except OSError:
            self._replace(worker)

    def wait(self, seconds: float) -> list[tuple[Chunk, Finished | Lost]]:
        finished, self._lost = self._lost, []
        by_connection: dict[Any, _Worker] = {worker.connection: worker for worker in self._all}
        for connection in wait(list(by_connection), 0 if finished else seconds):
            worker = by_connection[connection]
            try:
                message = worker.connection.recv()
            except (EOFError, OSError):
                self._replace(worker)
                continue
            if isinstance(message, Exception):
                raise message
            if message is None:
                worker.is_ready = True
                continue
            self._deaths = 0
            finished.append((worker.chunks.popleft(), message))
        finished += self._lost
        self._lost = []
        return finished

    def _replace(self, worker: _Worker) -> None:
        """Of a worker that has ended: only the chunk that it was at may be the reason."""
        how = self._ended(worker)
        self._deaths += 1
        if self._deaths > (MOST_DEATHS if worker.is_ready else MOST_EARLY_DEATHS):
            raise WorkersError(f"{self._deaths} workers ended one after the other, without a result: the last {how}")
        self._lost += [
            (chunk, Lost(how, blame=place == 0 and worker.is_ready)) for place, chunk in enumerate(worker.chunks)
        ]
        self._all[self._all.index(worker)] = replacement = _Worker()
        replacement.begin(self._job)

    @staticmethod
    def _ended(worker: _Worker) -> str:
        worker.connection.close()
        try:
            code = worker.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            code = worker.process.wait()
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def close(self) -> None:
        for worker in self._all:
            worker.connection.close()
        for worker in self._all:
            self._ended(worker)
        self._all = []


def default_count() -> int:
    """As many as this process may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
