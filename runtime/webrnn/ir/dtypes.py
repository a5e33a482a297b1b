"""ONNX's element types and the numpy types that carry them."""

from __future__ import annotations

import enum

import numpy as np


class DType(enum.IntEnum):
    """An element type; the number is the one of ONNX's TensorProto.DataType.

    >>> DType.of(np.float32([1])), DType.INT64.array_type
    (<DType.FLOAT: 1>, dtype('int64'))
    """

    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26
    FLOAT6E2M3 = 27
    FLOAT6E3M2 = 28

    @staticmethod
    def of(array: np.ndarray) -> DType:
        """The element type of an array that is a tensor; strings are arrays of object."""
        if array.dtype.kind in "OUS":
            return DType.STRING
        found = _BY_ARRAY_TYPE.get(array.dtype)
        if found is None:
            raise TypeError(f"{array.dtype} is not an ONNX element type")
        return found

    @property
    def array_type(self) -> np.dtype:
        """The numpy type of the arrays that carry it.

        A type that numpy lacks is a structured one: a single field, named after the type, that holds the bits of one
        element. Such arrays can be moved and reshaped, and `webrnn.reference.narrow` decodes them.
        """
        return _ARRAY_TYPES[self]

    @property
    def is_narrow(self) -> bool:
        """Whether numpy lacks the type."""
        return self >= DType.BFLOAT16

    @property
    def text(self) -> str:
        """The name that onnxruntime uses: `float` in `tensor(float)`."""
        return self.name.lower()


_NUMPY_NAMES = {DType.FLOAT: "float32", DType.DOUBLE: "float64", DType.STRING: "object"}


def _array_type(dtype: DType) -> np.dtype:
    if dtype.is_narrow:
        return np.dtype([(dtype.text, np.uint16 if dtype is DType.BFLOAT16 else np.uint8)])
    return np.dtype(_NUMPY_NAMES.get(dtype, dtype.text))


_ARRAY_TYPES = {dtype: _array_type(dtype) for dtype in DType}
_BY_ARRAY_TYPE = {array_type: dtype for dtype, array_type in _ARRAY_TYPES.items()}
