"""Streams of a pool side by side, in the memory of the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .batching import Batched
from .carriers import Pairs, PlanCarrier, Shapes


class ResidentBatch:
    """Runs streams together. As long as they are the same ones, their states stay where the kernels have them."""

    def __init__(self, batched: Batched, pairs: Pairs, fed: Sequence[int], returned: Sequence[int]):
        self._fed = [(index, batched.inputs[index]) for index in fed]
        self._returned = [(index, batched.outputs[index]) for index in returned]
        self._state_axes = [batched.inputs[before] for before, _ in pairs]
        self._before = [before for before, _ in pairs]
        self._n_inputs = len(batched.inputs)
        self._carrier = PlanCarrier(batched.program, pairs)
        self.handles: tuple[int, ...] = ()
        """Whose states are here, in the order of their rows."""
        self.signature: Shapes = ()
        """The shapes of the feeds of one stream."""

    def start(self, handles: tuple[int, ...], signature: Shapes, states: Sequence[np.ndarray]) -> None:
        """Take in streams with feeds of these shapes; the states have the stream first."""
        self.handles, self.signature = (), ()
        n = len(handles)
        shapes: list[tuple[int, ...]] = [()] * self._n_inputs
        for (index, axis), shape in zip(self._fed, signature, strict=True):
            shapes[index] = (*shape[:axis], n, *shape[axis + 1 :])
        moved = [np.moveaxis(state, 0, axis) for state, axis in zip(states, self._state_axes, strict=True)]
        for before, state in zip(self._before, moved, strict=True):
            shapes[before] = state.shape
        self._carrier.start(tuple(shapes), moved)
        self.handles, self.signature = handles, signature

    def run(self, feeds: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
        """The outputs of each stream for its feeds; its state changes when `commit` is called."""
        for position, ((_, axis), place) in enumerate(zip(self._fed, self._carrier.feed_places, strict=True)):
            np.concatenate([arrays[position] for arrays in feeds], axis, out=place)
        outputs = self._carrier.execute()
        rows = [_rows(outputs[index], axis) for index, axis in self._returned]
        return [list(row) for row in zip(*rows, strict=True)] if rows else [[] for _ in feeds]

    def commit(self) -> None:
        self._carrier.commit()

    def states(self) -> list[np.ndarray]:
        """The states, the stream first: not copies."""
        states = zip(self._carrier.states(), self._state_axes, strict=True)
        return [np.moveaxis(state, axis, 0) for state, axis in states]


def _rows(output: np.ndarray, axis: int) -> list[Any]:
    """What each stream gets of an output: parts of one new array."""
    moved = np.moveaxis(output, axis, 0)
    rows = np.array(moved, order="C").reshape(len(moved), *output.shape[:axis], 1, *output.shape[axis + 1 :])
    return list(rows)
