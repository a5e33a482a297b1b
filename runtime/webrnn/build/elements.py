"""Element types of files of weights, and the arrays that hold them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from webrnn.errors import ModelError


class Element(NamedTuple):
    stored: np.dtype
    """As the bytes lie in the file."""
    is_bfloat16: bool = False


def _of(spelling: str) -> Element:
    return Element(np.dtype(spelling))


BFLOAT16 = Element(np.dtype("<u2"), True)

TYPES_OF_SAFETENSORS = {
    "F64": _of("<f8"), "F32": _of("<f4"), "F16": _of("<f2"), "BF16": BFLOAT16,
    "I64": _of("<i8"), "I32": _of("<i4"), "I16": _of("<i2"), "I8": _of("i1"),
    "U64": _of("<u8"), "U32": _of("<u4"), "U16": _of("<u2"), "U8": _of("u1"), "BOOL": _of("?"),
}  # fmt: skip

TYPES_OF_TORCH = {
    "float64": _of("<f8"), "float32": _of("<f4"), "float16": _of("<f2"), "bfloat16": BFLOAT16,
    "int64": _of("<i8"), "int32": _of("<i4"), "int16": _of("<i2"), "int8": _of("i1"),
    "uint64": _of("<u8"), "uint32": _of("<u4"), "uint16": _of("<u2"), "uint8": _of("u1"), "bool": _of("?"),
}  # fmt: skip
"""By the name in the module torch."""

MOST_AXES = 32


def count_of(shape: Sequence[int]) -> int:
    return math.prod(shape)


def shaped(raw: np.ndarray, shape: Sequence[int], name: str) -> np.ndarray:
    if len(shape) > MOST_AXES:
        raise ModelError(f"tensor {name!r} has {len(shape)} axes")
    try:
        return raw.reshape(shape)
    except ValueError as error:
        raise ModelError(f"tensor {name!r}: {error}") from None


def widened(raw: np.ndarray, element: Element) -> np.ndarray:
    """The numbers: bfloat16 as float32, which has its upper half, and others as they are, in the order of this machine.

    >>> widened(np.array([0x3F80, 0xC000], "<u2"), BFLOAT16)
    array([ 1., -2.], dtype=float32)
    """
    if element.is_bfloat16:
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.astype(raw.dtype.newbyteorder("="), copy=False)
