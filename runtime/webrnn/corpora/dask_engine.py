"""An engine of Dask workers, on as many machines as there are (`pip install webrnn[dask]`).

The model goes to each worker once, with a plugin that workers which come later get too. Results come back as the bytes
of shards, so only the driver has to reach the folder of results; files that are items have to be where all workers
find them.
"""

from __future__ import annotations

import threading
import time
import uuid
from queue import Empty, SimpleQueue
from typing import Any

from webrnn.errors import BackendError, Error

from .items import Item
from .mapper import Mapper
from .work import LONGEST, Chunk, Finished, Job, Lost, work

QUEUED = 2
"""Chunks for each thread of a worker, so that it need not wait for the next."""
CONNECT_SECONDS = 30
BETWEEN_LOOKS = 2.0
"""Seconds after which it is asked how many workers there are."""


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise BackendError("Dask is not installed: pip install 'webrnn[dask]'") from error
    return distributed


class JobPlugin:
    """On each worker: the job, and for each of its threads a session, made when the first chunk comes."""

    def __init__(self, job: Job, name: str):
        self.job, self.name = job, name

    def setup(self, worker: Any) -> None:
        self._local = threading.local()

    def teardown(self, worker: Any) -> None: ...

    def mapper(self) -> Mapper:
        mapper: Mapper | None = getattr(self._local, "mapper", None)
        if mapper is None:
            mapper = self._local.mapper = self.job.mapper()
        return mapper


def _work(name: str, items: list[Item]) -> Finished | Exception:
    """On a worker. What is wrong for all items is given back: Dask would show it as a failure of its own."""
    plugin: JobPlugin = _distributed().get_worker().plugins[name]
    try:
        return work(plugin.job, plugin.mapper(), items, LONGEST)
    except Error as error:
        return error


class Dask:
    """Workers of a Dask cluster: `where` is the address of its scheduler, or a distributed.Client."""

    def __init__(self, job: Job, where: Any):
        distributed = _distributed()
        self._owned = isinstance(where, str)
        self._name = f"webrnn-map-{uuid.uuid4().hex}"
        try:
            self._client = distributed.Client(where, timeout=CONNECT_SECONDS) if self._owned else where
            self._client.register_plugin(_worker_plugin(job, self._name), name=self._name)
        except (OSError, TimeoutError) as error:
            raise BackendError(f"no Dask scheduler answers at {where}: {error}") from error
        self._done: SimpleQueue[Any] = SimpleQueue()
        self._chunks: dict[Any, Chunk] = {}
        self._threads, self._looked = 1, 0.0
        self._count_threads()

    def _count_threads(self) -> None:
        if time.monotonic() - self._looked > BETWEEN_LOOKS:
            self._threads = max(1, sum(self._client.nthreads().values()))
            self._looked = time.monotonic()

    @property
    def workers(self) -> int:
        return self._threads

    @property
    def room(self) -> int:
        return QUEUED * self._threads - len(self._chunks)

    def submit(self, chunk: Chunk) -> None:
        key = f"{self._name}-{uuid.uuid4().hex}"
        future = self._client.submit(_work, self._name, list(chunk.items), key=key, pure=False)
        self._chunks[future] = chunk
        future.add_done_callback(self._done.put)

    def wait(self, seconds: float) -> list[tuple[Chunk, Finished | Lost]]:
        self._count_threads()
        finished: list[tuple[Chunk, Finished | Lost]] = []
        while True:
            try:
                future = self._done.get(timeout=0 if finished else seconds)
            except Empty:
                return finished
            chunk = self._chunks.pop(future, None)
            if chunk is not None:
                finished.append((chunk, self._outcome(future)))

    def _outcome(self, future: Any) -> Finished | Lost:
        distributed = _distributed()
        try:
            outcome = future.result(timeout=CONNECT_SECONDS)
        except distributed.scheduler.KilledWorker as error:
            return Lost(f"{error}")
        except (distributed.CancelledError, distributed.comm.CommClosedError, OSError, TimeoutError) as error:
            if self._client.status != "running":
                raise BackendError(f"the Dask scheduler is gone: {error}") from error
            return Lost(f"was lost: {error}", blame=False)
        finally:
            future.release()
        if isinstance(outcome, Exception):
            raise outcome
        assert isinstance(outcome, Finished)
        return outcome

    def close(self) -> None:
        futures, self._chunks = list(self._chunks), {}
        if self._client.status == "running":
            self._client.cancel(futures)
            self._client.unregister_worker_plugin(self._name)
        if self._owned:
            self._client.close()


def _worker_plugin(job: Job, name: str) -> Any:
    """Of the class that Dask asks for, which is known only where Dask is."""
    distributed = _distributed()
    plugin = type("WebrnnJob", (JobPlugin, distributed.WorkerPlugin), {})(job, name)
    return plugin
