"""Element types that numpy lacks: bfloat16, the 8-bit and smaller floats, the 4- and 2-bit integers.

A tensor of such a type is an array of a structured dtype with one field, named after the type, that holds one
element's bits in the low end of an unsigned integer (4- and 2-bit types are not packed). Numpy can move, reshape and
join such arrays but not calculate with them; `decode` and `encode` are the way to float32 and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .arrays import Array


@dataclass(frozen=True)
class NarrowType:
    """The layout of a type: sign, exponent and mantissa bits, bias, and what its special patterns mean."""

    name: str
    bits: int
    exponent: int = 0  # an integer type has no exponent bits
    mantissa: int = 0
    bias: int = 0
    signed: bool = True
    infinities: bool = False
    nan: int | None = None  # the pattern that `encode` writes for NaN; None if the type has no NaN
    negative_zero: bool = True

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype([(self.name, np.uint16 if self.bits == 16 else np.uint8)])

    @property
    def is_integer(self) -> bool:
        return self.exponent == 0


TYPES = {
    16: NarrowType("bfloat16", 16, 8, 7, 127, infinities=True, nan=0x7FC0),
    17: NarrowType("float8e4m3fn", 8, 4, 3, 7, nan=0x7F),
    18: NarrowType("float8e4m3fnuz", 8, 4, 3, 8, nan=0x80, negative_zero=False),
    19: NarrowType("float8e5m2", 8, 5, 2, 15, infinities=True, nan=0x7E),
    20: NarrowType("float8e5m2fnuz", 8, 5, 2, 16, nan=0x80, negative_zero=False),
    21: NarrowType("uint4", 4, signed=False),
    22: NarrowType("int4", 4),
    23: NarrowType("float4e2m1", 4, 2, 1, 1),
    24: NarrowType("float8e8m0", 8, 8, 0, 127, signed=False, nan=0xFF, negative_zero=False),
    25: NarrowType("uint2", 2, signed=False),
    26: NarrowType("int2", 2),
    27: NarrowType("float6e2m3", 6, 2, 3, 1),
    28: NarrowType("float6e3m2", 6, 3, 2, 3),
}
BFLOAT16 = TYPES[16]
DTYPES: dict[int, np.dtype[Any]] = {element_type: layout.dtype for element_type, layout in TYPES.items()}
_by_dtype = {layout.dtype: layout for layout in TYPES.values()}


def narrow_type(dtype: np.dtype[Any]) -> NarrowType | None:
    """The layout of a narrow dtype, None for a type that numpy itself knows."""
    return _by_dtype.get(dtype)


def from_bits(bits: Array, layout: NarrowType) -> Array:
    """Mark an array of bit patterns as a tensor of the narrow type."""
    return np.ascontiguousarray(bits, dtype=layout.dtype[0]).view(layout.dtype).reshape(np.shape(bits))


def to_bits(x: Array) -> Array:
    """The bit patterns of a narrow tensor, as unsigned integers."""
    assert x.dtype.names is not None
    return x[x.dtype.names[0]]


def decode(x: Array) -> Array:
    """The values of a narrow tensor: exactly, as float32, or int8 / uint8 for the integer types."""
    layout = _by_dtype[x.dtype]
    bits = to_bits(x)
    if layout.name == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return _values(layout)[bits & ((1 << layout.bits) - 1)]


def encode(x: Array, layout: NarrowType, *, saturate: bool = True) -> Array:
    """Round to nearest even; what does not fit becomes the largest value (saturate), else infinity or NaN.

    x is float32 or float64 for the float types (the rounding is single for float32), an integer for the integer
    types, of which the low bits are kept.
    """
    if layout.is_integer:
        return from_bits(x.astype(np.int64) & ((1 << layout.bits) - 1), layout)
    if layout.name == "bfloat16":
        return from_bits(_round_to_bfloat16(x.astype(np.float32)), layout)
    return from_bits(_round_to_table(x, layout, saturate), layout)


@lru_cache
def _values(layout: NarrowType) -> Array:
    """The value of every bit pattern."""
    patterns = np.arange(1 << layout.bits)
    if layout.is_integer:
        half = 1 << (layout.bits - 1)
        if layout.signed:
            return ((patterns ^ half) - half).astype(np.int8)
        return patterns.astype(np.uint8)
    mantissa = patterns & ((1 << layout.mantissa) - 1)
    exponent = (patterns >> layout.mantissa) & ((1 << layout.exponent) - 1)
    sign = np.where(layout.signed & (patterns >> (layout.bits - 1) == 1), -1.0, 1.0)
    subnormal = (exponent == 0) & (layout.name != "float8e8m0")
    significand = mantissa / (1 << layout.mantissa) + np.where(subnormal, 0.0, 1.0)
    values = sign * np.ldexp(significand, np.where(subnormal, 1, exponent) - layout.bias)
    if layout.infinities:
        top = exponent == (1 << layout.exponent) - 1
        values[top] = np.where(mantissa[top] == 0, sign[top] * np.inf, np.nan)
    elif layout.nan is not None:
        values[layout.nan] = np.nan
        if layout.name == "float8e4m3fn":
            values[layout.nan | 0x80] = np.nan
    return values.astype(np.float32)


def _round_to_bfloat16(x: Array) -> Array:
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(x), np.uint64(0x7FC0), rounded).astype(np.uint16)


def _round_to_table(x: Array, layout: NarrowType, saturate: bool) -> Array:
    """Nearest entry of the sorted list of finite magnitudes, ties to the even pattern."""
    values = _values(layout)
    positive = np.flatnonzero(np.isfinite(values) & (values >= 0) & ~np.signbit(values))
    magnitudes = values[positive].astype(np.float64)
    size = np.abs(x.astype(np.float64))
    above = np.clip(np.searchsorted(magnitudes, size), 1, len(magnitudes) - 1)
    below = above - 1
    midpoint = (magnitudes[above] + magnitudes[below]) / 2
    choose_above = (size > midpoint) | ((size == midpoint) & (positive[below] % 2 == 1))
    bits = np.where(choose_above, positive[above], positive[below])
    largest = magnitudes[-1]
    step = largest - magnitudes[-2]
    rounds_up = positive[-1] % 2 == 1  # of a tie between the largest value and what would come next
    overflow = (size >= largest + step / 2) if rounds_up else (size > largest + step / 2)
    not_a_number = np.isnan(x)
    if not saturate and layout.nan is not None:
        infinity = ((1 << layout.exponent) - 1) << layout.mantissa
        bits = np.where(overflow, infinity if layout.infinities else layout.nan, bits)
    else:
        bits = np.where(overflow, positive[-1], bits)
    if layout.signed:
        negative = np.signbit(x) & (layout.negative_zero | (bits != 0))
        bits = np.where(negative, bits | (1 << (layout.bits - 1)), bits)
    return np.where(not_a_number, 0 if layout.nan is None else layout.nan, bits).astype(np.uint8)
