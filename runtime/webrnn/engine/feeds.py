"""What goes in and comes out: feeds are checked against what the model declares, results belong to the caller."""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import ShapeError
from webrnn.ir import DType, SymbolicDim, Value

from .javascript import JsProxy, array_of


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
    if value.shape is not None:
        _check_sizes(value, array, sizes)
    return array


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
            raise ShapeError(
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
