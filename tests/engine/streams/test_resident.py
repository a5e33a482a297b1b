"""Who has which row, and how few are moved."""

import numpy as np
import pytest

from tests.engine.stream_models import bits, feed, session, stateful
from tests.engine.streams.pool_oracle import Oracle
from webrnn.engine.streams.resident import BANKED


def rows(pool):
    batch = pool._states.batches[-1]
    return batch.rows_of(pool._states.place).tolist()


def tick(both, handles, number=0, steps=1):
    both.tick({handle: {"x": feed(steps, 1, 90 * number + handle)} for handle in handles})
    both.check_states()


@pytest.fixture
def both():
    both = Oracle(session(stateful("GRU")), max_streams=8)
    handles = [both.open() for _ in range(6)]
    tick(both, handles)
    return both


def test_a_stream_that_goes_moves_one_row(both):
    assert rows(both.pool)[:6] == [0, 1, 2, 3, 4, 5]
    both.close(1)
    tick(both, [0, 2, 3, 4, 5], 1)
    assert rows(both.pool)[:6] == [0, -1, 2, 3, 4, 1]


def test_the_same_order_again_becomes_that_of_rows(both):
    both.close(1)
    for number in range(3):
        tick(both, [0, 2, 3, 4, 5], number)
    assert rows(both.pool)[:6] == [0, -1, 1, 2, 3, 4]


def test_a_stream_that_comes_takes_the_free_row(both):
    both.close(1)
    new = both.open()
    tick(both, [0, 2, 3, 4, 5, new], 1)
    assert rows(both.pool)[:6] == [0, 1, 2, 3, 4, 5]
    last = both.open()
    tick(both, [0, 2, 3, 4, 5, new, last], 2)
    assert sorted(rows(both.pool)[:7]) == [0, 1, 2, 3, 4, 5, 6]


def test_who_has_nothing_to_say_is_put_aside(both):
    tick(both, [0, 1, 2, 4, 5], 1)
    assert both.pool._states.place[3] == BANKED
    tick(both, [0, 1, 2, 3, 4, 5], 2)
    assert rows(both.pool)[3] >= 0


def test_one_of_many_does_not_move_the_others(both):
    before = both.pool._states.place.copy()
    for number in range(3):
        tick(both, [4], number)
    moved = np.flatnonzero(both.pool._states.place != before)
    assert moved.tolist() == [4]
    tick(both, range(6), 4)
    assert len(both.pool._states.batches) == 2


def test_other_lengths_and_back(both):
    for number in range(6):
        both.tick({h: {"x": feed(1 + (h + number) % 3, 1, h)} for h in range(6)})
        both.check_states()


def test_states_stay_when_a_tick_fails_before_it_runs(both, monkeypatch):
    pool = both.pool
    both.close(0)
    new = both.open()
    states = {handle: pool.state(handle) for handle in (1, 2, 3, 4, 5, new)}
    for handle in (5, new, 2):
        pool.submit(handle, {"x": feed(1, 1, handle)})
    with monkeypatch.context() as patch:
        patch.setattr("webrnn.engine.streams.rows.RowPrograms.run", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            pool.tick()
    assert pool.tick() == {}
    for handle, state in states.items():
        assert bits(pool.state(handle).values()) == bits(state.values())
    tick(both, [1, 2, new, 5], 3)
