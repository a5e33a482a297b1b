"""Arrays for inputs that a caller fixes."""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import ShapeError
from webrnn.ir import DType

from .tensors import ValueType


def fixed_array(given: Any, name: str, declared: ValueType) -> np.ndarray:
    """A copy of what is given, as the input declares it. Arrays have to be of the input's type and shape; Python's own
    numbers, and lists of them, are converted, and one number fills an input of known shape.

    >>> fixed_array(16000, "sr", ValueType(DType.INT64, (1,)))
    array([16000])
    >>> fixed_array(0.5, "sr", ValueType(DType.INT64, ()))
    Traceback (most recent call last):
        ...
    webrnn.errors.ShapeError: fixed input 'sr' is 0.5, which is no int64
    """
    if declared.container:
        raise ShapeError(f"fixed input {name!r} is a {declared.container[0]} in the model; only tensors can be fixed")
    is_array = isinstance(given, np.ndarray | np.generic)
    try:
        array = np.array(given)
        DType.of(array)
    except (ValueError, TypeError, OverflowError) as error:
        raise ShapeError(f"fixed input {name!r} is not an array: {error}") from None
    if declared.dtype is not None and array.dtype != declared.dtype.array_type:
        if is_array and declared.dtype is not DType.STRING:
            raise ShapeError(f"fixed input {name!r} is {array.dtype}, the model declares {declared.dtype.array_type}")
        array = _converted(array, given, name, declared.dtype)
    if declared.shape is not None and not is_array and array.ndim == 0 and declared.shape:
        array = _filled(array, name, declared)
    _check_shape(array, name, declared)
    return array


def _converted(array: np.ndarray, given: Any, name: str, dtype: DType) -> np.ndarray:
    refusal = ShapeError(f"fixed input {name!r} is {given!r}, which is no {dtype.text}")
    if dtype is DType.STRING and array.dtype.kind in "US":
        return array.astype(object)
    if dtype.is_narrow or array.dtype.kind not in "biuf" or dtype.array_type.kind not in "biuf":
        raise refusal
    with np.errstate(all="ignore"):
        converted = array.astype(dtype.array_type)
        if converted.dtype.kind == "f":
            fits = bool(np.all(np.isfinite(converted) == np.isfinite(array)))
        else:
            fits = np.array_equal(converted, array)
    if not fits or (array.dtype.kind == "b") != (converted.dtype.kind == "b"):
        raise refusal
    return converted


def _filled(array: np.ndarray, name: str, declared: ValueType) -> np.ndarray:
    sizes = [size for size in declared.shape or () if isinstance(size, int)]
    if len(sizes) != len(declared.shape or ()):
        shape = [None if size is None else str(size) for size in declared.shape or ()]
        raise ShapeError(f"fixed input {name!r} is one number, the model declares {shape}: give an array")
    return np.full(sizes, array)


def _check_shape(array: np.ndarray, name: str, declared: ValueType) -> None:
    if declared.shape is None:
        return
    if len(declared.shape) != array.ndim:
        raise ShapeError(f"fixed input {name!r} has {array.ndim} axes, the model declares {len(declared.shape)}")
    for axis, (have, need) in enumerate(zip(array.shape, declared.shape, strict=True)):
        if isinstance(need, int) and have != need:
            raise ShapeError(f"fixed input {name!r} has shape {array.shape}: axis {axis} is {have}, not {need}")
