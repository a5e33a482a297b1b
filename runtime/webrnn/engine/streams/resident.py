"""What a pool keeps for feeds of one shape: those that wait for the next tick, and states side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from webrnn.ir import Value

from ..kernels.loading import Kernels
from .carriers import Shapes
from .rows import RowPrograms, Rows, stream_first

NEW, BANKED = -2, -1
"""Places of streams that have no states yet, and of those whose states are in no batch."""
_SHIFT = 32


@dataclass(eq=False)
class LastTick:
    """What a flush needs of the last tick of streams with feeds of one shape."""

    shapes: Shapes
    timeless: dict[str, np.ndarray] = field(default_factory=dict)
    """Feeds without frames: a row for each slot of the pool."""
    kept: dict[int, np.ndarray] = field(default_factory=dict)
    """Results without frames: a row for each slot of the pool."""


class Stage:
    """Feeds of one shape that wait for the next tick, in the order in which they were handed in."""

    def __init__(self, fed: Sequence[Value], arrays: Sequence[np.ndarray], kernels: Kernels | None):
        """`arrays` are the feeds of one stream that were found right; others like them need no other check."""
        self.shapes: Shapes = tuple(array.shape for array in arrays)
        self.n, self.tick = 0, -1
        """How many feeds there are for which tick; for any other there are none."""
        self._parts: list[Any] = []
        """Whose feeds the rows have: slots, and arrays of slots, which nobody changes."""
        self._has_many = False
        """Whether there are arrays among them."""
        self._tickets: list[int] = []
        """The numbers of submissions, of each part the first: they tell the order of feeds of different shapes."""
        self.rows = [Rows(kernels, array.shape, array.dtype) for array in arrays]
        self._ordered = [Rows(kernels, array.shape, array.dtype) for array in arrays]
        self._names = [value.name for value in fed]
        self._kinds = [(value.name, array.shape, array.dtype) for value, array in zip(fed, arrays, strict=True)]
        self._room = 0
        self._ones: list[tuple[str, tuple[int, ...], np.dtype[Any], list[np.ndarray]]] = []
        """For so many streams: each input, and its rows."""
        self._many: list[Any] = []
        self._many_of = -1
        """The forms of feeds of so many streams, those of the last submission of many."""
        self.programs: RowPrograms | None = None
        self.batches: list[ResidentBatch] = []
        """The one that was used last comes last."""
        self.is_tried = False
        """Whether streams with such feeds are known to be independent of each other."""
        self.starts: list[np.ndarray] | None = None
        """What the states of all streams with such feeds start from, if that depends on nothing else."""
        self.last = LastTick(self.shapes)

    def put_one(self, tick: int, feeds: Mapping[str, Any], slot: int, ticket: int) -> int:
        """`put` of the feeds of one slot if they are like the others; 0 if they are not."""
        if len(feeds) != len(self._kinds):
            return 0
        first = self.n if self.tick == tick else 0
        if first >= self._room:
            self._make_room(first + 1)
        for name, shape, dtype, views in self._ones:
            array = feeds.get(name)
            if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
                return 0
            views[first][...] = array
        if not first:
            self._parts, self._tickets, self._has_many = [], [], False
        self._parts.append(slot)
        self._tickets.append(ticket)
        return first + 1

    def _make_room(self, n: int) -> None:
        """Room for the feeds of so many streams, to be written one by one."""
        for rows in self.rows:
            rows.reserve(n)
        self._room = min(len(rows.array) for rows in self.rows) if self.rows else n
        self._ones = [(*kind, rows.views()) for kind, rows in zip(self._kinds, self.rows, strict=True)]

    def of_many(self, feeds: Mapping[str, Any], axes: Mapping[str, int] | None, n: int) -> dict[str, np.ndarray] | None:
        """Feeds of n streams like the others, each as [streams, *shape of one]; None if they are not.

        They may have these axes that count streams instead.
        """
        if len(feeds) != len(self._kinds):
            return None
        if n != self._many_of:
            self._many = [self._of_many(number, axes, n) for number in range(len(self._kinds))]
            self._many_of = n
        found = {}
        for name, dtype, stacked, by_hand, is_stacked, axis in self._many:
            array = feeds.get(name)
            if type(array) is not np.ndarray or array.dtype != dtype:
                return None
            if array.shape == by_hand:
                array = array.reshape(stacked) if is_stacked else stream_first(array, axis)
            elif array.shape != stacked:
                return None
            found[name] = array
        return found

    def _of_many(self, number: int, axes: Mapping[str, int] | None, n: int) -> tuple[Any, ...]:
        """The forms that an input of n streams may have."""
        name, shape, dtype = self._kinds[number]
        if axes is None:
            return name, dtype, (n, *shape), None, False, 0
        axis = axes[name]
        by_hand = (*shape[:axis], n, *shape[axis + 1 :])
        return name, dtype, (n, *shape), by_hand, prod(shape[:axis]) == 1, axis

    def put(self, tick: int, feeds: Mapping[str, Any], slots: np.ndarray, ticket: int) -> int:
        """Copy feeds of some slots behind those for this tick: how many there are then. They count once somebody says
        so (`n` and `tick`)."""
        first = self.n if self.tick == tick else 0
        last = first + len(slots)
        for name, rows in zip(self._names, self.rows, strict=True):
            if last > len(rows.array):
                rows.reserve(last)
                self._room = 0
            rows.array[first:last] = feeds[name]
        if not first:
            self._parts, self._tickets = [], []
        self._has_many = True
        self._parts.append(slots)
        self._tickets.append(ticket)
        return last

    def order(self) -> np.ndarray:
        """Whose feeds the rows have."""
        if not self._has_many:
            return np.array(self._parts, np.int64)
        if len(self._parts) == 1:
            return self._parts[0]
        return np.concatenate([np.atleast_1d(part) for part in self._parts])

    def tickets(self) -> np.ndarray:
        """The numbers of the submissions of the rows."""
        parts = zip(self._parts, self._tickets, strict=True)
        return np.concatenate([np.arange(first, first + np.size(part)) for part, first in parts])

    def drop(self, is_gone: np.ndarray) -> None:
        """Take out the feeds of some slots."""
        order, tickets = self.order(), self.tickets()
        stays = np.flatnonzero(~is_gone[order])
        for rows in self.rows:
            rows.array[: len(stays)] = rows.array[stays]
        self._parts, self._tickets, self._has_many = order[stays].tolist(), tickets[stays].tolist(), False
        self.n = len(stays)

    def feeds(self, row: int) -> dict[str, np.ndarray]:
        """What is in a row: not a copy."""
        return {name: rows.array[row] for name, rows in zip(self._names, self.rows, strict=True)}

    def named_rows(self, name: str) -> np.ndarray:
        """All rows of one input."""
        return self.rows[self._names.index(name)].array[: self.n]

    def ordered(self, rows: np.ndarray | None) -> list[Rows]:
        """The feeds in another order: that of submission number i is in row rows[i]. Not a copy if that is its own."""
        if rows is None:
            return self.rows
        for source, target in zip(self.rows, self._ordered, strict=True):
            target.reserve(len(rows))
            target.array[rows] = source.array[: len(rows)]
        return self._ordered


class ResidentBatch:
    """States of streams side by side, in rows. Each has two sides: a tick reads one and writes the other.

    Who is where stands in an array of the pool and nowhere else: the place of a stream is the number of its batch, its
    row and its side. A row that nobody has is free, whatever is in it.
    """

    def __init__(self, number: int, kernels: Kernels, states: Sequence[np.ndarray], overwrites: Sequence[bool]):
        """`states` are those of any stream; those that a plan `overwrites` have one side."""
        self._base = number << _SHIFT
        first = [Rows(kernels, state.shape, state.dtype) for state in states]
        second = [
            rows if one_side else Rows(kernels, rows.shape, rows.array.dtype)
            for rows, one_side in zip(first, overwrites, strict=True)
        ]
        self.sides = first, second
        self._has_two_sides = not any(overwrites)
        self.slots = np.zeros(0, np.int64)
        """Who may have a row: has it if this is its place, too."""
        self.n = 0
        """From this row on nobody has any."""
        self._order = np.zeros(0, np.int64)
        """Who was in the last tick, in which order."""
        self._known: tuple[np.ndarray | None, int] = None, -1
        """Who is known to be here in order, and of which layout of the pool this is known."""
        self._both_places: tuple[np.ndarray, np.ndarray] | None = None
        """The places of the first n rows, on either side."""

    def places(self, rows: Any, side: int) -> Any:
        """The places of rows."""
        return self._base + 2 * np.asarray(rows, np.int64) + side

    def owners(self, place: np.ndarray) -> np.ndarray:
        """The rows that somebody has."""
        theirs = place[self.slots[: self.n]] & ~np.int64(1)
        return np.flatnonzero(theirs == self.places(np.arange(self.n), 0))

    def rows_of(self, places: np.ndarray) -> np.ndarray:
        """The rows of places in this batch, -1 for all others."""
        rows = (places - self._base) >> 1
        return np.where((rows >= 0) & (rows < self.n) & (places >= 0), rows, -1)

    def side_of(self, place: np.ndarray) -> int:
        """On which side its streams are, which is the same for all."""
        rows = self.owners(place)
        return int(place[self.slots[rows[0]]] & 1) if len(rows) else 0

    def is_in_order(self, order: np.ndarray, place: np.ndarray, layout: int) -> bool:
        """Whether these streams have the rows in this order, and nobody else has any. As long as the layout of a pool
        has the same number, nobody has come, gone or moved."""
        known, known_of = self._known
        if known is order and known_of == layout:
            return True
        if self.n != len(order):
            return False
        places = place[order]
        if not (places == self.first_places(self.n, int(places[0]) & 1)).all():
            return False
        self._known = order, layout
        return True

    def first_places(self, n: int, side: int) -> np.ndarray:
        """The places of the first rows."""
        if self._both_places is None or len(self._both_places[0]) != n:
            rows = np.arange(n)
            self._both_places = self.places(rows, 0), self.places(rows, 1)
        return self._both_places[side]

    def arrange(self, order: np.ndarray, place: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows for streams, so that they have all the first ones and few are moved: the row of each, and which of them
        have their states still elsewhere. Nobody else has a row by now. No place changes, so this may be in vain."""
        k = len(order)
        self._reserve(k)
        rows = self.rows_of(place[order])
        is_away = rows < 0
        is_free = np.ones(max(self.n, k), np.bool_)
        is_free[rows[~is_away]] = False
        moves = np.flatnonzero(~is_away & (rows >= k))
        free = np.flatnonzero(is_free[:k])
        targets, others = free[: len(moves)], free[len(moves) :]
        for states in self.sides[side]:
            states.array[targets] = states.array[rows[moves]]
        rows[moves], rows[is_away] = targets, others
        self.slots[rows] = order
        self.n = max(self.n, k)
        return rows, np.flatnonzero(is_away)

    def in_order_again(self, order: np.ndarray, place: np.ndarray, side: int) -> bool:
        """Let streams that tick in the same order as the last time have their rows in that order. This changes places
        and the side."""
        is_same = len(order) == len(self._order) == self.n and bool((order == self._order).all())
        self._order = order.copy()
        rows = self.rows_of(place[order])
        if not is_same or not self._has_two_sides or (rows < 0).any():
            return False
        for source, target in zip(self.sides[side], self.sides[1 - side], strict=True):
            target.array[: self.n] = source.array[rows]
        place[order] = self.first_places(self.n, 1 - side)
        self.slots[: self.n] = order
        return True

    def _reserve(self, n: int) -> None:
        for side in self.sides:
            for states in side:
                states.reserve(n)
        if n > len(self.slots):
            room = max(n, 2 * len(self.slots))
            self.slots = np.concatenate([self.slots, np.zeros(room - len(self.slots), np.int64)])
