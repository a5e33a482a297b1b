"""A regression without a stopwatch: what the VM does and how large things are, against tests/counts/baseline.json."""

import pytest

from webrnn.plan.decode import decode
from webrnn.plan.text import walk
from webrnn.plan.verify import bound_sizes
from webrnn.profile.timed_plan import TimedPlan

from . import measure
from .baseline import HINT, SIZE_TOLERANCE, differences, load
from .executed import DependsOnData, executed


@pytest.mark.parametrize("name", measure.NAMES)
def test_counts(name):
    found = differences(load()["models"].get(name), measure.of_model(name))
    assert not found, "\n".join([f"{name} is not what it was:", *found, HINT])


def test_sizes_of_the_modules():
    found = differences(load()["modules"], measure.modules(), SIZE_TOLERANCE)
    assert not found, "\n".join(["the wasm modules are not as large as they were:", *found, HINT])


def test_no_model_is_left_over():
    assert load()["models"].keys() == set(measure.NAMES)


@pytest.mark.parametrize("name", ["gru_256", "lstm_128", "gru_256x2", "scan_wlstm_128", "loop_accum", "dtln_1"])
def test_the_vm_counts_what_the_plan_says(name):
    data, arguments = measure.plan_and_arguments(name)
    plan = TimedPlan(data, measure._kernels(), arguments)
    _, counters = plan.profiled(1)
    tables = decode(data)
    wanted = executed(tables, bound_sizes(tables, plan.symbols))
    assert {each.at: counters.count(each.at) for each in walk(tables.code)} == wanted
    assert plan.arena_bytes == measure.of_model(name)["arena_bytes"]


def test_most_models_do_not_depend_on_data():
    """So that the test above could have had any of them."""
    for name in measure.BUILT_IN:
        data, arguments = measure.plan_and_arguments(name)
        tables = decode(data)
        try:
            executed(tables, bound_sizes(tables, TimedPlan(data, measure._kernels(), arguments).symbols))
        except DependsOnData:
            pytest.fail(name)


def test_what_differences_say():
    old = {"m": {"executed": {"all": 10, "copy": 2}, "arena_bytes": 100}}
    assert differences(old, old) == []
    new = {"m": {"executed": {"all": 12, "fill": 1}, "arena_bytes": 50}, "n": {"executed": {"all": 1}}}
    assert differences(old, new) == [
        "m executed all: 10 -> 12, worse by 20.0%",
        "m executed copy: 2 -> none, better",
        "m executed fill: none -> 1, worse",
        "m arena_bytes: 100 -> 50, better by 50.0%",
        "n executed all: none -> 1, worse",
    ]
    assert differences({"bytes": 1000}, {"bytes": 1009}, 0.01) == []
    assert differences({"bytes": 1000}, {"bytes": 989}, 0.01) == ["bytes: 1,000 -> 989, better by 1.1%"]
    assert differences({"bytes": 0}, {"bytes": 3}) == ["bytes: 0 -> 3, worse"]
