"""Streams of a pool side by side, in the memory of the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from webrnn.ir import Value

from .batching import Batched
from .carriers import Pairs, PlanCarrier, Shapes


class Stage:
    """Feeds of one shape that wait for the next tick: a row for each slot of the pool."""

    def __init__(self, fed: Sequence[Value], arrays: Sequence[np.ndarray], n_slots: int):
        """`arrays` are feeds that were found right; others like them need no other check."""
        self.shapes: Shapes = tuple(array.shape for array in arrays)
        self.handles: list[int] = []
        """Who has handed in feeds for the next tick."""
        self.whole = [np.zeros((n_slots, *array.shape), array.dtype) for array in arrays]
        self._rows = [
            (value.name, array.shape, array.dtype, list(_split(whole)))
            for value, array, whole in zip(fed, arrays, self.whole, strict=True)
        ]

    def put(self, slot: int, feeds: Mapping[str, Any]) -> bool:
        """Copy feeds into a row; False if they are not like the others."""
        if len(feeds) != len(self._rows):
            return False
        for name, shape, dtype, rows in self._rows:
            array = feeds.get(name)
            if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
                return False
            rows[slot][...] = array
        return True

    def feeds(self, slot: int) -> dict[str, np.ndarray]:
        """What is in a row: not a copy."""
        return {name: rows[slot] for name, _, _, rows in self._rows}


class ResidentBatch:
    """Runs streams together. As long as they are the same ones, their states stay where the kernels have them."""

    def __init__(self, batched: Batched, pairs: Pairs, fed: Sequence[int], returned: Sequence[int]):
        self._batched, self._pairs, self._fed, self._returned = batched, pairs, fed, returned
        self._state_axes = [batched.inputs[before] for before, _ in pairs]
        self._carrier = PlanCarrier(batched.program, pairs)
        self._copies: list[tuple[np.ndarray, np.ndarray, Any]] = []
        """For each feed: its place and the rows of the stage, the stream first, and which rows."""
        self._moved: list[tuple[np.ndarray, tuple[int, ...]]] = []
        """For each output: where it is, the stream first, and the shape of what all streams get of it."""
        self.handles: tuple[int, ...] = ()
        """Whose states are here, in the order of their rows."""
        self.stage: Stage | None = None
        self.at = 0
        """Where the states are."""

    def start(self, handles: tuple[int, ...], slots: list[int], stage: Stage, states: Sequence[np.ndarray]) -> None:
        """Take in streams with feeds of a stage; the states have the stream first."""
        self.handles, self.stage = (), None
        n = len(handles)
        shapes: list[tuple[int, ...]] = [()] * len(self._batched.inputs)
        for index, shape in zip(self._fed, stage.shapes, strict=True):
            shapes[index] = _replaced(shape, self._batched.inputs[index], n)
        moved = [np.moveaxis(state, 0, axis) for state, axis in zip(states, self._state_axes, strict=True)]
        for (before, _), state in zip(self._pairs, moved, strict=True):
            shapes[before] = state.shape
        self.at = self._carrier.start(tuple(shapes), moved)
        rows = slice(slots[0], slots[0] + n) if slots == list(range(slots[0], slots[0] + n)) else np.array(slots)
        self._copies = []
        for index, place, whole in zip(self._fed, self._carrier.feed_places, stage.whole, strict=True):
            axis = self._batched.inputs[index]
            source = np.squeeze(whole, axis + 1)
            self._copies.append(
                (np.moveaxis(place, axis, 0), source[rows] if isinstance(rows, slice) else source, rows)
            )
        self._moved = []
        for index in self._returned:
            axis, place = self._batched.outputs[index], self._carrier.output_places[index]
            self._moved.append((np.moveaxis(place, axis, 0), (n, *_replaced(place.shape, axis, 1))))
        self.handles, self.stage = handles, stage

    def run(self) -> list[list[np.ndarray]]:
        """The outputs of each stream for what the stage has; the next states are at `1 - at`."""
        for place, source, rows in self._copies:
            place[...] = source if isinstance(rows, slice) else source[rows]
        self._carrier.execute(self.at)
        split = [_split(place.copy("C").reshape(shape)) for place, shape in self._moved]
        if len(split) == 1:
            return [[row] for row in split[0]]
        return [list(row) for row in zip(*split, strict=True)] if split else [[] for _ in self.handles]

    def states(self) -> list[np.ndarray]:
        """The states, the stream first: not copies."""
        states = zip(self._carrier.states(self.at), self._state_axes, strict=True)
        return [np.moveaxis(state, axis, 0) for state, axis in states]


def _split(array: np.ndarray) -> Sequence[np.ndarray]:
    """The parts along the first axis: views, also of an array of one axis."""
    return list(array) if array.ndim > 1 else [array[i, ...] for i in range(len(array))]


def _replaced(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])
