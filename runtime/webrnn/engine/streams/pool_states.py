"""Where the states of a pool's streams are: in rows of batches, or in banks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from webrnn.errors import ShapeError

from .batching import Batched
from .independence import all_shapes
from .resident import BANKED, NEW, ResidentBatch, Stage
from .rows import RowPrograms
from .streaming import StreamingModel

MOST_BATCHES = 8
"""Batches that are kept although the last tick did not use them: their streams may come back."""


class PoolStates:
    """The states of streams that run together, by slots of their pool."""

    def __init__(self, model: StreamingModel, batched: Batched, max_streams: int, max_batch: int):
        self._model, self._batched, self._max_batch = model, batched, max_batch
        self.place = np.full(max_streams, NEW, np.int64)
        """Where the states of a slot are: see `ResidentBatch`. Those of a tick change together, in one assignment."""
        self.layout = 0
        """Changes whenever somebody comes, goes or moves; a tick of the same streams in the same order moves nobody."""
        self.stages: dict[Any, Stage] = {}
        """By the shapes of feeds. Each has its batches."""
        self._banks: list[np.ndarray] | None = None
        """For each state the values of all slots, the slot first: of streams that are in no batch."""
        self._next_batch = 0

    @property
    def batches(self) -> list[ResidentBatch]:
        return [batch for stage in self.stages.values() for batch in stage.batches]

    def begin(self, slots: Any) -> None:
        """These slots have no states yet."""
        self.layout += 1
        self.place[slots] = NEW

    def load(self, slot: int, states: Sequence[np.ndarray]) -> None:
        """Let a slot have these states."""
        for bank, state in zip(self._banks_for(states, self._is_alone(slot)), states, strict=True):
            bank[slot] = state
        self.layout += 1
        self.place[slot] = BANKED

    def move(self, slots: Sequence[np.ndarray], places: Sequence[np.ndarray]) -> None:
        """All of a tick have moved on to these places."""
        if len(slots) == 1:
            self.place[slots[0]] = places[0]
        elif slots:
            everyone, everywhere = np.concatenate(slots), np.concatenate(places)
            self.place[everyone] = everywhere

    def batch_for(
        self, stage: Stage, order: np.ndarray, is_first: bool
    ) -> tuple[ResidentBatch, np.ndarray | None, int]:
        """A batch in which these streams have the first rows, and nobody else any: the row of each, None if they are in
        order; and the side of their states. `is_first`: no other ones tick before them in this tick."""
        place = self.place
        if stage.batches and stage.batches[-1].is_in_order(order, place, self.layout):
            return stage.batches[-1], None, int(place[order[0]]) & 1
        self.layout += 1
        new = np.flatnonzero(place[order] == NEW)
        if len(new):
            self._banks_for(self._starts(stage, int(new[0])), is_first and self._is_alone())
        batch = self._nearest_batch(stage, order)
        side = batch.side_of(place)
        self._put_back(batch, order)
        if batch.in_order_again(order, place, side):
            return batch, None, 1 - side
        rows, away = batch.arrange(order, place, side)
        self._fetch(batch, stage, order, rows, away, side)
        return batch, None if (rows == np.arange(len(rows))).all() else rows, side

    def _nearest_batch(self, stage: Stage, order: np.ndarray) -> ResidentBatch:
        """The batch from and to which the fewest rows have to be moved; it is the last one of its stage then."""
        places = self.place[order]
        moves = {}
        for batch in stage.batches:
            here = np.count_nonzero(batch.rows_of(places) >= 0)
            moves[batch] = len(batch.owners(self.place)) + len(order) - 2 * here
        nearest = min(moves, key=lambda batch: moves[batch], default=None)
        if nearest is None or (moves[nearest] > len(order) and len(self.batches) < MOST_BATCHES):
            nearest = self._new_batch(stage, order)
        stage.batches = [*(batch for batch in stage.batches if batch is not nearest), nearest]
        return nearest

    def _new_batch(self, stage: Stage, order: np.ndarray) -> ResidentBatch:
        states = [bank[0] for bank in self._banks or ()]
        if stage.programs is None:
            shapes = all_shapes(self._model, stage.shapes, states)
            stage.programs = RowPrograms(self._batched, self._model.pairs, shapes, self._max_batch)
        self._next_batch += 1
        kernels = self._batched.program.kernels
        return ResidentBatch(self._next_batch, kernels, states, stage.programs.overwrites(len(order)))

    def _fetch(
        self, batch: ResidentBatch, stage: Stage, order: np.ndarray, rows: np.ndarray, away: np.ndarray, side: int
    ) -> None:
        """Copy states that are elsewhere, or begin, into rows of a batch; `away` are places in the order."""
        places = self.place[order[away]]
        targets = batch.sides[side]
        new = away[places == NEW]
        for number in new if not self._model.starts_alike else new[:1]:
            starts = self._starts(stage, int(number))
            self._banks_for(starts, False)
            to = rows[new] if self._model.starts_alike else rows[number]
            for target, start in zip(targets, starts, strict=True):
                target.array[to] = start
        banked = away[places == BANKED]
        for target, bank in zip(targets, self._banks or (), strict=True):
            target.array[rows[banked]] = bank[order[banked]]
        if len(new) + len(banked) == len(away):
            return
        for other in [other for other in self.batches if other is not batch]:
            theirs = other.rows_of(places)
            here = np.flatnonzero(theirs >= 0)
            if len(here):
                for target, source in zip(targets, other.sides[other.side_of(self.place)], strict=True):
                    target.array[rows[away[here]]] = source.array[theirs[here]]

    def _put_back(self, batch: ResidentBatch, but: np.ndarray | None = None) -> None:
        """Move states of a batch into the banks, but those of some slots."""
        rows = batch.owners(self.place)
        if but is not None and len(rows):
            stays = np.zeros(len(self.place), np.bool_)
            stays[but] = True
            rows = rows[~stays[batch.slots[rows]]]
        if not len(rows):
            return
        slots = batch.slots[rows]
        for bank, states in zip(self._banks or (), batch.sides[batch.side_of(self.place)], strict=True):
            bank[slots] = states.array[rows]
        self.place[slots] = BANKED

    def forget_batches(self, used: Sequence[ResidentBatch]) -> None:
        """Of those that no tick of late has used there are only so many."""
        if len(self.stages) == len(used) == 1 and len(next(iter(self.stages.values())).batches) == 1:
            return
        n_batches = len(self.batches)
        for stage in self.stages.values():
            for batch in [batch for batch in stage.batches if batch not in used]:
                if n_batches > MOST_BATCHES:
                    self._put_back(batch)
                    stage.batches = [other for other in stage.batches if other is not batch]
                    n_batches -= 1

    def put_back(self, stage: Stage) -> None:
        """No slot has its states in a batch of this stage any more."""
        for batch in stage.batches:
            self._put_back(batch)
        stage.batches = []

    def _starts(self, stage: Stage, row: int) -> list[np.ndarray]:
        """What the states of the stream whose feeds are in a row start from."""
        if stage.starts is None or not self._model.starts_alike:
            feeds = stage.feeds(row)
            stage.starts = self._model.first_states([feeds.get(value.name) for value in self._model.inputs])
        return stage.starts

    def _banks_for(self, states: Sequence[np.ndarray], may_replace: bool) -> list[np.ndarray]:
        """Room for states like these; ShapeError if there are others that are not like them."""
        if self._banks is not None:
            banks = zip(self._banks, states, self._model.pairs, strict=True)
            wrong = [before for bank, state, (before, _) in banks if bank.shape[1:] != state.shape]
            if not wrong:
                return self._banks
            if not may_replace:
                name = self._model.inputs[wrong[0]].name
                raise ShapeError(f"state {name!r} of a new stream differs in shape from those of other streams")
        for stage in self.stages.values():
            stage.programs, stage.batches = None, []
        self._banks = [np.zeros((len(self.place), *state.shape), state.dtype) for state in states]
        return self._banks

    def _is_alone(self, slot: int | None = None) -> bool:
        """Whether nobody has states, but for this slot."""
        has_states = self.place != NEW
        if slot is not None:
            has_states[slot] = False
        return not has_states.any()

    def of(self, slot: int) -> list[np.ndarray] | None:
        """The states of a slot, not copies; None if it has none yet."""
        place = self.place[slot : slot + 1]
        if place[0] == NEW:
            return None
        for batch in self.batches:
            row = int(batch.rows_of(place)[0])
            if row >= 0:
                return [rows.array[row] for rows in batch.sides[int(place[0]) & 1]]
        return [bank[slot] for bank in self._banks or ()]
