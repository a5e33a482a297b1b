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

    @staticmethod
    def of(array: np.ndarray) -> DType:
        """The element type of an array that is a tensor; strings are arrays of object."""
        if array.dtype.kind in "OUS":
            return DType.STRING
        found = _BY_NUMPY_NAME.get(array.dtype.name)
        if found is None:
            raise TypeError(f"{array.dtype} is not an ONNX element type")
        return found

    @property
    def array_type(self) -> np.dtype:
        """The numpy type of the arrays that carry it: its own, or for a storage type a wider one."""
        return _ARRAY_TYPES[self]

    @property
    def is_storage(self) -> bool:
        """Whether numpy lacks the type, so that its values are carried in a wider one and cannot be computed with."""
        return self >= DType.BFLOAT16

    @property
    def text(self) -> str:
        """The name that onnxruntime uses: `float` in `tensor(float)`."""
        return self.name.lower()


_ARRAY_TYPES = {
    DType.FLOAT: np.dtype(np.float32),
    DType.STRING: np.dtype(object),
    DType.BFLOAT16: np.dtype(np.float32),
    DType.FLOAT8E4M3FN: np.dtype(np.float32),
    DType.FLOAT8E4M3FNUZ: np.dtype(np.float32),
    DType.FLOAT8E5M2: np.dtype(np.float32),
    DType.FLOAT8E5M2FNUZ: np.dtype(np.float32),
    DType.FLOAT8E8M0: np.dtype(np.float32),
    DType.FLOAT4E2M1: np.dtype(np.float32),
    DType.UINT4: np.dtype(np.uint8),
    DType.INT4: np.dtype(np.int8),
    DType.UINT2: np.dtype(np.uint8),
    DType.INT2: np.dtype(np.int8),
}
for _dtype in DType:
    if _dtype not in _ARRAY_TYPES:
        _ARRAY_TYPES[_dtype] = np.dtype({DType.DOUBLE: "float64"}.get(_dtype, _dtype.name.lower()))

_BY_NUMPY_NAME = {_ARRAY_TYPES[dtype].name: dtype for dtype in DType if not dtype.is_storage}
