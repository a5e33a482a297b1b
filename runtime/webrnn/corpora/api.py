"""`webrnn.map`."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sized
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, islice
from typing import IO, Any, overload

from webrnn.errors import ModelError, OptionError
from webrnn.ir import Graph

from .driver import Driver, InOrder
from .items import Item, found_in
from .mapper import Model, Result
from .options import Options
from .progress import Progress, duration
from .work import Engine, Here, Job


@dataclass(frozen=True)
class Summary:
    """What a map to a folder did."""

    folder: str
    items: int
    """All items, also those that were done before."""
    failed: int
    """The bad ones among them."""
    skipped: int
    """Those that were done before."""
    seconds: float

    def __str__(self) -> str:
        """
        >>> print(Summary("out", 1000, 2, 100, 4.5))
        1,000 items in out: 998 results, 2 bad (out/failed.jsonl); 900 of them now, in 0:04, 200 a second
        """
        now = self.items - self.skipped
        bad = f"{self.failed:,} bad ({os.path.join(self.folder, 'failed.jsonl')})" if self.failed else "none bad"
        rate = f", {now / self.seconds:,.0f} a second" if now and self.seconds else ""
        return (
            f"{self.items:,} items in {self.folder}: {self.items - self.failed:,} results, {bad}; "
            f"{now:,} of them now, in {duration(self.seconds)}{rate}"
        )


@overload
def map(model: Model, items: Any, output: None = None, **how: Any) -> Iterator[Result]: ...


@overload
def map(model: Model, items: Any, output: str | os.PathLike[str], **how: Any) -> Summary: ...


def map(
    model: Model,
    items: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    processes: int | None = None,
    dask: Any = None,
    batch: int | None = None,
    restart: bool = False,
    retry_failed: bool = False,
    progress: bool | IO[str] = False,
    **options: Any,
) -> Iterator[Result] | Summary:
    """Run a model on each of many items: arrays, dicts of feeds, or paths as `webrnn map` takes them.

    >>> import numpy as np
    >>> from onnx.parser import parse_model
    >>> model = parse_model('''<ir_version: 8, opset_import: ["": 17]>
    ... double (float[n] x) => (float[n] y) { y = Add(x, x) }''').SerializeToString()
    >>> items = (np.full(3, number, np.float32) for number in range(4))
    >>> [result["y"].tolist() for result in map(model, items, processes=0)]
    [[0.0, 0.0, 0.0], [2.0, 2.0, 2.0], [4.0, 4.0, 4.0], [6.0, 6.0, 6.0]]

    Without `output`, the results come one after the other in the order of the items, each a `Result`; `result["y"]` of
    a bad item raises why it is bad. With `output`, they go to this folder, which `webrnn.corpora.read` reads; if the
    call is broken off, even by SIGKILL, the same call goes on where it was. `restart` begins anew, `retry_failed` tries
    bad items again.

    The work is done by `processes`, by default as many as there are cores, 0 is this process; or by the workers of
    `dask`, the address of a scheduler or a distributed.Client. `batch` is how many items are run together at most. None
    of it changes a bit of a result. `options` are those of `webrnn.corpora.Options`.
    """
    try:
        how = Options(**options)
    except TypeError as error:
        raise OptionError(f"map: {str(error).removeprefix('Options.__init__() ')}") from None
    if processes is not None and processes < 0:
        raise OptionError(f"processes={processes}: it is a number, or 0 for this process")
    if dask is not None and processes is not None:
        raise OptionError("processes= is for this machine; with dask= the cluster has its workers")
    engines = _Engines(model, how, batch, processes, dask)
    if output is None:
        if restart or retry_failed:
            raise OptionError("restart= and retry_failed= are for a folder of results: output=")
        return _results(engines, items)
    return _to_folder(engines, items, os.fspath(output), restart, retry_failed, progress)


@dataclass(frozen=True)
class _Engines:
    """Makes the engine that was asked for."""

    model: Model
    options: Options
    batch: int | None
    processes: int | None
    dask: Any

    def __post_init__(self) -> None:
        if not isinstance(self.model, str | os.PathLike | bytes | Graph):
            raise OptionError(f"a model is a path, bytes or a graph, not {type(self.model).__name__}")

    def engine(self, most: int, shards: str | None = None) -> Engine:
        """`most` is how many items there are at least, up to the number of processes."""
        if self.dask is not None:
            from .dask_engine import Dask

            sends = "results" if shards is None else "shards"
            return Dask(Job(self._as_bytes(), self.options, self.batch, os.getcwd(), sends=sends), self.dask)
        job = Job(self.model, self.options, self.batch, os.getcwd(), shards)
        if self.count == 0:
            return Here(job)
        from .processes import Processes

        return Processes(job, min(self.count, most))

    @property
    def count(self) -> int:
        if self.processes is not None or self.dask is not None:
            return self.processes or 0
        from .processes import default_count

        return default_count()

    def _as_bytes(self) -> bytes | Graph:
        if not isinstance(self.model, str | os.PathLike):
            return self.model
        try:
            with open(self.model, "rb") as file:
                return file.read()
        except OSError as error:
            raise ModelError(f"cannot read {os.fspath(self.model)!r}: {error.strerror}") from None

    def about(self) -> dict[str, Any]:
        """What decides about results."""
        model = self._as_bytes()
        if isinstance(model, Graph):
            raise OptionError(
                "a graph that was built has no file to know it by: export it (session.export) and map that"
            )
        digest = hashlib.sha256(model).hexdigest()
        return {"webrnn": import_module("webrnn").__version__, "model": digest, "options": self.options.described()}


def _results(engines: _Engines, items: Any) -> Iterator[Result]:
    found = (Item(index, *one) for index, one in enumerate(found_in(items)))
    first = list(islice(found, max(1, engines.count)))
    if not first:
        return
    engine = engines.engine(len(first))
    try:
        driver = InOrder(engine, chain(first, found))
        if isinstance(items, Sized) and not isinstance(items, str):
            driver.total = len(items)
        yield from driver.results()
    finally:
        engine.close()


def _to_folder(engines: _Engines, items: Any, folder: str, restart: bool, retry: bool, show: bool | IO[str]) -> Summary:
    from .store import Store

    started = time.monotonic()
    store = Store(folder, engines.about(), restart)
    try:
        progress = Progress(bool(show), None if isinstance(show, bool) else show)
        found = store.open_items(found_in(items), retry)
        first = list(islice(found, max(1, engines.count)))
        tried = store.tried
        if first:
            if _can_be_counted(items):
                progress.count(found_in(items))
            engine = engines.engine(len(first), str(store.temporary.absolute()))
            try:
                _drive(Driver(engine, chain(first, found), store.belong_together), store, progress)
            finally:
                progress.end()
                engine.close()
        store.finish()
        skipped = tried - (store.retried if retry else 0)
        return Summary(folder, store.total, len(store.bad), skipped, time.monotonic() - started)
    finally:
        store.close()


def _drive(driver: Driver, store: Any, progress: Progress) -> None:
    before = store.tried
    for finished in driver.finished():
        if finished:
            store.commit([(chunk, outcome.shard, outcome.failed) for chunk, outcome in finished])
        driver.total = progress.total
        progress.tell(store.tried, len(store.bad), before)


def _can_be_counted(items: Any) -> bool:
    """Whether looking at the items a second time is possible, and quick."""
    if isinstance(items, str | os.PathLike):
        return items != "-"
    return isinstance(items, list | tuple) and "-" not in (item for item in items if isinstance(item, str))
