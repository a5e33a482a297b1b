"""Element types that numpy lacks: their values, carried exactly in a wider type."""

from __future__ import annotations

from functools import cache

import numpy as np

from webrnn.ir.dtypes import DType


def widen(stored: np.ndarray, dtype: DType, n_elements: int) -> np.ndarray:
    """Values of a storage type from its bytes (or, for bfloat16, from 16-bit words).

    >>> widen(np.uint8([0x21, 0x0F]), DType.INT4, 3)
    array([ 1,  2, -1], dtype=int8)
    >>> widen(np.uint16([0x3F80]), DType.BFLOAT16, 1)
    array([1.], dtype=float32)
    """
    if dtype is DType.BFLOAT16:
        return (stored.astype(np.uint32) << 16).view(np.float32)
    if dtype in (DType.UINT4, DType.INT4, DType.FLOAT4E2M1):
        codes = np.stack([stored & 0x0F, stored >> 4], axis=1).reshape(-1)[:n_elements]
        return codes if dtype is DType.UINT4 else _table(dtype)[codes]
    if dtype in (DType.UINT2, DType.INT2):
        codes = np.stack([stored >> shift & 3 for shift in (0, 2, 4, 6)], axis=1).reshape(-1)[:n_elements]
        return codes if dtype is DType.UINT2 else _table(dtype)[codes]
    return _table(dtype)[stored]


@cache
def _table(dtype: DType) -> np.ndarray:
    """The value of every code."""
    match dtype:
        case DType.INT4:
            return np.r_[0:8, -8:0].astype(np.int8)
        case DType.INT2:
            return np.array([0, 1, -2, -1], np.int8)
        case DType.FLOAT4E2M1:
            return _floats(exponent_bits=2, mantissa_bits=1, bias=1)
        case DType.FLOAT8E4M3FN:
            table = _floats(exponent_bits=4, mantissa_bits=3, bias=7)
            table[[0x7F, 0xFF]] = np.nan
        case DType.FLOAT8E4M3FNUZ:
            table = _floats(exponent_bits=4, mantissa_bits=3, bias=8)
            table[0x80] = np.nan
        case DType.FLOAT8E5M2:
            table = _floats(exponent_bits=5, mantissa_bits=2, bias=15)
            table[[0x7C, 0xFC]] = np.inf, -np.inf
            table[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
        case DType.FLOAT8E5M2FNUZ:
            table = _floats(exponent_bits=5, mantissa_bits=2, bias=16)
            table[0x80] = np.nan
        case DType.FLOAT8E8M0:
            table = np.exp2(np.arange(256) - 127.0).astype(np.float32)
            table[0xFF] = np.nan
        case _:
            raise ValueError(f"{dtype.name} is not a narrow type")
    return table


def _floats(exponent_bits: int, mantissa_bits: int, bias: int) -> np.ndarray:
    codes = np.arange(1 << (1 + exponent_bits + mantissa_bits))
    mantissa = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    exponent = codes >> mantissa_bits & ((1 << exponent_bits) - 1)
    magnitude = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias))
    return np.where(codes >> (exponent_bits + mantissa_bits), -magnitude, magnitude).astype(np.float32)
