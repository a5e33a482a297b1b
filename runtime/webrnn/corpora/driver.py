"""Hands chunks of items to an engine and takes what comes back. It holds a few chunks, however many items there are."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from .index import Failure
from .items import Item
from .mapper import Result
from .work import Chunk, Engine, Finished, Lost

FIRST_ITEMS, MOST_ITEMS = 4, 4096
SHORTEST, LONGEST_CHUNK, PART_OF_RUN = 0.2, 10.0, 50
"""A chunk takes a fiftieth of the time so far, within these seconds: workers end together, long runs have few files."""
KILLS = 2
"""An item over which so many workers have ended, with nothing else in the chunk, is bad."""
MOST_WAITING = 8
"""Chunks, or twice as many as there are workers, that are finished and wait for one before them, when results are asked
for in order."""
WAITS = 0.2


Belongs = Callable[[Item, Item], bool]


def _follows(before: Item, item: Item) -> bool:
    return item.index == before.index + 1


class Driver:
    """One way through the items."""

    def __init__(self, engine: Engine, items: Iterable[Item], belongs: Belongs = _follows):
        """`belongs` says whether an item may be in one chunk with the item before it."""
        self._engine, self._items, self._belongs = engine, iter(items), belongs
        self._again: deque[Chunk] = deque()
        self._next: Item | None = next(self._items, None)
        self._started = time.monotonic()
        self._per_item: float | None = None
        self._size = FIRST_ITEMS
        self._running = 0
        self.total: int | None = None
        """How many items there are, once that is known."""

    def finished(self) -> Iterator[list[tuple[list[Item], Finished]]]:
        """All that is finished at a time, as often as there is something; sometimes nothing, so that a caller can tell
        how far it is."""
        while True:
            self._submit()
            if not self._running:
                return
            done = []
            for chunk, outcome in self._engine.wait(WAITS):
                self._running -= 1
                if isinstance(outcome, Lost):
                    done += self._lost(chunk, outcome)
                    continue
                self._learn(outcome)
                done.append((list(chunk.items[: outcome.count]), outcome))
                if outcome.count < len(chunk.items):
                    self._again.append(Chunk(chunk.items[outcome.count :], chunk.kills))
            yield done

    def _submit(self) -> None:
        while self._engine.room > 0:
            chunk = self._again.popleft() if self._again else self._chunk()
            if chunk is None:
                return
            self._running += 1
            self._engine.submit(chunk)

    def may_go_on(self) -> bool:
        """Asked before new items are taken; see `in_order`."""
        return True

    def _chunk(self) -> Chunk | None:
        """The next items that belong together."""
        if self._next is None or not self.may_go_on():
            return None
        size = self._size
        if self.total is not None:
            left = self.total - self._next.index
            size = max(1, min(size, left // (2 * self._engine.workers)))
        items: list[Item] = []
        while self._next is not None and len(items) < size:
            if items and not self._belongs(items[-1], self._next):
                break
            items.append(self._next)
            self._next = next(self._items, None)
        return Chunk(items)

    def _learn(self, outcome: Finished) -> None:
        each = outcome.seconds / outcome.count
        self._per_item = each if self._per_item is None else 0.7 * self._per_item + 0.3 * each
        seconds = min(LONGEST_CHUNK, max(SHORTEST, (time.monotonic() - self._started) / PART_OF_RUN))
        wanted = int(seconds / self._per_item) if self._per_item > 0 else MOST_ITEMS
        self._size = max(1, min(MOST_ITEMS, wanted, 4 * max(outcome.count, FIRST_ITEMS)))

    def _lost(self, chunk: Chunk, lost: Lost) -> list[tuple[list[Item], Finished]]:
        """Try again, in halves, until it is clear which item it was."""
        kills = chunk.kills + lost.blame
        if len(chunk.items) == 1 and kills >= KILLS:
            item = chunk.items[0]
            failure = Failure(
                item.index, item.name, "WorkersError", f"{kills} workers ended over it: the last {lost.how}"
            )
            bad = Result(item.index, item.name, None, failure.kind, failure.reason)
            return [(list(chunk.items), Finished(1, 0.0, [failure], results=[bad]))]
        if not lost.blame or len(chunk.items) == 1:
            self._again.append(Chunk(chunk.items, kills))
        else:
            middle = len(chunk.items) // 2
            self._again += [Chunk(chunk.items[:middle]), Chunk(chunk.items[middle:])]
        return []


class InOrder(Driver):
    """The results in the order of the items. Who reads slowly makes the engine wait."""

    def __init__(self, engine: Engine, items: Iterable[Item]):
        super().__init__(engine, items)
        self._waiting: dict[int, list[Result]] = {}

    def may_go_on(self) -> bool:
        return len(self._waiting) < max(MOST_WAITING, 2 * self._engine.workers)

    def results(self) -> Iterator[Result]:
        expected = 0
        for done in self.finished():
            for items, outcome in done:
                self._waiting[items[0].index] = outcome.results or []
            while expected in self._waiting:
                some = self._waiting.pop(expected)
                expected += len(some)
                yield from some
