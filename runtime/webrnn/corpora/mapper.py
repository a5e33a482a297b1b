"""`Mapper`: a model that takes items and gives their results, many at once where that is quicker."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.engine.session import InferenceSession
from webrnn.engine.streams.pool import StreamPool
from webrnn.errors import BackendError, Error, OptionError
from webrnn.ir import Graph

from .errors import ItemError
from .items import Item, found_in
from .loading import Feeds, Loader
from .options import Options
from .steps import Cutter, Joiner, Steps

Model = str | os.PathLike[str] | bytes | Graph

BATCH = 32
"""Items that are run together."""
SEEN_BEFORE_BATCHES = 16
"""Whole runs are put together once so many items of a shape have come: the first batch of a shape is tried out."""
LEAST_BATCH = 4
WINDOW_ITEMS, WINDOW_BYTES = 4 * BATCH, 64 << 20
"""So many items are held to be sorted by length."""
MOST_RESULTS = 64 << 20
"""Bytes of results after which a mapper hands over what it has."""
FATAL = (OptionError, BackendError)
"""What is wrong for all items, not for one."""
KINDS = "biufc"
"""Of the arrays that are kept."""


@dataclass(slots=True)
class Result:
    """What an item gave: its outputs by name; or, if it is bad, why.

    >>> good, bad = Result(0, "a.wav", {"y": np.ones(1)}), Result(1, "b.wav", None, "ShapeError", "too short")
    >>> good["y"]
    array([1.])
    >>> bad["y"]
    Traceback (most recent call last):
        ...
    webrnn.corpora.errors.ItemError: b.wav: ShapeError: too short
    """

    index: int
    name: str
    outputs: dict[str, np.ndarray] | None
    kind: str | None = None
    """The type of the error of a bad item."""
    reason: str | None = None

    @property
    def ok(self) -> bool:
        return self.outputs is not None

    def __getitem__(self, output: str) -> np.ndarray:
        if self.outputs is None:
            raise ItemError(f"{self.name}: {self.kind}: {self.reason}")
        return self.outputs[output]

    @property
    def nbytes(self) -> int:
        return 0 if self.outputs is None else sum(array.nbytes for array in self.outputs.values())


@dataclass(slots=True)
class _Ready:
    """An item that is loaded."""

    item: Item
    feeds: Feeds
    steps: Steps | None


class Mapper:
    """A session that maps items. Each process of `webrnn.map` has one; other frameworks may have their own.

    >>> from onnx.parser import parse_model
    >>> model = parse_model('''<ir_version: 8, opset_import: ["": 17]>
    ... double (float[n] x) => (float[n] y) { y = Add(x, x) }''')
    >>> mapper = Mapper(model.SerializeToString())
    >>> [result["y"].tolist() for result in mapper([np.float32([1, 2]), np.float32([3])])]
    [[2.0, 4.0], [6.0]]
    """

    def __init__(
        self, model: Model, options: Options | None = None, *, batch: int | None = None, folder: str | None = None
    ):
        """`batch` is how many items are run together at most, `folder` is where relative paths begin."""
        self.options = o = options or Options()
        self._batch = BATCH if batch is None else batch
        if self._batch < 1:
            raise OptionError(f"batch={batch}: it is a number of at least 1")
        session = InferenceSession(model, o.backend, o.disable, o.fixed, weights=o.weights, keep=o.keep)
        audio: dict[str, Any] = session.about.get("audio") or {}
        make: type[_WholeRuns | _Streams] = _Streams if o.stream else _WholeRuns
        self._runs = make(session, o, self._batch, audio)
        rate = o.rate if o.rate is not None else audio.get("sample_rate")
        fed = [value for value in session.inputs if value.name not in self._runs.states]
        self._loader = Loader(o, fed, rate, folder)
        self._kept = list(self._runs.names if o.outputs is None else o.outputs)
        absent = [name for name in self._kept if name not in self._runs.names]
        if absent:
            raise OptionError(f"outputs=: there is no output {absent[0]!r}; there are {self._runs.names}")

    def __call__(self, items: Any) -> list[Result]:
        """The results of items: arrays, dicts of feeds or paths, as `webrnn.map` takes them."""
        given = [Item(index, *found) for index, found in enumerate(found_in(items))]
        results: list[Result] = []
        while len(results) < len(given):
            results += self.run(given[len(results) :])
        return results

    def run(self, items: Sequence[Item], seconds: float | None = None) -> list[Result]:
        """The results of the first items: of all, or of as many as it may take time or memory for, at least one."""
        started = time.perf_counter()
        results: list[Result] = []
        size = 0
        while len(results) < len(items):
            window = self._window(items[len(results) :])
            some = self._run_window(window)
            size += sum(result.nbytes for result in some)
            results += some
            if size > MOST_RESULTS or (seconds is not None and time.perf_counter() - started > seconds):
                break
        return results

    def _window(self, items: Sequence[Item]) -> list[_Ready | Result]:
        """The next items, loaded."""
        window: list[_Ready | Result] = []
        size = 0
        for item in items:
            try:
                feeds, signals = self._loader.feeds(item)
                window.append(_Ready(item, feeds, self._runs.steps(feeds, signals)))
                size += sum(feed.nbytes for feed in feeds.values())
            except FATAL:
                raise
            except Exception as error:
                window.append(_bad(item, error))
            if len(window) == WINDOW_ITEMS or size > WINDOW_BYTES:
                break
        return window

    def _run_window(self, window: Sequence[_Ready | Result]) -> list[Result]:
        found = {result.index: result for result in window if isinstance(result, Result)}
        ready = [one for one in window if isinstance(one, _Ready)]
        for batch in self._runs.batches(ready):
            for one, outputs in zip(batch, self._runs.run(batch), strict=True):
                found[one.item.index] = self._result(one.item, outputs)
        return [found[one.index if isinstance(one, Result) else one.item.index] for one in window]

    def _result(self, item: Item, outputs: dict[str, Any] | Exception) -> Result:
        if isinstance(outputs, Exception):
            return _bad(item, outputs)
        kept = {name: outputs[name] for name in self._kept}
        for name, array in kept.items():
            if not isinstance(array, np.ndarray) or array.dtype.kind not in KINDS:
                what = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
                return _bad(item, ItemError(f"output {name!r} is of type {what}, which is not kept; say outputs="))
            if self.options.finite and array.dtype.kind in "fc" and not np.isfinite(array).all():
                return _bad(item, ItemError(f"output {name!r} is not finite"))
        return Result(item.index, item.name, kept)


def _bad(item: Item, error: BaseException) -> Result:
    reason = str(error) or "no reason was given"
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror
    return Result(item.index, item.name, None, type(error).__name__, reason)


class _WholeRuns:
    """Each item is one run. Items of the same shapes are put side by side if that gives the same bits."""

    states: frozenset[str] = frozenset()

    def __init__(self, session: InferenceSession, options: Options, batch: int, audio: Any):
        self._session, self._batch = session, batch
        self.names: list[str] = [value.name for value in session.outputs]
        self._seen: Counter[Any] = Counter()
        self._tried: set[Any] = set()
        self._pool: StreamPool | None = None
        self._handles: list[int] = []
        self._may_batch = batch > 1

    def steps(self, feeds: Feeds, signals: Sequence[str]) -> None:
        return None

    def batches(self, ready: Sequence[_Ready]) -> Iterator[list[_Ready]]:
        groups: dict[Any, list[_Ready]] = {}
        for one in ready:
            groups.setdefault(_shapes(one.feeds), []).append(one)
        for shapes, group in groups.items():
            if len(self._seen) > 10_000:
                self._seen.clear()
            self._seen[shapes] += len(group)
            size = self._batch if self._seen[shapes] >= SEEN_BEFORE_BATCHES and len(group) >= LEAST_BATCH else 1
            for first in range(0, len(group), size):
                yield group[first : first + size]

    def run(self, batch: Sequence[_Ready]) -> list[dict[str, Any] | Exception]:
        if len(batch) > 1 and self._may_batch:
            together = self._together(batch)
            if together is not None:
                return together
        return [self._alone(one) for one in batch]

    def _alone(self, one: _Ready) -> dict[str, Any] | Exception:
        try:
            return dict(zip(self.names, self._session.run(None, one.feeds), strict=True))
        except FATAL:
            raise
        except Exception as error:
            return error

    def _together(self, batch: Sequence[_Ready]) -> list[dict[str, Any] | Exception] | None:
        """None if they have to be run one by one."""
        try:
            pool = self._pool or self._new_pool()
            if pool is None or not pool.batched:
                self._may_batch = False
                return None
            for handle, one in zip(self._handles, batch, strict=False):
                pool.submit(handle, one.feeds)
            ticked = pool.tick()
        except Exception:  # one of them is bad, or they cannot be side by side
            self._pool = None
            return None
        results: list[Any] = [dict(zip(self.names, ticked[h], strict=True)) for h in self._handles[: len(batch)]]
        key = _shapes(batch[0].feeds)
        if key not in self._tried:
            alone = self._alone(batch[0])
            if isinstance(alone, Exception) or not _same_bits(alone, results[0]):
                self._may_batch = False
                return None
            self._tried.add(key)
        return results

    def _new_pool(self) -> StreamPool | None:
        """Streams without states: a tick of them is a run of each."""
        try:
            if self._session.stream(carry={}).carry:  # random numbers are counted
                return None
            pool = self._session.pool(max_streams=self._batch, carry={})
        except Error:
            return None
        self._pool, self._handles = pool, [pool.open() for _ in range(self._batch)]
        return pool


class _Streams:
    """Each item is a stream. Streams of similar length tick together."""

    def __init__(self, session: InferenceSession, options: Options, batch: int, audio: Any):
        carry = "auto" if options.carry is None else options.carry
        how: dict[str, Any] = {"carry": carry, "running": options.running, "lookback": options.lookback}
        if carry == "internal":
            how["time"] = options.time
        self._stream = session.stream(**how)
        self.states = frozenset(self._stream.carry)
        self.names: list[str] = self._stream.output_names
        timing = self._stream.timing
        fed = [value for value in session.inputs if value.name not in self.states]
        if audio.get("kind") == "filter" and options.join is None and options.frame is None:
            options = Options(**{**_given(options), "join": "overlap"})
        self._cutter = Cutter(options, fed, timing, audio)
        self._joiner = Joiner(options, self.names, timing, self._cutter)
        self._flushes = timing is not None
        self._batch = batch
        self._pool = session.pool(max_streams=batch, **how) if batch > 1 else None

    def steps(self, feeds: Feeds, signals: Sequence[str]) -> Steps:
        return self._cutter.cut(feeds, signals)

    def batches(self, ready: Sequence[_Ready]) -> Iterator[list[_Ready]]:
        by_length = sorted(ready, key=lambda one: -len(one.steps or ()))
        size = self._batch if self._pool is not None and self._pool.batched else 1
        for first in range(0, len(by_length), size):
            yield by_length[first : first + size]

    def run(self, batch: Sequence[_Ready]) -> list[dict[str, Any] | Exception]:
        if len(batch) > 1 and self._pool is not None:
            together = self._together(self._pool, [_steps_of(one) for one in batch])
            if together is not None:
                return together
        return [self._alone(_steps_of(one)) for one in batch]

    def _alone(self, steps: Steps) -> dict[str, Any] | Exception:
        try:
            self._stream.reset()
            results = [self._stream.step(steps[number]) for number in range(len(steps))]
            if self._flushes:
                results.append(self._stream.flush())
            return self._joiner.joined(results, steps.length)
        except FATAL:
            raise
        except Exception as error:
            return error

    def _together(self, pool: StreamPool, items: Sequence[Steps]) -> list[dict[str, Any] | Exception] | None:
        """None if one of them is bad: then each is run alone. The longest come first."""
        handles = [pool.open() for _ in items]
        results: list[list[Any]] = [[] for _ in items]
        try:
            active = len(items)
            for number in range(len(items[0])):
                while len(items[active - 1]) <= number:
                    active -= 1
                for place in range(active):
                    pool.submit(handles[place], items[place][number])
                ticked = pool.tick()
                for place in range(active):
                    results[place].append(ticked[handles[place]])
            if self._flushes:
                for place, handle in enumerate(handles):
                    results[place].append(pool.flush(handle))
            return [self._joiner.joined(steps, item.length) for steps, item in zip(results, items, strict=True)]
        except FATAL:
            raise
        except Exception:
            return None
        finally:
            for handle in handles:
                pool.close(handle)


def _steps_of(one: _Ready) -> Steps:
    assert one.steps is not None
    return one.steps


def _given(options: Options) -> dict[str, Any]:
    return {name: getattr(options, name) for name in options.__dataclass_fields__}


def _shapes(feeds: Feeds) -> tuple[Any, ...]:
    return tuple((name, feed.shape, feed.dtype.str) for name, feed in sorted(feeds.items()))


def _same_bits(some: dict[str, Any], others: dict[str, Any]) -> bool:
    arrays: Iterable[tuple[Any, Any]] = zip(some.values(), others.values(), strict=True)
    return all(
        isinstance(a, np.ndarray) and a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in arrays
    )
