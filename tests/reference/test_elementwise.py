"""arithmetic.py, logic.py, trigonometry.py, activation.py and erf.py."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrnn.checks import arrays
from webrnn.errors import ModelError, ShapeError, UnsupportedOp
from webrnn.reference.erf import erf

from .onnxruntime_oracle import check

SPECIAL = np.float32([0, -0.0, 1, -1, 0.5, -2.5, 3.5, 1e-30, 87, -87, 1e4, -1e4, np.inf, -np.inf, np.nan])
UNARY = [
    *("Abs", "Neg", "Sign", "Reciprocal", "Exp", "Log", "Sqrt", "Floor", "Ceil", "Round", "Erf", "IsNaN", "IsInf"),
    *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh"),
    *("Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Softplus"),
    *("Softsign", "Mish", "ThresholdedRelu"),
]
NOT_DEFINED_AT_INFINITY = {"Mish", "HardSwish", "Softsign", "Sin", "Cos", "Tan", "Celu", "Softplus"}


@pytest.mark.parametrize("op_type", UNARY)
def test_unary_on_special_values(op_type):
    x = SPECIAL[np.isfinite(SPECIAL)] if op_type in NOT_DEFINED_AT_INFINITY else SPECIAL
    if op_type in ("Tan", "Sin", "Cos"):
        x = x[np.abs(x) < 100]
    check(op_type, x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate):
    check("Gelu", np.linspace(-6, 6, 101, dtype=np.float32), approximate=approximate)


def test_erf_is_within_two_ulp_of_the_c_library():
    x = np.concatenate([np.linspace(-7, 7, 20001), 10.0 ** np.linspace(-300, 0, 301), [0.0, np.inf, -np.inf]])
    exact = np.array([math.erf(value) for value in x])
    assert np.max(np.abs(erf(x) - exact) / np.spacing(np.abs(exact))) <= 2


@given(st.sampled_from(["int32", "int64", "uint8", "float32"]), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_division_and_remainder_round_as_c_does(dtype, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-100, 100, (3, 1, 4)).astype(dtype), rng.integers(1, 9, (5, 1)).astype(dtype)
    if np.dtype(dtype).kind != "u":
        b = b * rng.choice([-1, 1], b.shape).astype(dtype)
    check("Div", a, b)
    check("Mod", a, b, fmod=1)
    if np.dtype(dtype).kind != "f":
        check("Mod", a, b)


@pytest.mark.parametrize(("base", "exponent"), [("f", "f"), ("f", "q"), ("i", "i"), ("q", "f"), ("i", "f")])
def test_pow_has_the_type_of_its_base(base, exponent):
    check("Pow", np.array([1, 2, 3], base), np.array([3, 2, 0], exponent))


@pytest.mark.parametrize("op_type", ["Max", "Min", "Sum", "Mean"])
def test_variadic_ops_broadcast(op_type):
    rng = np.random.default_rng(0)
    tensors = [rng.standard_normal(shape).astype(np.float32) for shape in ((3, 1), (1, 4), ())]
    check(op_type, *tensors)
    check(op_type, tensors[0])


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_family(op_type, axis, dtype):
    if (op_type, dtype) == ("Hardmax", np.float64):
        pytest.skip("not in onnxruntime")
    x = (np.random.default_rng(0).standard_normal((3, 4, 2)) * 40).astype(dtype)
    check(op_type, x, axis=axis)


def test_softmax_of_half_floats_and_of_nothing():
    x = np.full((1, 4096), 3, np.float16)
    (y,) = arrays.call("Softmax", "", [x], {})
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, 1 / 4096, rtol=1e-3)
    (empty,) = arrays.call("Softmax", "", [np.zeros((0, 3), np.float32)], {})
    assert empty.shape == (0, 3)


def test_clip_where_the_bounds_cross():
    check("Clip", np.float32([-3, 0, 3]), np.float32(2), np.float32(1))
    check("Clip", np.int64([-3, 0, 3]), None, np.array(1, np.int64))


def test_bit_shift_beyond_the_width():
    x = np.int8([-5, 5, -128])
    for amount in (8, 100, -1):
        shift = np.full(3, amount, np.int8)
        (right,) = arrays.call("BitShift", "", [x, shift], {"direction": "RIGHT"})
        (left,) = arrays.call("BitShift", "", [x, shift], {"direction": "LEFT"})
        assert right.tolist() == [-1, 0, -1]
        assert left.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("direction", "wanted"), [("RIGHT", [2**64 - 1, 2**63 - 1, 0]), ("LEFT", [2**64 - 1, 2**64 - 2, 0])]
)
def test_bit_shift_keeps_all_bits(direction, wanted):
    x, amount = np.array([2**64 - 1] * 3, np.uint64), np.array([0, 1, 64], np.uint64)
    assert arrays.call("BitShift", "", [x, amount], {"direction": direction})[0].tolist() == wanted


def test_scalars_stay_arrays():
    (y,) = arrays.call("Add", "", [np.float32(1).reshape(()), np.float32(2).reshape(())], {})
    assert isinstance(y, np.ndarray)
    assert y.dtype == np.float32


@pytest.mark.parametrize("op_type", ["Add", "Mul", "Equal", "Less", "Max"])
def test_mixed_types_raise(op_type):
    with pytest.raises(ModelError, match=f"{op_type}.*different types"):
        arrays.call(op_type, "", [np.zeros(2, np.float32), np.zeros(2, np.float64)], {})


def test_bad_operands_raise():
    with pytest.raises(ShapeError, match="Add"):
        arrays.call("Add", "", [np.zeros(2, np.float32), np.zeros(3, np.float32)], {})
    with pytest.raises(ModelError, match="division by zero"):
        arrays.call("Div", "", [np.int32([1]), np.int32([0])], {})
    with pytest.raises(ModelError, match="bool"):
        arrays.call("And", "", [np.int32([1]), np.int32([0])], {})
    with pytest.raises(ModelError, match="floating point"):
        arrays.call("Sqrt", "", [np.int32([1])], {})
    with pytest.raises(UnsupportedOp, match="direction"):
        arrays.call("BitShift", "", [np.uint8([1]), np.uint8([1])], {"direction": "UP"})
