from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrnn.checks import arrays
from webrnn.errors import ShapeError, UnsupportedOp

from .onnxruntime_oracle import check


@st.composite
def geometries(draw):
    rank = draw(st.integers(1, 2))

    def per_axis(low, high):
        return draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    return {
        "kernel": per_axis(1, 4),
        "spatial": per_axis(7, 11),
        "strides": per_axis(1, 3),
        "dilations": per_axis(1, 2),
        "pads": draw(st.lists(st.integers(0, 2), min_size=2 * rank, max_size=2 * rank)),
        "group": draw(st.sampled_from([1, 2])),
        "batch": draw(st.integers(1, 2)),
        "bias": draw(st.booleans()),
        "seed": draw(st.integers(0, 1000)),
    }


@given(geometries(), st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
@settings(max_examples=60, deadline=None)
def test_conv(g, auto_pad):
    rng = np.random.default_rng(g["seed"])
    x = rng.standard_normal((g["batch"], 4, *g["spatial"])).astype(np.float32)
    w = rng.standard_normal((6, 4 // g["group"], *g["kernel"])).astype(np.float32)
    b = rng.standard_normal(6).astype(np.float32) if g["bias"] else None
    attrs = {"strides": g["strides"], "dilations": g["dilations"], "group": g["group"], "auto_pad": auto_pad}
    if auto_pad == "NOTSET":
        attrs["pads"] = g["pads"]
    elif auto_pad.startswith("SAME"):
        attrs["dilations"] = [1] * len(g["kernel"])
    check("Conv", x, w, b, atol=1e-5, **attrs)


@given(geometries(), st.sampled_from(["NOTSET", "VALID"]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_conv_transpose(g, auto_pad, with_output_padding):
    rng = np.random.default_rng(g["seed"])
    x = rng.standard_normal((g["batch"], 4, *g["spatial"])).astype(np.float32)
    w = rng.standard_normal((4, 3, *g["kernel"])).astype(np.float32)
    b = rng.standard_normal(3 * g["group"]).astype(np.float32) if g["bias"] else None
    attrs = {"strides": g["strides"], "dilations": g["dilations"], "group": g["group"], "auto_pad": auto_pad}
    if auto_pad == "NOTSET":
        attrs["pads"] = g["pads"]
    if with_output_padding:
        attrs["output_padding"] = [stride - 1 for stride in g["strides"]]
    check("ConvTranspose", x, w, b, atol=1e-5, **attrs)


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("size", [9, 10])
def test_conv_transpose_with_an_output_shape(auto_pad, size):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 2, 5)).astype(np.float32)
    w = rng.standard_normal((2, 3, 4)).astype(np.float32)
    check("ConvTranspose", x, w, strides=[2], output_shape=[size], auto_pad=auto_pad, atol=1e-5)


def test_conv_integer():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 256, (2, 3, 7, 6), np.uint8)
    w = rng.integers(0, 128, (4, 3, 3, 2), np.uint8)
    check("ConvInteger", x, w, np.uint8(99), np.uint8(11), pads=[1, 0, 1, 1], strides=[2, 1])


def test_conv_of_half_floats_accumulates_in_float32():
    x, w = np.full((1, 1, 4096), 1, np.float16), np.full((1, 1, 4096), 1, np.float16)
    (y,) = arrays.call("Conv", "", [x, w], {})
    assert y.dtype == np.float16
    assert y.item() == 4096


def test_conv_of_an_empty_batch():
    (y,) = arrays.call("Conv", "", [np.zeros((0, 2, 5), np.float32), np.zeros((3, 2, 2), np.float32)], {})
    assert y.shape == (0, 3, 4)


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "attrs"),
    [
        ((1, 2, 5), (3, 3, 2), {}),
        ((1, 2, 5), (3, 2, 2), {"group": 2}),
        ((1, 2, 5), (3, 2, 2), {"group": 0}),
        ((1, 2, 5), (3, 2, 2), {"kernel_shape": [3]}),
        ((1, 2, 5), (3, 2, 9), {}),
        ((1, 2, 5), (3, 2, 2), {"strides": [1, 1]}),
        ((1, 2, 5), (3, 2, 2), {"strides": [0]}),
        ((1, 2, 5), (3, 2, 2), {"pads": [1]}),
        ((1, 2, 5), (3, 2, 2), {"pads": [1 << 40, 0]}),
        ((2, 5), (3, 2), {}),
        ((1, 2, 5), (3, 2, 2, 2), {}),
    ],
)
@pytest.mark.parametrize("op_type", ["Conv"])
def test_wrong_shapes_raise(op_type, x_shape, w_shape, attrs):
    with pytest.raises(ShapeError, match=op_type):
        arrays.call(op_type, "", [np.zeros(x_shape, np.float32), np.zeros(w_shape, np.float32)], attrs)


def test_unknown_auto_pad_is_unsupported():
    with pytest.raises(UnsupportedOp, match="auto_pad"):
        arrays.call("Conv", "", [np.zeros((1, 1, 3), np.float32)] * 2, {"auto_pad": "SAME"})


def test_axes_without_elements():
    def convolve(op, shape, **attributes):
        (y,) = arrays.call(op, "", [np.ones(shape, np.float32), np.ones((2, 2, 3), np.float32)], attributes, 1)
        return y.shape

    assert convolve("Conv", (1, 2, 0), auto_pad="SAME_LOWER") == (1, 2, 0)
    assert convolve("Conv", (0, 2, 4), auto_pad="SAME_UPPER") == (0, 2, 4)
    assert convolve("Conv", (1, 2, 0), pads=[2, 1]) == (1, 2, 1)
    assert convolve("ConvTranspose", (0, 2, 4)) == (0, 2, 6)
