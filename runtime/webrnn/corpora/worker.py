"""A process that works for processes.py: it gets a job, then chunks of items, and sends back what it made of them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from .work import LONGEST, Job, work


def main(handle: int) -> None:
    """Work until the other end of the pipe is closed; `handle` is this end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it decides when to stop
    _end_first_without_memory()
    connection: Connection[Any, Any] = Connection(handle)
    job: Job = connection.recv()
    chunks: SimpleQueue[Any] = SimpleQueue()
    # Chunks are taken at once: the other side can always send, also while this side sends something large.
    threading.Thread(target=_take, args=(connection, chunks), daemon=True).start()
    try:
        mapper = job.mapper()
        connection.send(None)
        while True:
            connection.send(work(job, mapper, chunks.get(), LONGEST))
    except Exception as error:
        with contextlib.suppress(OSError):
            connection.send(error)
            os._exit(0)
    os._exit(1)


def _take(connection: Connection[Any, Any], chunks: SimpleQueue[Any]) -> None:
    try:
        while True:
            chunks.put(connection.recv())
    except (EOFError, OSError):
        os._exit(1)  # nobody waits for results any more


def _end_first_without_memory() -> None:
    """Let Linux, short of memory, end this process rather than the one that keeps the books."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")
