"""A short form of `make soak-pool`."""

import pytest

from tests.backends import MAIN
from tests.engine.streams.pool_soak import PoolSoak, averages, gru


@pytest.mark.parametrize(("backend", "op", "max_batch", "ticks"), [
    (MAIN, "LSTM", None, 400), (MAIN, "GRU", 3, 300), ("wasm:simd", "GRU", None, 150), ("numpy", "GRU", None, 60),
])  # fmt: skip
def test_streams_come_go_skip_and_are_restored(backend, op, max_batch, ticks):
    soak = PoolSoak(gru(backend, op), max_batch=max_batch, seed=3)
    for _ in range(ticks):
        soak.tick()
    soak.check_states()
    assert soak.pool.batched == (backend != "numpy")


def test_streams_with_a_delay_are_flushed_too():
    soak = PoolSoak(averages(), max_streams=12, seed=4)
    for _ in range(300):
        soak.tick()
    soak.check_states()
    assert soak.pool.batched
