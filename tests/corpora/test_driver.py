import tracemalloc

import pytest

from webrnn.corpora.driver import Driver, InOrder
from webrnn.corpora.items import Item
from webrnn.corpora.mapper import Result
from webrnn.corpora.store import Store
from webrnn.corpora.work import Chunk, Finished, Lost


class Quick:
    """An engine that takes a millisecond an item, as it says."""

    workers = 2

    def __init__(self, keeps=(), killers=(), most=10**9):
        self.chunks, self.sizes, self.killers, self.most = [], [], set(killers), most
        self.deaths = 0
        self.running = 0

    @property
    def room(self):
        return 4 - len(self.chunks)

    def submit(self, chunk: Chunk):
        self.chunks.append(chunk)
        self.sizes.append(len(chunk.items))

    def wait(self, seconds):
        chunk = self.chunks.pop()  # the last comes first
        if self.killers & {item.index for item in chunk.items}:
            self.deaths += 1
            return [(chunk, Lost("was ended by SIGKILL"))]
        items = chunk.items[: self.most]
        results = [Result(item.index, item.name, {}) for item in items]
        return [(chunk, Finished(len(items), len(items) * 1e-3, results=results))]

    def close(self): ...


def numbered(count):
    return (Item(number, str(number)) for number in range(count))


def test_every_item_once():
    engine = Quick(most=7)
    found = [item.index for done in Driver(engine, numbered(1000)).finished() for items, _ in done for item in items]
    assert sorted(found) == list(range(1000))


def test_results_in_order():
    assert [result.index for result in InOrder(Quick(most=7), numbered(1000)).results()] == list(range(1000))


def test_chunks_grow_to_a_part_of_a_second_and_shrink_at_the_end():
    engine = Quick()
    driver = Driver(engine, numbered(5000))
    driver.total = 5000
    for _ in driver.finished():
        pass
    assert engine.sizes[0] == 4
    assert max(engine.sizes) == 200
    assert engine.sizes[-1] < 10


def test_the_item_that_ends_workers_is_found():
    engine = Quick(killers=[333])
    bad = [f for done in Driver(engine, numbered(1000)).finished() for _, outcome in done for f in outcome.failed]
    ((failure),) = bad
    assert (failure.index, failure.kind) == (333, "WorkersError")
    assert failure.reason == "2 workers ended over it: the last was ended by SIGKILL"
    assert engine.deaths < 15
    results = list(InOrder(Quick(killers=[5, 6]), numbered(50)).results())
    assert [result.index for result in results if not result.ok] == [5, 6]


def test_a_reader_that_stops_leaves_nothing_to_do():
    engine = Quick()
    results = InOrder(engine, numbered(10**9)).results()
    assert [next(results).index for _ in range(3)] == [0, 1, 2]
    assert sum(engine.sizes) < 3000


def test_what_waits_for_one_chunk_is_bounded(monkeypatch):
    class Late(Quick):
        def wait(self, seconds):
            if len(self.chunks) > 1:
                self.chunks.append(self.chunks.pop(1))
            return super().wait(seconds)

    engine = Late()
    driver = InOrder(engine, numbered(10**6))
    results = driver.results()
    for _ in range(3000):
        next(results)
        assert len(driver._waiting) <= 8 + 4
    assert sum(engine.sizes) < 10_000


@pytest.mark.parametrize("results", [True, False])
def test_memory_of_the_driver_does_not_grow_with_the_corpus(tmp_path, results):
    def peak(count):
        tracemalloc.start()
        if results:
            for _ in InOrder(Quick(), numbered(count)).results():
                pass
        else:
            store = Store(tmp_path / str(count), {})
            found = store.open_items((str(number), None) for number in range(count))
            for done in Driver(Quick(), found, store.belong_together).finished():
                store.commit([(items, None, outcome.failed) for items, outcome in done])
            store.finish()
            store.close()
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(1000)
    assert peak(40_000) < 1.3 * peak(8_000)
