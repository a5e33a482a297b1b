"""What the processor can do at most, and the bounds of models that follow from it."""

from __future__ import annotations

import pytest

from webrnn.bench.case import built_in
from webrnn.bench.models import sequence
from webrnn.bench.peaks import FOOTPRINTS, Limits, ModelWork, measure_limits, work_of

FLAT = Limits("test", 1e9, ((1000, 1e9), (10**9, 1e9)))


def test_rates_are_positive_and_fall_with_the_footprint():
    limits = measure_limits()
    assert limits is not None
    assert limits.flops > 1e8
    sizes, rates = zip(*limits.reading, strict=True)
    assert sizes == FOOTPRINTS
    assert all(rate > 0 for rate in rates)
    assert list(rates) == sorted(rates, reverse=True)
    assert limits.bandwidth(1) == rates[0]
    assert limits.bandwidth(2 * sizes[-1]) == rates[-1]
    assert rates[-1] <= limits.bandwidth(3 * 2**18) <= rates[0]


def test_the_better_of_two_measurements_counts():
    first, second = Limits("i", 2.0, ((1, 5.0), (2, 1.0))), Limits("i", 1.0, ((1, 4.0), (2, 3.0)))
    assert first.or_better(second) == Limits("i", 2.0, ((1, 5.0), (2, 3.0)))


@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_weights_are_read_in_each_step(op, gates):
    hidden, steps = 32, 7
    model = sequence(op, hidden, steps, seed=0)
    work = work_of(model, built_in_feeds(hidden, steps))
    assert work is not None
    weights = 4 * gates * hidden * hidden
    [(size, times)] = [(size, times) for size, times in work.traffic if times > 1]
    assert times == steps
    assert weights <= size <= weights * 1.1  # and a bias
    products = 2 * 2 * gates * hidden * hidden * steps
    assert products <= work.flops <= products * 1.3


def built_in_feeds(hidden, steps):
    import numpy as np

    return {"x": np.zeros((steps, 1, hidden), np.float32)}


def test_twice_the_steps_are_twice_the_bound():
    bounds = []
    for steps in (50, 100):
        work = work_of(sequence("GRU", 64, steps, seed=0), built_in_feeds(64, steps))
        assert work is not None
        bounds.append(work.bound(FLAT).seconds)
    assert bounds[1] / bounds[0] == pytest.approx(2, rel=0.02)


def test_the_larger_of_arithmetic_and_memory_binds():
    assert ModelWork(10**6, ((10, 1),)).bound(FLAT).by == "arithmetic"
    assert ModelWork(10, ((10**6, 1),)).bound(FLAT).by == "memory"


def test_tables_that_rows_are_gathered_from_are_not_read_whole():
    import numpy as np

    from webrnn.bench.onnx_file import GraphFile

    graph = GraphFile("embedding")
    graph.constant("table", np.zeros((1000, 8), np.float32))
    graph.node("Gather", ["table", "i"], ["y"])
    model = graph.model({"i": [2]}, {"y": [2, 8]})
    feeds = {"i": np.zeros(2, np.int64)}
    work = work_of(model, feeds)
    assert work is None or sum(size for size, _ in work.traffic) < 1000


def test_plan_files_have_no_bound():
    case = built_in("loop_accum")
    assert work_of(b"WRNN" + bytes(100), case.feeds) is None
