"""What goes in and comes out: feeds are checked against what the model declares, results belong to the caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from webrnn.errors import ShapeError
from webrnn.ir import DType, SymbolicDim, Value

from .javascript import JsProxy, array_of


class SizeConflict(ShapeError):
    """Two inputs have different sizes where the model has one name for both."""


def checked_feed(value: Value, feed: Any, sizes: dict[str, int]) -> Any:
    """What the graph gets for an input: an array, a list of arrays for a sequence, None for an empty optional.

    `sizes` are the named sizes seen so far in this call; they have to agree between inputs.
    """
    return _checked(value, feed, value.container, sizes)


def _checked(value: Value, feed: Any, container: tuple[str, ...], sizes: dict[str, int]) -> Any:
    if container and container[0] == "optional":
        return None if feed is None else _checked(value, feed, container[1:], sizes)
    if container and container[0] == "seq":
        if not isinstance(feed, list | tuple):
            raise ShapeError(f"input {value.name!r} is a sequence; feed a list, not {type(feed).__name__}")
        return [_checked(value, item, container[1:], {}) for item in feed]
    return _checked_tensor(value, feed, sizes)


def _checked_tensor(value: Value, feed: Any, sizes: dict[str, int]) -> np.ndarray:
    try:
        array = array_of(value, feed) if isinstance(feed, JsProxy) else np.asarray(feed)
    except ValueError as error:
        raise ShapeError(f"input {value.name!r} is not an array: {error}") from None
    if _is_of_python(feed):
        array = _of_numbers(value, array)
    array = from_ml_dtypes(array)
    if not array.dtype.isnative and array.dtype.kind in "iufc":
        array = array.astype(array.dtype.newbyteorder("="))
    if value.dtype is DType.STRING and array.dtype.kind in "US":
        array = array.astype(object)
    if value.dtype is not None and array.dtype != value.dtype.array_type:
        hint = (
            "; numpy makes int32 of Python's integers here, give dtype=np.int64"
            if _is_default_of_32_bits(array)
            else ""
        )
        raise ShapeError(f"input {value.name!r} is {array.dtype}, the model declares {value.dtype.array_type}{hint}")
    try:
        DType.of(array)
    except TypeError as error:
        raise ShapeError(f"input {value.name!r}: {error}") from None
    if value.shape == () and array.size == 1 and array.ndim:
        array = array.reshape(())
    if value.shape is not None:
        _check_sizes(value, array, sizes)
    return array


def _is_of_python(feed: Any) -> bool:
    """Whether it is a number of Python's, or a list, whatever that holds; numpy's numbers and arrays have a type of
    their own."""
    return isinstance(feed, bool | int | float | list | tuple) and not isinstance(feed, np.generic)


def _of_numbers(value: Value, array: np.ndarray) -> np.ndarray:
    """Python's numbers, and lists, have no type of their own: they are of the declared one, if that has them."""
    if value.dtype is None or value.dtype is DType.STRING or array.dtype == value.dtype.array_type:
        return array
    target = value.dtype.array_type
    is_float = target.kind == "f" or value.dtype.text.startswith(("bfloat", "float"))
    if array.size and array.dtype.kind not in "biuf":
        return array
    from webrnn.reference.cast import convert  # a page waits for what is imported
    from webrnn.reference.narrow import decode

    made = convert(array, target)
    if not is_float and not np.array_equal(made if target.kind != "V" else decode(made), array):
        raise ShapeError(f"input {value.name!r} has numbers that {value.dtype.text} does not have")
    return made


_ML_DTYPES = {
    "bfloat16": DType.BFLOAT16, "float8_e4m3fn": DType.FLOAT8E4M3FN, "float8_e4m3fnuz": DType.FLOAT8E4M3FNUZ,
    "float8_e5m2": DType.FLOAT8E5M2, "float8_e5m2fnuz": DType.FLOAT8E5M2FNUZ, "float8_e8m0fnu": DType.FLOAT8E8M0,
    "float4_e2m1fn": DType.FLOAT4E2M1, "float6_e2m3fn": DType.FLOAT6E2M3, "float6_e3m2fn": DType.FLOAT6E3M2,
    "int4": DType.INT4, "uint4": DType.UINT4, "int2": DType.INT2, "uint2": DType.UINT2,
}  # fmt: skip
"""What the package ml_dtypes calls the types that numpy lacks."""


def ml_dtype_of(array: object) -> DType | None:
    """Of an array of a type of ml_dtypes: which one."""
    return _ML_DTYPES.get(array.dtype.name) if isinstance(array, np.ndarray) and not array.dtype.names else None


def from_ml_dtypes(array: np.ndarray) -> np.ndarray:
    dtype = ml_dtype_of(array)
    if dtype is None:
        return array
    from webrnn.reference.narrow import TYPES, from_bits

    layout = TYPES[dtype]
    bits = np.ascontiguousarray(array).view(layout.dtype[0]).reshape(array.shape)
    return from_bits(bits & ((1 << layout.bits) - 1), layout)


def like_feeds(results: list[Any], feeds: Iterable[Any]) -> list[Any]:
    """Results of types that numpy lacks, as the feeds have them: types of ml_dtypes stay such."""
    foreign = {dtype: feed.dtype for feed in feeds if (dtype := ml_dtype_of(feed)) is not None}
    if not foreign:
        return results
    return [_as_ml_dtype(result, foreign) if isinstance(result, np.ndarray) else result for result in results]


def _as_ml_dtype(array: np.ndarray, foreign: Mapping[DType, np.dtype[Any]]) -> np.ndarray:
    wanted = foreign.get(DType.of(array))
    if wanted is None:
        return array
    from webrnn.reference.narrow import to_bits

    return to_bits(array).astype(f"u{wanted.itemsize}").view(wanted)


def _is_default_of_32_bits(array: np.ndarray) -> bool:
    """Whether the array may be of int32 only because this is a platform of 32 bits, as WebAssembly is."""
    return array.dtype == np.int32 == np.dtype(int)


def _check_sizes(value: Value, array: np.ndarray, sizes: dict[str, int]) -> None:
    assert value.shape is not None
    declared = list(value.shape)
    if array.ndim != len(declared):
        raise ShapeError(f"input {value.name!r} has shape {array.shape}, the model declares {declared}")
    for axis, (size, dim) in enumerate(zip(array.shape, declared, strict=True)):
        if isinstance(dim, SymbolicDim):
            expected = sizes.setdefault(str(dim), size)
        else:
            expected = size if dim is None else dim
        if size != expected:
            kind = SizeConflict if isinstance(dim, SymbolicDim) else ShapeError
            raise kind(
                f"input {value.name!r} has shape {array.shape}, the model declares {declared}: "
                f"axis {axis} is {size}, not {expected}"
            )


def own(results: list[Any], borrowed: list[Any]) -> list[Any]:
    """The results, copied where their memory is also an input's, a constant's or another result's."""
    taken = {id(item) for item in _arrays(borrowed)}

    def owned(item: Any) -> Any:
        if isinstance(item, list):
            return [owned(element) for element in item]
        if not isinstance(item, np.ndarray):
            return item
        if item.base is not None or not item.flags.writeable or not item.flags.c_contiguous or id(item) in taken:
            item = item.copy()
        taken.add(id(item))
        return item

    return [owned(item) for item in results]


def _arrays(items: list[Any]) -> list[Any]:
    found = []
    for item in items:
        found.extend(_arrays(item) if isinstance(item, list) else [item])
    return found


def read_only(array: Any) -> Any:
    """The same memory, marked as not the caller's: `own` copies it."""
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view
