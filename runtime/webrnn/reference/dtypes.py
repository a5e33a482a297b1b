"""ONNX element types (the integers of TensorProto.DataType) as numpy dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import ModelError, UnsupportedOp

from . import narrow

FLOAT, UINT8, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE = 1, 2, 6, 7, 8, 9, 10, 11

NUMPY_TYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.float32),
    2: np.dtype(np.uint8),
    3: np.dtype(np.int8),
    4: np.dtype(np.uint16),
    5: np.dtype(np.int16),
    6: np.dtype(np.int32),
    7: np.dtype(np.int64),
    8: np.dtype(object),
    9: np.dtype(np.bool_),
    10: np.dtype(np.float16),
    11: np.dtype(np.float64),
    12: np.dtype(np.uint32),
    13: np.dtype(np.uint64),
    14: np.dtype(np.complex64),
    15: np.dtype(np.complex128),
    **narrow.DTYPES,
}


def numpy_dtype(element_type: int, attribute: str) -> np.dtype[Any]:
    """The dtype that carries an ONNX element type.

    >>> numpy_dtype(1, "to")
    dtype('float32')
    """
    if not 1 <= element_type <= 28:
        raise ModelError(f"{element_type} is not an ONNX element type", attribute=attribute)
    dtype = NUMPY_TYPES.get(element_type)
    if dtype is None:
        raise UnsupportedOp(f"element type {element_type} is not supported", attribute=attribute)
    return dtype


def computing_dtype(element_type: int, attribute: str) -> np.dtype[Any]:
    """As `numpy_dtype`, for a type in which numpy can calculate."""
    dtype = numpy_dtype(element_type, attribute)
    if dtype.kind not in "fiub":
        raise UnsupportedOp(f"element type {element_type} is not supported here", attribute=attribute)
    return dtype
