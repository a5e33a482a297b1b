"""Conversions between element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import ModelError, UnsupportedOp

from . import narrow
from .arrays import Array
from .dtypes import numpy_dtype
from .registry import op


@op("Cast", any_type=True)
def cast(x: Array, *, to: int, saturate: int = 1, round_mode: str = "up") -> Array:
    return convert(x, numpy_dtype(to, "to"), bool(saturate), round_mode)


@op("CastLike", any_type=True)
def cast_like(x: Array, target: Array, *, saturate: int = 1, round_mode: str = "up") -> Array:
    return convert(x, target.dtype, bool(saturate), round_mode)


@op("BitCast", any_type=True)
def bit_cast(x: Array, *, to: int) -> Array:
    target = numpy_dtype(to, "to")
    if x.dtype.kind == "O" or target.kind == "O":
        raise ModelError("strings have no bits to reinterpret", attribute="to")
    if bit_width(x.dtype) != bit_width(target):
        raise ModelError(f"{x.dtype} and {target} differ in width", attribute="to")
    return np.ascontiguousarray(x).view(target).reshape(x.shape)


def bit_width(dtype: np.dtype[Any]) -> int:
    layout = narrow.narrow_type(dtype)
    return layout.bits if layout else dtype.itemsize * 8


def convert(x: Array, target: np.dtype[Any], saturate: bool = True, round_mode: str = "up") -> Array:
    """x in another element type, by the rules of ONNX's Cast."""
    if x.dtype == target:
        return x
    if narrow.narrow_type(x.dtype):
        return convert(narrow.decode(x), target, saturate, round_mode)
    layout = narrow.narrow_type(target)
    if layout:
        return _to_narrow(x, layout, saturate, round_mode)
    if x.dtype.kind == "O":
        return _parse(x, target)
    if target.kind == "O":
        return _print(x)
    if x.dtype.kind == "c":
        x = x.real if target.kind != "c" else x
    if x.dtype.kind == "f" and target.kind in "iu":
        return _float_to_integer(x, target)
    return x.astype(target)


def _to_narrow(x: Array, layout: narrow.NarrowType, saturate: bool, round_mode: str) -> Array:
    if x.dtype.kind == "O":
        x = _parse(x, np.dtype(np.float32))
    if layout.is_integer:
        return narrow.encode(np.rint(x) if x.dtype.kind == "f" else x, layout)
    if layout.name == "float8e8m0":
        return narrow.from_bits(_power_of_two_bits(x.astype(np.float32), saturate, round_mode), layout)
    return narrow.encode(x if x.dtype.kind == "f" else x.astype(np.float32), layout, saturate=saturate)


def _power_of_two_bits(x: Array, saturate: bool, round_mode: str) -> Array:
    """float8e8m0 is the exponent field of a float32; the mode says what happens to the mantissa.

    The exponent 0 stands for 2^-127, which is a subnormal float32 with the mantissa 0x400000.
    """
    bits = x.view(np.uint32)
    exponent = ((bits >> 23) & 0xFF).astype(np.int64)
    mantissa = bits & 0x7FFFFF
    if round_mode == "up":
        carry = mantissa > np.where(exponent > 0, 0, 0x400000)
    elif round_mode == "down":
        carry = np.zeros(x.shape, np.bool_)
    elif round_mode == "nearest":
        carry = mantissa >= np.where(exponent > 0, 0x400000, 0x600000)
    else:
        raise UnsupportedOp(f"{round_mode!r} is not one of up, down, nearest", attribute="round_mode")
    not_a_number, largest = 0xFF, 0xFE if saturate else 0xFF
    return np.where(exponent == 0xFF, not_a_number, np.minimum(exponent + carry, largest))


def _float_to_integer(x: Array, target: np.dtype[Any]) -> Array:
    """Toward zero. NaN and values that do not fit are undefined in ONNX: here, on all machines, they become what x86
    makes of them in onnxruntime, the smallest int32, or int64 for wider types, of which the low bits are kept.
    """
    through_32_bits = target.itemsize < 4 or target == np.int32
    wide = x if x.dtype == np.float64 else x.astype(np.float32)
    limit = 2.0**31 if through_32_bits else 2.0**63
    fits = (wide >= -limit) & (wide < limit)
    whole = np.where(fits, wide, -limit).astype(np.int32 if through_32_bits else np.int64).astype(target)
    if target == np.uint64:
        large = (wide >= limit) & (wide < 2 * limit)
        return np.where(large, np.where(large, wide, 0).astype(target), whole)
    return whole


def _parse(x: Array, target: np.dtype[Any]) -> Array:
    """Numbers from strings; 'NaN', 'INF' and scientific notation are accepted."""
    if target.kind == "b":
        raise UnsupportedOp("a string cannot be cast to bool")
    try:
        parse = _parse_integer if target.kind in "iu" else float
        return np.array([parse(text) for text in x.reshape(-1)], target).reshape(x.shape)
    except (ValueError, OverflowError) as error:
        raise ModelError(f"a string cannot be read as {target}: {error}") from None


def _parse_integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return int(float(text))


def _print(x: Array) -> Array:
    """Strings from numbers: the shortest that reads back as the same value."""
    flat = x.reshape(-1)
    if x.dtype.kind == "f":
        texts = [np.format_float_positional(value, trim="-") if np.isfinite(value) else _name(value) for value in flat]
    elif x.dtype.kind == "b":
        texts = [str(int(value)) for value in flat]
    else:
        texts = [str(value) for value in flat]
    result = np.empty(len(texts), object)
    result[:] = texts
    return result.reshape(x.shape)


def _name(value: Any) -> str:
    return "NaN" if np.isnan(value) else "INF" if value > 0 else "-INF"
