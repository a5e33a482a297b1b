from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrnn.checks import arrays
from webrnn.errors import Error, ShapeError
from webrnn.reference import sizes
from webrnn.reference.shape import trilu

from .onnxruntime_oracle import check, ints


def _call(op_type, *inputs, n_outputs=1, **attrs):
    return arrays.call(op_type, "", list(inputs), attrs, n_outputs)


def _numbers(*shape, dtype=np.float32):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_slice(data):
    shape = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1))
    bound = st.one_of(st.integers(-8, 8), st.sampled_from([2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]))
    starts, ends = ([data.draw(bound) for _ in axes] for _ in range(2))
    steps = [data.draw(st.sampled_from([1, 2, 3, -1, -2])) for _ in axes]
    # With a negative step onnxruntime takes an end of INT_MAX as "no end"; the specification clamps it.
    ends = [7 if step < 0 and end >= 2**31 - 1 else end for end, step in zip(ends, steps, strict=True)]
    negative = data.draw(st.booleans())
    named = [axis - len(shape) if negative else axis for axis in axes]
    check("Slice", _numbers(*shape), ints(*starts), ints(*ends), ints(*named), ints(*steps))


@given(st.data(), st.sampled_from(["constant", "edge", "reflect", "wrap"]))
@settings(max_examples=100, deadline=None)
def test_pad(data, mode):
    shape = data.draw(st.lists(st.integers(3, 5), min_size=1, max_size=3))
    low = -1 if mode == "constant" else 0
    pads = data.draw(st.lists(st.integers(low, 2), min_size=2 * len(shape), max_size=2 * len(shape)))
    dtype = data.draw(st.sampled_from([np.float32, np.int64, np.float64]))
    value = np.array(7, dtype) if mode == "constant" and data.draw(st.booleans()) else None
    check("Pad", _numbers(*shape, dtype=dtype), ints(*pads), value, mode=mode)


def test_pad_of_chosen_axes():
    check("Pad", _numbers(2, 3, 4), ints(1, 0, 2, 1), None, ints(-1, 0), mode="constant")


@pytest.mark.parametrize("shape", [(6, -1), (0, 4), (2, 0, -1), (24,), (4, 3, 2)])
def test_reshape(shape):
    check("Reshape", _numbers(2, 3, 4) if shape != (0, 4) else _numbers(6, 4), ints(*shape))


def test_reshape_to_a_zero_dimension():
    check("Reshape", _numbers(0, 3), ints(3, 0), allowzero=1)


@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 3])
def test_flatten(axis):
    check("Flatten", _numbers(2, 3, 4), axis=axis)


@pytest.mark.parametrize("shape", [(4,), (2, 1, 4), (3, 1), (1,)])
def test_expand(shape):
    check("Expand", _numbers(3, 1), ints(*shape))


def test_small_movers():
    x = _numbers(2, 1, 3, 1)
    check("Squeeze", x, ints(-1))
    check("Squeeze", x)
    check("Unsqueeze", x, ints(0, -1))
    check("Transpose", x)
    check("Transpose", x, perm=[2, 0, 3, 1])
    check("Tile", x, ints(1, 2, 0, 3))
    check("Concat", x, x + 1, axis=-2)
    check("DepthToSpace", _numbers(1, 8, 2, 3), blocksize=2, mode="CRD")
    check("SpaceToDepth", _numbers(1, 2, 4, 6), blocksize=2)
    check("ReverseSequence", _numbers(4, 3, 2), ints(1, 4, 2), batch_axis=1, time_axis=0)
    check("Trilu", _numbers(2, 3, 4), np.array(-1, np.int64), upper=0)


@pytest.mark.parametrize(("sizes", "attrs"), [((2, 0, 5), {}), (None, {"num_outputs": 3})])
def test_split(sizes, attrs):
    split = None if sizes is None else ints(*sizes)
    check("Split", _numbers(2, 7), split, axis=-1, n_outputs=3, **attrs)


