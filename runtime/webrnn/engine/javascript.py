"""JavaScript values inside Pyodide: objects of feeds, typed arrays as feeds, typed arrays that results are written to.

A typed array is in JavaScript's memory and the kernels are not: its elements are copied once, here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from webrnn.errors import ShapeError
from webrnn.ir import DType, SymbolicDim, Value

INSIDE_PYODIDE = sys.platform == "emscripten"

if INSIDE_PYODIDE:
    from pyodide.ffi import JsProxy
else:

    class JsProxy:  # type: ignore[no-redef]
        """Nothing is one outside of Pyodide."""


TYPED_ARRAYS = {
    "Float32Array": np.float32,
    "Float64Array": np.float64,
    "BigInt64Array": np.int64,
    "Int32Array": np.int32,
    "BigUint64Array": np.uint64,
    "Int16Array": np.int16,
    "Int8Array": np.int8,
    "Uint32Array": np.uint32,
    "Uint16Array": np.uint16,
    "Uint8Array": np.uint8,
    "Float16Array": np.float16,
}


def mapping_of(feeds: Any) -> Mapping[str, Any]:
    """Feeds as Python sees them: a JavaScript object or Map becomes a dict of its values."""
    if not isinstance(feeds, JsProxy):
        return feeds
    entries: Any = feeds
    return dict(entries.items() if hasattr(entries, "items") else entries.object_entries())


def array_of(value: Value, feed: JsProxy) -> np.ndarray:
    """A copy of a typed array, or of an object with `data` and `dims` such as a tensor of onnxruntime-web.

    A typed array alone has no shape: it gets the one that the model declares, of which one size may be open.
    """
    data: Any = feed
    dims: Any = None
    if not _is_buffer(feed):
        data, dims = getattr(feed, "data", None), getattr(feed, "dims", None)
    if not _is_buffer(data):
        raise ShapeError(f"input {value.name!r} is neither an array, a typed array, nor an object with data and dims")
    flat = np.asarray(data.to_memoryview())
    flat = _as_declared(value.dtype, flat)
    shape = tuple(int(size) for size in dims) if dims is not None else _shape_for(value, flat.size)
    try:
        return flat.reshape(shape)
    except ValueError:
        raise ShapeError(f"input {value.name!r}: {flat.size} elements are not {list(shape)}") from None


def _as_declared(dtype: DType | None, flat: np.ndarray) -> np.ndarray:
    """JavaScript has bools as bytes, and the types that it lacks as bits."""
    if dtype is DType.BOOL and flat.dtype == np.uint8:
        return flat.view(np.bool_)
    is_bits = dtype is not None and (dtype.is_narrow or dtype is DType.FLOAT16) and flat.dtype.kind == "u"
    if dtype is None or not is_bits or flat.dtype.itemsize != dtype.array_type.itemsize:
        return flat
    return flat.view(dtype.array_type)


def _shape_for(value: Value, n_elements: int) -> tuple[int, ...]:
    if value.shape is None:
        return (n_elements,)
    sizes = [-1 if dim is None or isinstance(dim, SymbolicDim) else dim for dim in value.shape]
    if sizes.count(-1) > 1:
        raise ShapeError(
            f"input {value.name!r}: a typed array does not say which of {list(value.shape)} it is; "
            "give an object with data and dims, or a numpy array"
        )
    return tuple(sizes)


def require_fits(target: Any, output: np.ndarray, name: str) -> None:
    """Whether a result can be written into a typed array with its `assign`."""
    kind = target.constructor.name
    if TYPED_ARRAYS.get(kind) != _in_javascript(output.dtype) or target.length != output.size:
        raise ShapeError(
            f"out for {name!r} is a {kind} of {getattr(target, 'length', None)}, the step gives "
            f"{output.dtype}{list(output.shape)}"
        )


def _in_javascript(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype[0] if dtype.names else dtype


def _is_buffer(value: Any) -> bool:
    return isinstance(value, JsProxy) and hasattr(value, "assign_to")


def sequence_of(out: Any) -> Sequence[Any]:
    """A JavaScript array of typed arrays, or Python's."""
    return list(out) if isinstance(out, JsProxy) else out
