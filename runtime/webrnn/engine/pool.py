"""`StreamPool`: many streams of one model, one batched run a tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from webrnn.errors import ModelError, ShapeError

from .batching import BatchAxes
from .feeds import checked_feed
from .plan_program import PlanProgram
from .stream import Stream
from .streaming import StreamingModel

MOST_INSTANCES = 8
"""Batch sizes for which a prepared instance of the plan is kept."""

Outputs = list[np.ndarray]


class Batched:
    """A plan that takes many streams, and the axes that count them."""

    def __init__(self, program: PlanProgram, axes: BatchAxes):
        self.program, self.axes = program, axes
        self._instances: dict[tuple[tuple[int, ...], ...], PlanProgram] = {}

    def instance(self, shapes: tuple[tuple[int, ...], ...]) -> PlanProgram:
        """The plan, bound to inputs of these shapes."""
        found = self._instances.pop(shapes, None)
        if found is None:
            while len(self._instances) >= MOST_INSTANCES:
                self._instances.pop(next(iter(self._instances)))
            found = self.program.another()
            found.bind(shapes)
        self._instances[shapes] = found
        return found


class StreamPool:
    """Streams that come and go. `session.pool()` makes it.

    `open` gives a handle, `submit` hands in the next feeds of a stream, `tick` runs all that were handed in and returns
    their outputs. What a stream gets does not depend on the others, bit for bit.
    """

    def __init__(self, model: StreamingModel, max_streams: int, batched: Batched | None, max_batch: int | None = None):
        if max_streams < 1:
            raise ModelError(f"a pool of {max_streams} streams")
        self.max_streams, self.max_batch = max_streams, max_batch or max_streams
        self._model, self._batched, self._lock = model, batched, Lock()
        self._streams: dict[int, Stream] = {}
        """A stream each, when they are run one after the other."""
        self._free = list(range(max_streams))[::-1]
        self._slots: dict[int, int] = {}
        self._banks: list[np.ndarray] = []
        """For each state the values of all slots, the slot first."""
        self._fresh: set[int] = set()
        self._submitted: dict[int, list[Any]] = {}
        self._next_handle = 0
        self._is_tried = False
        carried, given = {before for before, _ in model.pairs}, {after for _, after in model.pairs}
        self._fed = [index for index in range(len(model.inputs)) if index not in carried]
        self._returned = [index for index in range(len(model.outputs)) if index not in given]

    @property
    def batched(self) -> bool:
        """Whether streams run together."""
        return self._batched is not None

    def __len__(self) -> int:
        return len(self._slots)

    def open(self) -> int:
        """A new stream."""
        with self._lock:
            if not self._free:
                raise ModelError(f"the pool is full: {self.max_streams} streams are open")
            handle, self._next_handle = self._next_handle, self._next_handle + 1
            self._slots[handle] = self._free.pop()
            self._fresh.add(handle)
            return handle

    def close(self, handle: int) -> None:
        with self._lock:
            self._free.append(self._slot(handle))
            del self._slots[handle]
            self._fresh.discard(handle)
            self._submitted.pop(handle, None)
            self._streams.pop(handle, None)

    def submit(self, handle: int, feeds: Mapping[str, Any]) -> None:
        """Hand in what a stream gets in the next tick; as for `Stream.step`."""
        with self._lock:
            self._slot(handle)
            if handle in self._submitted:
                raise ShapeError(f"stream {handle} has feeds for this tick already")
            self._submitted[handle] = self._checked(feeds)

    def tick(self) -> dict[int, Outputs]:
        """Run all streams that have feeds. If it raises, no state has changed and nothing is submitted any more."""
        with self._lock:
            submitted, self._submitted = self._submitted, {}
            if self._batched is not None and not self._is_tried:
                self._try_batching(submitted)
            if self._batched is None:
                return self._one_by_one(submitted)
            groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
            for handle, arguments in submitted.items():
                groups.setdefault(tuple(a.shape for a in arguments), []).append(handle)
            results: dict[int, Outputs] = {}
            after: list[tuple[list[int], list[np.ndarray]]] = []
            for handles in groups.values():
                for first in range(0, len(handles), self.max_batch):
                    some = handles[first : first + self.max_batch]
                    outputs, states = self._run(some, [submitted[handle] for handle in some])
                    results.update(outputs)
                    after.append(([self._slots[handle] for handle in some], states))
            for slots, states in after:
                for bank, state in zip(self._banks, states, strict=True):
                    bank[slots] = state
            self._fresh.difference_update(results)
            return {handle: results[handle] for handle in submitted}

    def _try_batching(self, submitted: dict[int, list[Any]]) -> None:
        """Whether two streams side by side give what they give alone, seen once on real data; else they stay alone."""
        shapes = {handle: tuple(a.shape for a in arguments) for handle, arguments in submitted.items()}
        pair = next(([a, b] for a in shapes for b in shapes if a < b and shapes[a] == shapes[b]), None)
        if pair is None:
            return
        feeds = [submitted[handle] for handle in pair]
        together, states = self._run(pair, feeds)
        for row, handle in enumerate(pair):
            alone, own_states = self._run([handle], [feeds[row]])
            same = all(map(_same_bits, together[handle], alone[handle]))
            if not same or not all(_same_bits(a[row], b[0]) for a, b in zip(states, own_states, strict=True)):
                self._part_streams()
                return
        self._is_tried = True

    def _part_streams(self) -> None:
        """From now on each stream runs alone."""
        snapshots = {handle: self._snapshot(handle) for handle in self._slots if handle not in self._fresh}
        self._batched = None
        for handle, snapshot in snapshots.items():
            self._streams[handle] = self._model.stream()
            self._streams[handle].load(snapshot)

    def _snapshot(self, handle: int) -> dict[str, np.ndarray]:
        assert self._batched is not None
        names = [self._model.inputs[before].name for before, _ in self._model.pairs]
        axes = [self._batched.axes.inputs[before] for before, _ in self._model.pairs]
        rows = zip(names, self._banks, axes, strict=True)
        return {name: np.expand_dims(bank[self._slots[handle]], axis).copy() for name, bank, axis in rows}

    def state(self, handle: int) -> dict[str, np.ndarray]:
        """A snapshot of one stream, as of `Stream.state`."""
        with self._lock:
            self._slot(handle)
            if self._batched is None:
                return self._streams[handle].state if handle in self._streams else {}
            if handle in self._fresh or not self._banks:
                return {}
            return self._snapshot(handle)

    def _slot(self, handle: int) -> int:
        if handle not in self._slots:
            raise ModelError(f"no stream {handle} is open")
        return self._slots[handle]

    def _checked(self, feeds: Mapping[str, Any]) -> list[Any]:
        inputs = self._model.inputs
        names = [inputs[index].name for index in self._fed]
        for name in feeds:
            if name not in names:
                raise ShapeError(f"{name!r} is not fed; a stream takes {names}")
        sizes: dict[str, int] = {}
        arguments = []
        for index in self._fed:
            if inputs[index].name not in feeds:
                raise ShapeError(f"input {inputs[index].name!r} is missing")
            arguments.append(checked_feed(inputs[index], feeds[inputs[index].name], sizes))
            if self._batched is not None and arguments[-1].shape[self._batched.axes.inputs[index]] != 1:
                raise ShapeError(f"input {inputs[index].name!r} has shape {arguments[-1].shape}: one stream at a time")
        return arguments

    def _one_by_one(self, submitted: dict[int, list[Any]]) -> dict[int, Outputs]:
        results = {}
        before = {handle: self._streams[handle].state for handle in submitted if handle in self._streams}
        names = [self._model.inputs[index].name for index in self._fed]
        try:
            for handle, arguments in submitted.items():
                stream = self._streams.setdefault(handle, self._model.stream())
                results[handle] = stream.step(dict(zip(names, arguments, strict=True)))
        except Exception:
            for handle in results:
                if before.get(handle):
                    self._streams[handle].load(before[handle])
                else:
                    self._streams.pop(handle)
            raise
        return results

    def _run(self, handles: Sequence[int], feeds: list[list[Any]]) -> tuple[dict[int, Outputs], list[np.ndarray]]:
        """One run for these streams; their outputs, and their next states with the stream first."""
        assert self._batched is not None
        axes, model = self._batched.axes, self._model
        states = self._states_of(handles, feeds)
        shapes: list[tuple[int, ...]] = [()] * len(model.inputs)
        for position, index in enumerate(self._fed):
            shapes[index] = _with_size(feeds[0][position].shape, axes.inputs[index], len(handles))
        for (before, _), state in zip(model.pairs, states, strict=True):
            shapes[before] = _with_size((1, *state.shape[1:]), 0, len(handles), axes.inputs[before])
        instance = self._batched.instance(tuple(shapes))
        for position, index in enumerate(self._fed):
            place = instance.inputs[index]
            np.concatenate([arguments[position] for arguments in feeds], axes.inputs[index], out=place)
        for (before, _), state in zip(model.pairs, states, strict=True):
            np.moveaxis(instance.inputs[before], axes.inputs[before], 0)[...] = state
        instance.execute()
        results = {}
        split = [np.split(instance.outputs[index], len(handles), axes.outputs[index]) for index in self._returned]
        for row, handle in enumerate(handles):
            results[handle] = [np.array(parts[row]) for parts in split]
        following = [np.moveaxis(instance.outputs[after], axes.outputs[after], 0).copy() for _, after in model.pairs]
        return results, following

    def _states_of(self, handles: Sequence[int], feeds: list[list[Any]]) -> list[np.ndarray]:
        """The states of some streams, the stream first; those of new ones as they begin."""
        for handle, arguments in zip(handles, feeds, strict=True):
            if handle in self._fresh:
                self._begin(handle, arguments)
        slots = [self._slots[handle] for handle in handles]
        return [bank[slots] for bank in self._banks]

    def _begin(self, handle: int, arguments: list[Any]) -> None:
        assert self._batched is not None
        model = self._model
        whole: list[Any] = [None] * len(model.inputs)
        for position, index in enumerate(self._fed):
            whole[index] = arguments[position]
        starts = model.first_states(whole)
        axes = [self._batched.axes.inputs[before] for before, _ in model.pairs]
        rows = [np.moveaxis(start, axis, 0)[0] for start, axis in zip(starts, axes, strict=True)]
        if not self._banks:
            self._banks = [np.zeros((self.max_streams, *row.shape), row.dtype) for row in rows]
        for bank, row in zip(self._banks, rows, strict=True):
            bank[self._slots[handle]] = row


def _with_size(shape: tuple[int, ...], axis: int, size: int, to: int | None = None) -> tuple[int, ...]:
    """A shape with another size along an axis, which is then moved."""
    sizes = list(shape)
    sizes[axis] = size
    if to is not None:
        sizes.insert(to, sizes.pop(axis))
    return tuple(sizes)


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.tobytes() == b.tobytes()
