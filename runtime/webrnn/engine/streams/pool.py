"""`StreamPool`: many streams of one model, one batched run a tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from webrnn.errors import Error, ModelError, PlanError, ShapeError

from ..feeds import checked_feed
from ..forking import Abandoned, new_lock
from ..javascript import mapping_of
from .batching import Batched
from .carriers import Shapes
from .frames import Frames, Kept
from .resident import ResidentBatch, Stage
from .stream import Stream
from .streaming import StreamingModel

MOST_BATCHES = 8
"""Batches that are kept although the last tick did not use them: their streams may come back."""
TRIED_STREAMS = 3

MOST_STAGES = 8
"""Shapes of feeds for which room is kept."""

Outputs = list[Any]


class StreamPool:
    """Streams that come and go. `session.pool()` makes it.

    `open` gives a handle, `submit` hands in the next feeds of a stream, `tick` runs all that were handed in and returns
    their outputs. What a stream gets does not depend on the others, bit for bit.
    """

    def __init__(self, model: StreamingModel, max_streams: int, batched: Batched | str, max_batch: int | None = None):
        """`batched` is a plan that takes many streams, or why there is none."""
        if max_streams < 1:
            raise ModelError(f"a pool of {max_streams} streams")
        if max_batch is not None and max_batch < 1:
            raise ModelError(f"batches of {max_batch} streams")
        self.max_streams, self.max_batch = max_streams, max_batch or max_streams
        self.reason = batched if isinstance(batched, str) else ""
        """Why streams run one after the other; empty if they run together."""
        self._model, self._lock = model, new_lock(self)
        self._batched = None if isinstance(batched, str) else batched
        carried, given = {before for before, _ in model.pairs}, {after for _, after in model.pairs}
        self._fed = [(index, value) for index, value in enumerate(model.inputs) if index not in carried]
        self._returned = [index for index in range(len(model.outputs)) if index not in given]
        timing = model.timing
        self._frames = None if timing is None else Frames(timing, model.inputs, model.outputs, model.pairs)
        self._warming: dict[int, int] = {}
        """How many strides streams were fed whose results may have frames that are not shown."""
        self._last: dict[int, tuple[Shapes, dict[str, np.ndarray]]] = {}
        """What shapes the last feeds of a stream had, and what was fed without frames, if a flush needs it."""
        self._kept: dict[int, Kept] = {}
        """What streams gave without frames in their last tick, if a flush needs it."""
        self._open: dict[int, int] = {}
        """The slot of each stream."""
        self._free = list(range(max_streams))[::-1]
        self._next_handle = 0
        self._fresh: set[int] = set()
        """Streams that have not ticked yet."""
        self._submitted: dict[int, Stage] = {}
        """Where the feeds of a stream are."""
        self._stages: dict[Shapes, Stage] = {}
        self._stage: Stage | None = None
        """The one that was used last."""
        self._tried: set[Shapes] = set()
        self._banks: list[np.ndarray] = []
        """For each state the values of all slots, the slot first: of streams that are in no batch."""
        self._batches: list[ResidentBatch] = []
        """The one that was used last comes last."""
        self._where: dict[int, ResidentBatch] = {}
        """The batch that has the states of a stream."""
        self._streams: dict[int, Stream] = {}
        """A stream each, when they are run one after the other."""

    def _after_fork(self, was_held: bool) -> None:
        if was_held:
            self._lock = Abandoned(ModelError("the process was forked while this pool ticked: make a new one"))

    @property
    def batched(self) -> bool:
        """Whether streams run together."""
        return self._batched is not None

    def __len__(self) -> int:
        return len(self._open)

    def open(self) -> int:
        """A new stream."""
        with self._lock:
            if not self._free:
                raise ModelError(f"the pool is full: {self.max_streams} streams are open")
            handle, self._next_handle = self._next_handle, self._next_handle + 1
            self._open[handle] = self._free.pop()
            self._begins(handle)
            return handle

    def _begins(self, handle: int) -> None:
        """Of a stream that has no states yet."""
        self._fresh.add(handle)
        if self._frames is not None and self._frames.warm_up:
            self._warming[handle] = 0

    def close(self, handle: int) -> None:
        """End a stream; what was submitted for it is dropped."""
        with self._lock:
            self._free.append(self._slot(handle))
            del self._open[handle]
            self._fresh.discard(handle)
            stage = self._submitted.pop(handle, None)
            if stage is not None:
                stage.handles.remove(handle)
            for table in (self._where, self._streams, self._warming, self._last, self._kept):
                table.pop(handle, None)

    def submit(self, handle: int, feeds: Mapping[str, Any]) -> None:
        """Hand in what a stream gets in the next tick, as for `Stream.step`. The feeds are copied."""
        feeds = mapping_of(feeds)
        with self._lock:
            slot = self._slot(handle)
            if handle in self._submitted:
                raise ShapeError(f"stream {handle} has feeds for this tick already")
            stage = self._stage
            if stage is None or not stage.put(slot, feeds):
                stage = self._stage = self._checked(slot, feeds)
            stage.handles.append(handle)
            self._submitted[handle] = stage

    def flush(self, handle: int) -> Outputs:
        """End the sequence of a stream: the frames that are left, as of `Stream.flush`. The stream stays open; what is
        submitted next begins a new sequence. If it raises, the stream is as it was."""
        with self._lock:
            self._slot(handle)
            if handle in self._submitted:
                raise ModelError(f"stream {handle} has feeds for the next tick: tick() before flush()")
            stream = self._streams.get(handle)
            if stream is None:
                stream = self._model.stream()
                if handle not in self._fresh:
                    stream.load(self._snapshot(handle))
                    self._remind(stream, handle)
            results = stream.flush()
            self._where.pop(handle, None)
            self._begins(handle)
            return results

    def tick(self) -> dict[int, Outputs]:
        """Run all streams that have feeds. If it raises, no state has changed and nothing is submitted any more."""
        with self._lock:
            submitted, self._submitted = self._submitted, {}
            try:
                if self._batched is not None:
                    try:
                        return self._together(submitted)
                    except PlanError as reason:  # sizes for which the plan does not hold
                        self._part(f"the plan does not take these streams: {reason}")
                return self._one_by_one(submitted)
            finally:
                for stage in self._stages.values():
                    stage.handles.clear()
                while len(self._stages) > MOST_STAGES:
                    del self._stages[next(iter(self._stages))]

    def state(self, handle: int) -> dict[str, np.ndarray]:
        """A snapshot of one stream, as of `Stream.state`."""
        with self._lock:
            self._slot(handle)
            if self._batched is None:
                return self._streams[handle].state if handle in self._streams else {}
            return {} if handle in self._fresh else self._snapshot(handle)

    def _slot(self, handle: int) -> int:
        if handle not in self._open:
            raise ModelError(f"no stream {handle} is open")
        return self._open[handle]

    def _checked(self, slot: int, feeds: Mapping[str, Any]) -> Stage:
        """Put feeds that are not like the last ones where those of their shape are."""
        names = [value.name for _, value in self._fed]
        for name in feeds:
            if name not in names:
                raise ShapeError(f"{name!r} is not fed; a stream takes {names}")
        sizes: dict[str, int] = {}
        arrays = []
        for index, value in self._fed:
            if value.name not in feeds:
                raise ShapeError(f"input {value.name!r} is missing")
            arrays.append(checked_feed(value, feeds[value.name], sizes))
            if self._batched is not None and arrays[-1].shape[self._batched.inputs[index]] != 1:
                raise ShapeError(f"input {value.name!r} has shape {arrays[-1].shape}: a submission is of one stream")
        if self._frames is not None:
            arguments: list[Any] = [None] * len(self._model.inputs)
            for (index, _), array in zip(self._fed, arrays, strict=True):
                arguments[index] = array
            self._frames.check(arguments)
        shapes = tuple(array.shape for array in arrays)
        stage = self._stages.get(shapes)
        if stage is None:
            stage = self._stages[shapes] = Stage([value for _, value in self._fed], arrays, self.max_streams)
        stage.put(slot, dict(zip(names, arrays, strict=True)))
        return stage

    def _together(self, submitted: Mapping[int, Stage]) -> dict[int, Outputs]:
        stages = [stage for stage in self._stages.values() if stage.handles]
        for stage in stages:
            if stage.shapes not in self._tried and not self._is_independent(stage):
                self._part("streams side by side do not give what they give alone")
                return self._one_by_one(submitted)
            self._tried.add(stage.shapes)
        results: dict[int, Outputs] = {}
        used: list[ResidentBatch] = []
        for stage in stages:
            handles = sorted(stage.handles)
            for first in range(0, len(handles), self.max_batch):
                some = tuple(handles[first : first + self.max_batch])
                results.update(zip(some, self._batch_for(some, stage, used).run(), strict=True))
        strides = self._cut(results, submitted) if self._warming else {}
        if self._frames is not None and self._frames.keeps_results:
            self._kept.update((handle, self._frames.kept(outputs)) for handle, outputs in results.items())
        at = [1 - batch.at for batch in used]
        try:
            for batch, there in zip(used, at, strict=True):
                batch.at = there
        except BaseException:  # a signal
            for batch, there in zip(used, at, strict=True):
                batch.at = 1 - there
            raise
        self._fed_more(submitted, strides)
        self._forget_batches(keep=max(MOST_BATCHES, len(used)))
        return results if list(results) == list(submitted) else {handle: results[handle] for handle in submitted}

    def _cut(self, results: dict[int, Outputs], submitted: Mapping[int, Stage]) -> dict[int, int]:
        """Take the warm-up out of results: how many strides each of these streams was fed then."""
        assert self._frames is not None
        fed = {}
        for handle in self._warming.keys() & results.keys():
            before = self._warming[handle]
            results[handle] = [result.copy() for result in self._frames.shown(results[handle], before)]
            arrays = submitted[handle].feeds(self._open[handle])
            fed[handle] = before + self._frames.strides_of(arrays)
        return fed

    def _remind(self, stream: Stream, handle: int) -> None:
        """Let a stream that goes on from a snapshot know what a flush needs."""
        if handle in self._last:
            shapes, timeless = self._last[handle]
            feeds: dict[str, np.ndarray] = {
                value.name: np.broadcast_to(np.zeros((), value.dtype.array_type if value.dtype else np.float32), shape)
                for (_, value), shape in zip(self._fed, shapes, strict=True)
            }
            stream.knows({**feeds, **timeless}, self._kept.get(handle))

    def _fed_more(self, submitted: Mapping[int, Stage], strides: Mapping[int, int]) -> None:
        """The states of these streams have moved on."""
        self._fresh.difference_update(submitted)
        if self._frames is None:
            return
        for handle, stage in submitted.items():
            feeds = stage.feeds(self._open[handle]) if self._frames.timeless else {}
            timeless = {name: feed.copy() for name, feed in feeds.items() if name not in self._frames.timing.inputs}
            self._last[handle] = stage.shapes, timeless
        for handle, fed in strides.items():
            if fed < self._frames.warm_up:
                self._warming[handle] = fed
            else:
                del self._warming[handle]

    def _batch_for(self, handles: tuple[int, ...], stage: Stage, used: list[ResidentBatch]) -> ResidentBatch:
        """A batch that has the states of these streams; it is then one of the used ones."""
        batch = self._where.get(handles[0])
        is_there = batch is not None and batch.handles == handles and batch.stage is stage
        if batch is None or not is_there:
            slots = [self._open[handle] for handle in handles]
            states = self._taken_states(handles, slots, stage)
            batch = self._idle_batch(len(handles), stage, used)
            self._put_back(batch)
            batch.start(handles, slots, stage, states)
            self._where.update(dict.fromkeys(handles, batch))
        used.append(batch)
        if self._batches[-1] is not batch:
            self._batches = [*(other for other in self._batches if other is not batch), batch]
        return batch

    def _idle_batch(self, n: int, stage: Stage, used: Sequence[ResidentBatch]) -> ResidentBatch:
        """A batch for so many streams that nobody needs in this tick."""
        idle = [batch for batch in self._batches if batch not in used]
        empty = [batch for batch in idle if not any(self._where.get(handle) is batch for handle in batch.handles)]
        prepared = [batch for batch in empty if len(batch.handles) == n and batch.stage is stage]
        for some in (prepared, empty, idle if len(self._batches) >= MOST_BATCHES else []):
            if some:
                return some[0]
        self._batches.append(self._new_batch())
        return self._batches[-1]

    def _new_batch(self) -> ResidentBatch:
        assert self._batched is not None
        return ResidentBatch(self._batched, self._model.pairs, [index for index, _ in self._fed], self._returned)

    def _forget_batches(self, keep: int) -> None:
        while len(self._batches) > keep:
            self._put_back(self._batches[0])
            del self._batches[0]

    def _taken_states(self, handles: Sequence[int], slots: list[int], stage: Stage) -> list[np.ndarray]:
        """The states of some streams, the stream first; those of new ones as they begin."""
        for handle, slot in zip(handles, slots, strict=True):
            if handle in self._fresh:
                self._begin(handle, stage.feeds(slot))
            elif handle in self._where:
                self._put_back(self._where[handle])
        return [bank[slots] for bank in self._banks]

    def _put_back(self, batch: ResidentBatch) -> None:
        """Move the states of a batch into the banks."""
        rows = [row for row, handle in enumerate(batch.handles) if self._where.get(handle) is batch]
        if not rows:
            return
        slots = [self._open[batch.handles[row]] for row in rows]
        for bank, states in zip(self._banks, batch.states(), strict=True):
            bank[slots] = states[rows]
        for row in rows:
            del self._where[batch.handles[row]]

    def _begin(self, handle: int, feeds: Mapping[str, Any]) -> None:
        self._where.pop(handle, None)
        starts = self._rows_of(self._first_states(feeds))
        if not self._banks:
            self._banks = [np.zeros((self.max_streams, *row.shape), row.dtype) for row in starts]
        for (before, _), bank, row in zip(self._model.pairs, self._banks, starts, strict=True):
            if bank.shape[1:] != row.shape:
                name = self._model.inputs[before].name
                raise ShapeError(f"state {name!r} of a new stream differs in shape from those of other streams")
            bank[self._open[handle]] = row

    def _first_states(self, feeds: Mapping[str, Any]) -> list[np.ndarray]:
        return self._model.first_states([feeds.get(value.name) for value in self._model.inputs])

    def _rows_of(self, states: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The states of one stream without their axis of streams."""
        assert self._batched is not None
        axes = [self._batched.inputs[before] for before, _ in self._model.pairs]
        return [np.moveaxis(state, axis, 0)[0] for state, axis in zip(states, axes, strict=True)]

    def _snapshot(self, handle: int) -> dict[str, np.ndarray]:
        assert self._batched is not None
        batch = self._where.get(handle)
        if batch is None:
            rows = [bank[self._open[handle]] for bank in self._banks]
        else:
            rows = [states[batch.handles.index(handle)] for states in batch.states()]
        pairs = zip(self._model.pairs, rows, strict=True)
        return {
            self._model.inputs[before].name: np.expand_dims(row, self._batched.inputs[before]).copy()
            for (before, _), row in pairs
        }

    def _is_independent(self, stage: Stage) -> bool:
        """Whether noise of the shapes of a stage gives streams side by side what it gives them alone, bit for bit."""
        rng = np.random.default_rng(0)
        example = stage.feeds(self._open[stage.handles[0]])
        names = [self._model.inputs[before].name for before, _ in self._model.pairs]
        try:
            firsts = self._first_states(example)
            states = [[_noise_like(state, rng) for state in firsts] for _ in range(TRIED_STREAMS)]
            fed = self._spread(states)
            noise = Stage([value for _, value in self._fed], list(example.values()), TRIED_STREAMS)
            for slot in range(TRIED_STREAMS):
                noise.put(slot, {name: _noise_like(array, rng) for name, array in example.items()})
            together = [np.stack(rows) for rows in zip(*(self._rows_of(some) for some in states), strict=True)]
            slots = list(range(TRIED_STREAMS))
            batch = self._new_batch()
            batch.start(tuple(slots), slots, noise, together)
            results = batch.run()
            batch.at = 1 - batch.at
            alone = self._model.stream()
            for slot in slots:
                alone.load(dict(zip(names, states[slot], strict=True)))
                outputs = alone.step(noise.feeds(slot))
                after = self._rows_of([alone.state[name] for name in names])
                ours = [*results[slot], *(state[slot] for state in batch.states())]
                if self._frames is not None and fed:
                    ours[: len(outputs)] = self._frames.shown(results[slot], fed[slot])
                if not all(map(_same, ours, [*outputs, *after])):
                    return False
        except Error:  # noise is not what this model takes
            return False
        return True

    def _spread(self, states: list[list[np.ndarray]]) -> list[int]:
        """Let streams that are tried be at different places, the first at its start: the strides of each."""
        if self._frames is None or self._frames.position is None:
            return []
        fed = [0, *range(self._frames.warm_up, self._frames.warm_up + len(states) - 1)]
        for each, strides in zip(states, fed, strict=True):
            each[self._frames.position] = np.full_like(each[self._frames.position], strides)
        return fed

    def _part(self, reason: str) -> None:
        """From now on each stream runs alone."""
        snapshots = {handle: self._snapshot(handle) for handle in self._open if handle not in self._fresh}
        self._batched, self.reason = None, reason
        self._batches, self._where, self._banks = [], {}, []
        for handle, snapshot in snapshots.items():
            self._streams[handle] = self._model.stream()
            self._streams[handle].load(snapshot)
            self._remind(self._streams[handle], handle)

    def _one_by_one(self, submitted: Mapping[int, Stage]) -> dict[int, Outputs]:
        results: dict[int, Outputs] = {}
        before = {handle: self._streams[handle].state for handle in submitted if handle in self._streams}
        try:
            for handle, stage in submitted.items():
                if handle not in self._streams:
                    self._streams[handle] = self._model.stream()
                results[handle] = self._streams[handle].step(stage.feeds(self._open[handle]))
        except BaseException:
            for handle in results:
                self._streams[handle].load(before.get(handle, {}))
            raise
        self._fed_more(submitted, {})
        return results


def _noise_like(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(array.shape).astype(array.dtype) if array.dtype.kind == "f" else array


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether these are the same bits, or NaN in the same places."""
    return a.shape == b.shape and (a.tobytes() == b.tobytes() or np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
