from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrnn.checks import arrays
from webrnn.errors import ShapeError

from .onnxruntime_oracle import check, ints

REDUCTIONS = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"]


@given(st.sampled_from(REDUCTIONS), st.data())
@settings(max_examples=150, deadline=None)
def test_reductions(name, data):
    rank = data.draw(st.integers(1, 3))
    axes = data.draw(st.lists(st.integers(0, rank - 1), unique=True))
    shape = data.draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    dtype = data.draw(
        st.sampled_from([np.float32] if name in ("LogSum", "LogSumExp", "Prod") else [np.float32, np.int32])
    )
    x = np.random.default_rng(data.draw(st.integers(0, 99))).uniform(1, 6, shape).astype(dtype)
    attrs = {"keepdims": data.draw(st.integers(0, 1)), "noop_with_empty_axes": data.draw(st.integers(0, 1))}
    if not axes and attrs["noop_with_empty_axes"]:
        attrs["noop_with_empty_axes"] = 0
    named = [axis - rank if data.draw(st.booleans()) else axis for axis in axes]
    check(f"Reduce{name}", x, ints(*named) if axes else None, rtol=1e-4, **attrs)


@pytest.mark.parametrize("name", ["Sum", "Prod", "L1", "L2", "SumSquare"])
def test_reducing_nothing_gives_the_neutral_element(name):
    check(f"Reduce{name}", np.zeros((2, 0, 3), np.float32), ints(1))


def test_sum_of_half_floats_does_not_saturate_on_the_way():
    (y,) = arrays.call("ReduceMean", "", [np.full(4000, 60, np.float16)], {"keepdims": 0})
    assert y.dtype == np.float16
    assert y == 60


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("select_last_index", [0, 1])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_arg_extremes_with_ties(op_type, select_last_index, keepdims):
    x = np.float32([[1, 3, 3, 0, 0], [2, 2, 2, 2, 2]])
    check(op_type, x, axis=-1, keepdims=keepdims, select_last_index=select_last_index)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_cum_sum(exclusive, reverse, length):
    x = np.arange(2 * length).reshape(2, length).astype(np.float32)
    check("CumSum", x, np.array(-1, np.int64), exclusive=exclusive, reverse=reverse)


def test_axes_out_of_range_or_twice_raise():
    for axes in ((2,), (0, -2)):
        with pytest.raises(ShapeError, match="ReduceSum"):
            arrays.call("ReduceSum", "", [np.zeros((2, 2), np.float32), ints(*axes)], {})