@pytest.mark.parametrize(
    "make",
    [
        lambda: _call("Expand", _numbers(1), ints(1 << 40)),
        lambda: _call("Tile", _numbers(2), ints(1 << 40)),
        lambda: _call("ConstantOfShape", ints(1 << 20, 1 << 20)),
        lambda: _call("ConstantOfShape", ints(-1)),
        lambda: _call("Range", np.array(0, np.int64), np.array(1 << 40), np.array(1, np.int64)),
        lambda: _call("Pad", _numbers(1), ints(0, 1 << 40)),
        lambda: _call("OneHot", ints(0), np.array(1 << 40), np.float32([0, 1])),
        lambda: _call("CenterCropPad", _numbers(2), ints(1 << 40)),
        lambda: _call("Resize", _numbers(2, 2), None, np.float32([1e9, 1e9])),
        lambda: _call("Resize", _numbers(2, 2), None, None, ints(1 << 28, 1 << 28)),
        lambda: _call("HannWindow", np.array(1 << 40)),
        lambda: _call("Resize", _numbers(1, 2), None, np.float32([1e-9, 1 << 31])),
        lambda: _call("Resize", _numbers(1, 2), None, None, ints(0, 1 << 31)),
        lambda: _call("Resize", _numbers(1000, 1), None, np.float32([1e-3, 1e6])),
        lambda: _call("OneHot", np.zeros(0, np.int64), np.array(1 << 31), np.float32([0, 1])),
        lambda: _call("AffineGrid", np.zeros((0, 2, 3), np.float32), ints(0, 1, 1 << 16, 1 << 16)),
        lambda: _call("ConvTranspose", _numbers(1, 1, 2), _numbers(1, 1, 2), strides=[1 << 40]),
    ],
)
def test_absurd_sizes_raise(make):
    with pytest.raises(ShapeError, match=r"would|outside|limit"):
        make()


@pytest.mark.parametrize("mode", ["constant", "edge", "wrap"])
def test_an_empty_result_of_a_large_pad_takes_no_memory(mode):
    assert _call("Pad", np.zeros((0, 2), np.float32), ints(0, 0, 0, 1 << 28), mode=mode)[0].shape == (0, 2 + (1 << 28))
    assert _call("Pad", _numbers(1, 2), ints(0, 0, -1, 1 << 28), mode=mode)[0].shape == (0, 2 + (1 << 28))


def test_what_is_cut_by_a_pad_is_cut_first():
    assert _call("Pad", _numbers(2, 10_000), ints(100_000, 0, 0, -9_999), mode="edge")[0].shape == (100_002, 1)


def test_the_limit_can_be_set():
    previous = sizes.set_max_bytes(100)
    try:
        with pytest.raises(ShapeError, match="limit is 100"):
            _call("Expand", _numbers(1), ints(26))
    finally:
        sizes.set_max_bytes(previous)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attrs"),
    [
        ("Reshape", (_numbers(6), ints(4, 2)), {}),
        ("Reshape", (_numbers(6), ints(-1, -1)), {}),
        ("Reshape", (_numbers(6), ints(6, 0)), {}),
        ("Reshape", (_numbers(6), np.float32([6])), {}),
        ("Transpose", (_numbers(2, 3),), {"perm": [0, 0]}),
        ("Squeeze", (_numbers(2, 3), ints(0)), {}),
        ("Unsqueeze", (_numbers(2, 3), ints(0, 0)), {}),
        ("Concat", (_numbers(2, 3), _numbers(3, 2)), {"axis": 0}),
        ("Concat", (_numbers(2), _numbers(2)), {"axis": 1}),
        ("Concat", (_numbers(2), _numbers(2)), {}),
        ("Slice", (_numbers(2), ints(0), ints(1), ints(3)), {}),
        ("Slice", (_numbers(2), ints(0), ints(1), ints(0), ints(0)), {}),
        ("Slice", (_numbers(2), ints(0, 0), ints(1)), {}),
        ("Split", (_numbers(4), ints(1, 2)), {}),
        ("Expand", (_numbers(3), ints(2)), {}),
        ("Tile", (_numbers(3), ints(2, 2)), {}),
        ("Pad", (_numbers(3), ints(1)), {}),
        ("Pad", (_numbers(3), ints(-2, -2)), {}),
        ("ReverseSequence", (_numbers(3, 2), ints(4, 1)), {}),
        ("DepthToSpace", (_numbers(1, 3, 2, 2),), {"blocksize": 2}),
        ("Reshape", (_numbers(6), None), {}),
        ("Reshape", (_numbers(6),), {}),
        ("Reshape", (_numbers(6), ints(6)), {"nonsense": 1}),
    ],
)
def test_mistakes_raise_an_error_that_names_the_op(op_type, inputs, attrs):
    with pytest.raises(Error, match=op_type):
        _call(op_type, *inputs, n_outputs=2 if op_type == "Split" else 1, **attrs)


def test_k_of_trilu_is_one_element_of_any_rank():
    x = np.arange(9.0).reshape(3, 3)
    for shape in ((), (1,), (1, 1)):
        assert np.array_equal(trilu(x, np.full(shape, 1, np.int64), upper=1), np.triu(x, 1))
