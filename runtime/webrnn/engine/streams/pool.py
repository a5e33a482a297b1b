"""`StreamPool`: many streams of one model, one batched run a tick."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from webrnn.errors import ModelError, PlanError, ShapeError

from ..forking import Abandoned, new_lock
from ..javascript import mapping_of
from .batching import Batched
from .frames import Frames
from .independence import is_independent
from .pool_feeds import PoolFeeds, handle_numbers
from .pool_states import PoolStates
from .resident import LastTick, ResidentBatch, Stage
from .stream import Stream
from .streaming import StreamingModel
from .tick_results import Group, TickResults

MOST_STAGES = 8
"""Shapes of feeds for which room is kept."""

Outputs = list[Any]
Answer = TypeVar("Answer")
_NO_TICKETS = np.zeros(0, np.int64)


class StreamPool:
    """Streams that come and go. `session.pool()` makes it.

    `open` gives a handle, `submit` hands in the next feeds of a stream, `tick` runs all that were handed in and returns
    their outputs. What a stream gets does not depend on the others, bit for bit. `open_many`, `submit_many` and
    `tick_many` do the same for many streams, with one array for each input and output:

    >>> import numpy as np
    >>> import webrnn
    >>> from webrnn.bench.models import streaming_gru
    >>> pool = webrnn.InferenceSession(streaming_gru(64, 128)).pool(max_streams=1000)
    >>> handles = pool.open_many(300)
    >>> pool.submit_many(handles, {"x": np.ones((1, 300, 64), np.float32)})  # as a model for 300 streams takes it
    >>> pool.tick_many().arrays[0].shape  # y of one stream is [1, 1, 1, 128]
    (300, 1, 1, 1, 128)
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
        self._states = None if isinstance(batched, str) else PoolStates(model, batched, max_streams, self.max_batch)
        """None if streams run one after the other."""
        timing = model.timing
        self._frames = None if timing is None else Frames(timing, model.inputs, model.outputs, model.pairs)
        self._feeds = PoolFeeds(model, self._batched, self._frames)
        self._open: dict[int, int] = {}
        """The slot of each stream."""
        self._handles = np.full(max_streams, -1, np.int64)
        """Who has a slot."""
        self._next_handles = np.arange(max_streams, dtype=np.int64)
        """A handle tells its slot: it is the remainder of a division by the number of slots."""
        self._free = list(range(max_streams))[::-1]
        self._tick = 0
        """Its number. What was handed in for another one counts no more."""
        self._tickets = np.full(max_streams, -1, np.int64)
        """For which tick a slot has feeds."""
        self._ticket_of = memoryview(self._tickets)  # type: ignore[arg-type]
        """The same: quicker for one slot."""
        self._next_ticket, self._newest_ticket = 0, -1
        """The number of the next submission; the tick that the last one was for."""
        self._asked: bytes | list[int] | None = None
        """The handles of the last submission of many, an array as bytes: most often the next ones are the same."""
        self._answered: np.ndarray | None = None
        """Their slots."""
        self._different: np.ndarray | None = None
        """Slots of which all are known to be different."""
        self._stages: dict[Any, Stage] = {} if self._states is None else self._states.stages
        self._stage: Stage | None = None
        """The one that was used last."""
        self._strides = np.zeros(max_streams, np.int64)
        """How many strides a slot was fed, as long as its results may have frames that are not shown."""
        self._last = np.full(max_streams, None, object)
        """The LastTick of each slot, if streams have frames."""
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
            return self._opened()

    def open_many(self, count: int) -> np.ndarray:
        """So many new streams, or none if there is no room for all: an array of handles."""
        with self._lock:
            if not 0 <= count <= len(self._free):
                raise ModelError(
                    f"no {count} streams can be opened: {len(self._open)} of {self.max_streams} are open already"
                )
            return np.array([self._opened() for _ in range(count)], np.int64)

    def _opened(self) -> int:
        slot = self._free.pop()
        handle = int(self._next_handles[slot])
        self._next_handles[slot] += self.max_streams
        self._begins(slot)
        self._last[slot] = None
        self._handles[slot] = handle
        self._open[handle] = slot
        return handle

    def _begins(self, slot: int) -> None:
        """Of a stream that has no states yet."""
        if self._states is not None:
            self._states.begin(slot)
        self._strides[slot] = 0

    def close(self, handle: int) -> None:
        """End a stream; what was submitted for it is dropped."""
        with self._lock:
            self._slot(handle)
            self._end([handle])

    def close_many(self, handles: Sequence[int] | np.ndarray) -> None:
        """End streams, or none if one of them is not open."""
        with self._lock:
            self._slots(handles)
            self._end([int(handle) for handle in handles])

    def _end(self, handles: list[int]) -> None:
        slots = [self._open.pop(handle) for handle in dict.fromkeys(handles)]
        self._asked = self._answered = self._different = None
        if (self._tickets[slots] == self._tick).any():
            is_gone = np.zeros(self.max_streams, np.bool_)
            is_gone[slots] = True
            for stage in self._waiting():
                stage.drop(is_gone)
        self._handles[slots] = -1
        self._tickets[slots] = -1
        if self._states is not None:
            self._states.begin(slots)
        for handle in handles:
            self._streams.pop(handle, None)
        self._free.extend(slots)

    def submit(self, handle: int, feeds: Mapping[str, Any]) -> None:
        """Hand in what a stream gets in the next tick, as for `Stream.step`. The feeds are copied."""
        if type(feeds) is not dict:
            feeds = mapping_of(feeds)
        with self._lock:
            slot = self._open.get(handle)
            if slot is None:
                slot = self._slot(handle)
            stage, tick, ticket = self._stage, self._tick, self._next_ticket
            if self._ticket_of[slot] == tick:
                raise ShapeError(f"stream {handle} has feeds for this tick already")
            n = 0 if stage is None else stage.put_one(tick, feeds, slot, ticket)
            if stage is None or not n:
                feeds = self._feeds.checked(feeds)
                stage = self._stage = self._stage_for(list(feeds.values()))
                n = stage.put_one(tick, feeds, slot, ticket)
            self._ticket_of[slot] = self._newest_ticket = tick
            stage.n, stage.tick = n, tick
            self._next_ticket = ticket + 1

    def submit_many(self, handles: Sequence[int] | np.ndarray, feeds: Mapping[str, Any]) -> None:
        """Hand in what many streams get in the next tick: one array for each input, which is copied.

        Row i of an array is for stream handles[i]. An array is [streams, *shape of one stream's], or, if streams run
        together, what the model takes for many streams: the shape of one stream's, in which the axis that counts
        streams (`stream_axes`) is as long as `handles`. The number of axes tells which. If it raises, nothing of it
        was handed in.
        """
        feeds = mapping_of(feeds)
        with self._lock:
            slots = self._slots(handles)
            n = len(slots)
            is_first = self._newest_ticket != self._tick
            if not is_first and (self._tickets[slots] == self._tick).any():
                first = slots[self._tickets[slots] == self._tick][0]
                raise ShapeError(f"stream {self._handles[first]} has feeds for this tick already")
            if not n:
                return
            stage = self._stage
            arrays = None if stage is None else stage.of_many(feeds, self._feeds.axes, n)
            if stage is None or arrays is None:
                arrays = self._feeds.checked_many(feeds, n)
                stage = self._stage = self._stage_for([array[0] for array in arrays.values()])
            n_rows = stage.put(self._tick, arrays, slots, self._next_ticket)
            self._mark(slots)
            stage.n, stage.tick = n_rows, self._tick
            self._next_ticket += n

    def _mark(self, slots: np.ndarray) -> None:
        """These slots have feeds for this tick; ShapeError if one of them is there twice."""
        if slots is not self._different:
            before = np.count_nonzero(self._tickets == self._tick)
            self._tickets[slots] = self._tick
            if np.count_nonzero(self._tickets == self._tick) < before + len(slots):
                self._tickets[slots] = -1
                slot = next(slot for slot in slots if np.count_nonzero(slots == slot) > 1)
                raise ShapeError(f"stream {self._handles[slot]} is there twice")
            self._different = slots
        self._newest_ticket = self._tick
        self._tickets[slots] = self._tick

    @property
    def stream_axes(self) -> dict[str, int] | None:
        """Which axis of each input that is fed counts streams; None if streams run one after the other."""
        return self._feeds.axes

    def _stage_for(self, arrays: list[np.ndarray]) -> Stage:
        shapes = tuple(array.shape for array in arrays)
        if shapes not in self._stages:
            kernels = None if self._batched is None else self._batched.program.kernels
            self._stages[shapes] = Stage(self._feeds.values, arrays, kernels)
        return self._stages[shapes]

    def flush(self, handle: int) -> Outputs:
        """End the sequence of a stream: the frames that are left, as of `Stream.flush`. The stream stays open; what is
        submitted next begins a new sequence. If it raises, the stream is as it was."""
        with self._lock:
            slot = self._idle_slot(handle, "flush")
            stream = self._streams.get(handle)
            if stream is None:
                stream, snapshot = self._model.stream(), self._snapshot(slot)
                if snapshot is not None:
                    stream.load(snapshot)
                    self._remind(stream, slot)
            results = stream.flush()
            self._begins(slot)
            return results

    def tick(self) -> dict[int, Outputs]:
        """Run all streams that have feeds: the outputs of each, in the order in which feeds were submitted. If it
        raises, no state has changed and nothing is submitted any more."""
        return self._ticked(TickResults.by_handle)

    def tick_many(self) -> TickResults:
        """The same with one array for each output, of which each stream has a row."""
        return self._ticked(lambda results: results)

    def _ticked(self, make: Callable[[TickResults], Answer]) -> Answer:
        """A tick. What `make` makes of its results is made before states change."""
        with self._lock:
            stages = self._waiting()
            self._tick += 1
            try:
                if self._batched is not None:
                    try:
                        return self._together(stages, make)
                    except PlanError as reason:  # sizes for which the plan does not hold
                        self._part(f"the plan does not take these streams: {reason}")
                return make(self._one_by_one(stages))
            finally:
                while len(self._stages) > MOST_STAGES:
                    self._forget_stage(next(iter(self._stages)))

    def state(self, handle: int) -> dict[str, np.ndarray]:
        """A snapshot of one stream, as of `Stream.state`."""
        with self._lock:
            slot = self._slot(handle)
            if self._batched is None:
                return self._streams[handle].state if handle in self._streams else {}
            return self._snapshot(slot) or {}

    def load(self, handle: int, state: Mapping[str, Any]) -> None:
        """Let a stream go on from a snapshot, as `Stream.load`. An empty one is the start."""
        with self._lock:
            slot = self._idle_slot(handle, "load")
            stream = self._model.stream()
            stream.load(state)
            states = list(stream.state.values())
            if self._states is None:
                self._streams[handle] = stream
            elif states:
                self._states.load(slot, states)
            else:
                self._states.begin(slot)
            self._strides[slot] = self._frames.fed(states) if states and self._frames is not None else 0
            if self._last[slot] is not None:  # results of before are not those of this sequence
                self._last[slot] = LastTick(self._last[slot].shapes, self._last[slot].timeless)

    def _slot(self, handle: int) -> int:
        if handle not in self._open:
            raise ModelError(f"no stream {handle} is open")
        return self._open[handle]

    def _idle_slot(self, handle: int, what: str) -> int:
        slot = self._slot(handle)
        if self._tickets[slot] == self._tick:
            raise ModelError(f"stream {handle} has feeds for the next tick: tick() before {what}()")
        return slot

    def _slots(self, handles: Sequence[int] | np.ndarray) -> np.ndarray:
        is_array = isinstance(handles, np.ndarray) and handles.dtype == np.int64 and handles.ndim == 1
        asked: Any = handles.tobytes() if isinstance(handles, np.ndarray) and is_array else handles
        if self._answered is not None and type(asked) is type(self._asked) and asked == self._asked:
            return self._answered
        numbers = handle_numbers(handles)
        slots = numbers % self.max_streams
        is_open = (self._handles[slots] == numbers) & (numbers >= 0)
        if not is_open.all():
            raise ModelError(f"no stream {numbers[~is_open][0]} is open")
        self._asked, self._answered = (asked if is_array else numbers.tolist()), slots
        return slots

    def _waiting(self) -> list[Stage]:
        """Where feeds for this tick are."""
        return [stage for stage in self._stages.values() if stage.tick == self._tick and stage.n]

    def _together(self, stages: Sequence[Stage], make: Callable[[TickResults], Answer]) -> Answer:
        assert self._batched is not None
        assert self._states is not None
        for stage in stages:
            if not stage.is_tried and not is_independent(self._model, self._batched, self._frames, stage):
                self._part("streams side by side do not give what they give alone")
                return make(self._one_by_one(stages))
            stage.is_tried = True
        groups: list[Group] = []
        places: list[tuple[Stage, ResidentBatch, np.ndarray, list[np.ndarray], np.ndarray]] = []
        for stage in stages:
            order = stage.order()
            batch, rows, side = self._states.batch_for(stage, order, is_first=not places)
            assert stage.programs is not None
            before, after = batch.sides[side], batch.sides[1 - side]
            arrays = stage.programs.run(len(order), stage.ordered(rows), before, after)
            if rows is not None:
                arrays = [array[rows] for array in arrays]
            groups += self._groups(stage, order, arrays, len(stages) > 1)
            next_places = batch.first_places(len(order), 1 - side) if rows is None else batch.places(rows, 1 - side)
            places.append((stage, batch, order, arrays, next_places))
        answer = make(TickResults(groups))
        self._states.move([order for _, _, order, _, _ in places], [place for *_, place in places])
        for stage, batch, order, arrays, _ in places:
            batch.n = len(order)
            self._fed_more(stage, order, arrays)
        self._states.forget_batches([batch for _, batch, *_ in places])
        return answer

    def _groups(self, stage: Stage, order: np.ndarray, arrays: list[np.ndarray], is_one_of_many: bool) -> list[Group]:
        """Results by their shapes: streams in their warm-up show less."""
        handles, frames = self._handles[order], self._frames
        if frames is None or not frames.warm_up or (self._strides[order] >= frames.warm_up).all():
            return [Group(handles, arrays, stage.tickets() if is_one_of_many else _NO_TICKETS)]
        strides, tickets = np.minimum(self._strides[order], frames.warm_up), stage.tickets()
        groups = []
        for fed in np.unique(strides):
            some = np.flatnonzero(strides == fed)
            shown = frames.shown([array[some] for array in arrays], int(fed), leading=1)
            groups.append(Group(handles[some], [array.copy() for array in shown], tickets[some]))
        return groups

    def _fed_more(self, stage: Stage, order: np.ndarray, arrays: list[np.ndarray]) -> None:
        """The states of these streams have moved on."""
        frames = self._frames
        if frames is None:
            return
        last = stage.last
        for place in frames.timeless:
            name = self._model.inputs[place].name
            _rows_by_slot(last.timeless, name, stage.named_rows(name), self.max_streams)[order] = stage.named_rows(name)
        for number in frames.timeless_outputs if frames.keeps_results else ():
            _rows_by_slot(last.kept, number, arrays[number], self.max_streams)[order] = arrays[number]
        self._last[order] = last
        fed = frames.strides_of(dict(zip(self._feeds.places, stage.shapes, strict=True))) if frames.warm_up else 0
        self._strides[order] += fed

    def _remind(self, stream: Stream, slot: int) -> None:
        """Let a stream that goes on from a snapshot know what a flush needs."""
        last: LastTick | None = self._last[slot]
        if last is None:
            return
        feeds = self._feeds.zeros(last.shapes)
        timeless = {name: rows[slot].copy() for name, rows in last.timeless.items()}
        kept = {number: rows[slot].copy() for number, rows in last.kept.items()}
        stream.knows({**feeds, **timeless}, kept or None)

    def _snapshot(self, slot: int) -> dict[str, np.ndarray] | None:
        """Copies of the states of a slot, by name; None if it has none yet."""
        states = None if self._states is None else self._states.of(slot)
        if states is None:
            return None
        names = [self._model.inputs[before].name for before, _ in self._model.pairs]
        return {name: state.copy() for name, state in zip(names, states, strict=True)}

    def _forget_stage(self, shapes: Any) -> None:
        if self._states is not None:
            self._states.put_back(self._stages[shapes])
        del self._stages[shapes]

    def _part(self, reason: str) -> None:
        """From now on each stream runs alone."""
        snapshots = {handle: self._snapshot(slot) for handle, slot in self._open.items()}
        self._batched, self._states, self.reason = None, None, reason
        for stage in self._stages.values():
            stage.programs, stage.batches = None, []
        for handle, snapshot in snapshots.items():
            if snapshot is not None:
                self._streams[handle] = self._model.stream()
                self._streams[handle].load(snapshot)
                self._remind(self._streams[handle], self._open[handle])

    def _one_by_one(self, stages: Sequence[Stage]) -> TickResults:
        submitted = [
            (int(ticket), int(self._handles[slot]), stage, row)
            for stage in stages
            for row, (ticket, slot) in enumerate(zip(stage.tickets(), stage.order(), strict=True))
        ]
        results: dict[int, Outputs] = {}
        before = {handle: self._streams[handle].state for _, handle, *_ in submitted if handle in self._streams}
        try:
            for _, handle, stage, row in sorted(submitted, key=lambda each: each[0]):
                if handle not in self._streams:
                    self._streams[handle] = self._model.stream()
                results[handle] = self._streams[handle].step(stage.feeds(row))
        except BaseException:
            for handle in results:
                self._streams[handle].load(before.get(handle, {}))
            raise
        return TickResults(outputs=results)


def _rows_by_slot(tables: dict[Any, np.ndarray], key: Any, like: np.ndarray, n_slots: int) -> np.ndarray:
    if key not in tables:
        tables[key] = np.zeros((n_slots, *like.shape[1:]), like.dtype)
    return tables[key]
