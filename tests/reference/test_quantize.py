"""quantize.py, quantized_lstm.py, cast.py and narrow.py."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrnn.checks import arrays
from webrnn.errors import Error, UnsupportedOp
from webrnn.reference import narrow

from .onnxruntime_oracle import check


@given(st.sampled_from([np.uint8, np.int8, np.uint16, np.int16]), st.integers(0, 99), st.sampled_from([None, 0, -1]))
@settings(max_examples=40, deadline=None)
def test_quantize_and_dequantize(dtype, seed, axis):
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((3, 5)) * 100).astype(np.float32)
    shape = () if axis is None else (x.shape[axis],)
    scale = np.asarray(rng.uniform(0.1, 2, shape), np.float32)
    zero_point = np.asarray(rng.integers(0, 100, shape), dtype)
    attrs = {} if axis is None else {"axis": axis}
    (y,) = check("QuantizeLinear", x, scale, zero_point, **attrs)
    check("DequantizeLinear", y, scale, zero_point, **attrs)


def test_blocked_quantization():
    x = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32) * 100
    scale = np.random.default_rng(1).uniform(0.5, 2, (2, 3)).astype(np.float32)
    (y,) = check("QuantizeLinear", x, scale, np.full((2, 3), 5, np.uint8), axis=1, block_size=2)
    check("DequantizeLinear", y, scale, np.full((2, 3), 5, np.uint8), axis=1, block_size=2)


def test_quantize_rounds_half_to_even_and_saturates():
    check("QuantizeLinear", np.float32([0.5, 1.5, 2.5, -0.5, 1e9, -1e9]), np.float32(1), np.uint8(3))


@pytest.mark.parametrize("values", [[1, 2, 3], [-3, -1], [0, 0], [-1, 4, 2.5]])
def test_dynamic_quantize_linear(values):
    check("DynamicQuantizeLinear", np.float32(values), n_outputs=3)


def test_quantized_products():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (3, 4), np.uint8), rng.integers(0, 64, (4, 5), np.uint8)
    s, t, u = np.float32(0.1), np.float32(0.2), np.float32(0.9)
    check("QLinearMatMul", a, s, np.uint8(120), b, t, np.uint8(30), u, np.uint8(100))
    x, w = rng.integers(0, 256, (1, 2, 6), np.uint8), rng.integers(0, 64, (3, 2, 3), np.uint8)
    bias = rng.integers(-50, 50, 3).astype(np.int32)
    check("QLinearConv", x, s, np.uint8(120), w, t, np.uint8(30), u, np.uint8(100), bias, pads=[1, 1])


@pytest.mark.parametrize(
    ("direction", "batch", "per_column", "signed"),
    list(itertools.product(["forward", "reverse", "bidirectional"], [1, 3], [False, True], [False, True])),
)
def test_dynamic_quantize_lstm(direction, batch, per_column, signed):
    rng = np.random.default_rng(0)
    directions, steps, inputs, hidden = (2 if direction == "bidirectional" else 1), 5, 6, 4

    def floats(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def weights(rows):
        # 7 bits when signed: without VNNI onnxruntime saturates the sum of two products of full range.
        low, high, dtype = (-63, 64, np.int8) if signed else (0, 256, np.uint8)
        return rng.integers(low, high, (directions, rows, 4 * hidden)).astype(dtype)

    shape = (directions, 4 * hidden) if per_column else (directions,)
    w, r = weights(inputs), weights(hidden)
    scales = [rng.uniform(0.002, 0.012, shape).astype(np.float32) for _ in range(2)]
    zero_point = np.full(shape, 0 if signed else 128, w.dtype)
    state = (directions, batch, hidden)
    check(
        "DynamicQuantizeLSTM",
        *(floats(steps, batch, inputs), w, r, floats(directions, 8 * hidden)),
        np.full(batch, steps, np.int32) if batch > 1 else np.array([3], np.int32),
        *(floats(*state), floats(*state), floats(directions, 3 * hidden)),
        *(scales[0], zero_point, scales[1], zero_point),
        domain="com.microsoft",
        n_outputs=3,
        direction=direction,
        hidden_size=hidden,
    )


def test_dynamic_quantize_lstm_of_required_inputs_only():
    rng = np.random.default_rng(0)
    x, scale, zero_point = rng.standard_normal((3, 1, 6)).astype(np.float32), np.float32([0.01]), np.uint8([128])
    w, r = (rng.integers(0, 256, (1, rows, 16)).astype(np.uint8) for rows in (6, 4))
    inputs = (x, w, r, None, None, None, None, None, scale, zero_point, scale, zero_point)
    check("DynamicQuantizeLSTM", *inputs, domain="com.microsoft", n_outputs=3, hidden_size=4)


@pytest.mark.parametrize("to", [1, 2, 3, 6, 7, 9, 10, 11])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.uint8, np.float16])
def test_cast(to, dtype):
    check("Cast", np.array([0, 1, 2.75, 100]).astype(dtype), to=to)


@pytest.mark.parametrize("to", [16, 17, 18, 19, 20])
def test_cast_to_narrow_floats_and_back(to):
    import ml_dtypes

    names = {16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz"}
    finite = np.concatenate([np.linspace(-200, 200, 999), 2.0 ** np.arange(-20, 7), [0, -0.0]]).astype(np.float32)
    (narrowed,) = arrays.call("Cast", "", [finite], {"to": to})
    (back,) = arrays.call("Cast", "", [narrowed], {"to": 1})
    expected = finite.astype(getattr(ml_dtypes, names[to])).astype(np.float32)
    np.testing.assert_array_equal(back, expected)


@pytest.mark.parametrize("element_type", sorted(narrow.TYPES))
def test_every_narrow_pattern_survives_a_round_trip(element_type):
    layout = narrow.TYPES[element_type]
    patterns = narrow.from_bits(np.arange(1 << layout.bits), layout)
    values = narrow.decode(patterns)
    if layout.name == "float8e8m0":
        again = arrays.call("Cast", "", [values], {"to": element_type})[0]
    else:
        again = narrow.encode(values, layout, saturate=False)
    is_number = ~np.isnan(values.astype(np.float32))
    np.testing.assert_array_equal(narrow.to_bits(again)[is_number], narrow.to_bits(patterns)[is_number])


@pytest.mark.parametrize("layout", [layout for layout in narrow.TYPES.values() if layout.name != "bfloat16"])
def test_arithmetic_on_narrow_types_is_refused_not_wrong(layout):
    x = narrow.encode(np.float32([0, 1]), layout)
    assert arrays.call("Reshape", "", [x, np.int64([2, 1])], {})[0].dtype == x.dtype
    for op_type, inputs in (("Equal", [x, x]), ("ArgMax", [x]), ("TopK", [x, np.int64([1])]), ("Add", [x, x])):
        with pytest.raises(UnsupportedOp, match=layout.name):
            arrays.call(op_type, "", inputs, {})


def test_arithmetic_on_bfloat16_is_that_of_float32_rounded():
    """1 + 2**-8 lies between two numbers of bfloat16, of which 1 is the even one; 2.015625 + 2**-7 goes up to one."""
    layout = narrow.TYPES[16]
    x, y = (narrow.encode(np.float32(values), layout) for values in ([1, -2, 2.015625], [2**-8, 1, 2**-7]))
    (total,) = arrays.call("Add", "", [x, y], {})
    assert total.dtype == layout.dtype
    np.testing.assert_array_equal(narrow.decode(total), np.float32([1, -1, 2.03125]))
    assert arrays.call("Less", "", [x, y], {})[0].tolist() == [False, True, False]
    assert arrays.call("ArgMax", "", [x], {})[0].tolist() == [2]


def test_mistakes_raise():
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(Error, match="QuantizeLinear"):
        arrays.call("QuantizeLinear", "", [x, np.ones(2, np.float32)], {})
    with pytest.raises(Error, match="output_dtype"):
        arrays.call("QuantizeLinear", "", [x, np.float32(1), np.uint8(0)], {"output_dtype": 3})
    with pytest.raises(Error, match="'to'"):
        arrays.call("Cast", "", [x], {"to": 99})
    with pytest.raises(Error, match="string"):
        arrays.call("Cast", "", [np.array(["x"], object)], {"to": 1})
