"""TensorProto to numpy, views on the bytes of the file wherever the encoding allows it, and TypeProto to what a Value
knows of itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from webrnn.errors import ModelError, UnsupportedOp
from webrnn.ir import DType, Shape, Symbol

from .proto import ShapeProto, SparseTensor, Tensor, TypeProto
from .wire import Span, decode_varints

_TYPED_INTEGERS = {
    DType.INT64: "longs",
    DType.UINT32: "unsigned",
    DType.UINT64: "unsigned",
}
"""Where the integers of a type are; `int32_data` holds those of all other types."""

_BITS_PER_ELEMENT = {
    DType.UINT4: 4,
    DType.INT4: 4,
    DType.FLOAT4E2M1: 4,
    DType.UINT2: 2,
    DType.INT2: 2,
    DType.FLOAT6E2M3: 6,
    DType.FLOAT6E3M2: 6,
}
"""The types that share bytes in `raw_data`."""

_AS_STORED: dict[DType, np.dtype] = {
    dtype: dtype.array_type
    for dtype in DType
    if dtype not in _BITS_PER_ELEMENT and dtype not in (DType.BOOL, DType.STRING)
}
"""The types whose raw bytes are the array."""


class TensorReader:
    """Makes arrays of the tensors of one file. `folder` is where external data may lie; None allows none."""

    def __init__(self, data: bytes, folder: Path | None):
        self._data = data
        self._folder = folder
        self._external: dict[str, np.ndarray] = {}

    def read(self, tensor: Tensor) -> tuple[np.ndarray, DType]:
        """The array of a tensor and its element type."""
        dtype = DTYPES.get(tensor.data_type) or element_type(tensor.data_type, f"tensor {tensor.name!r}")
        shape = _checked_shape(tensor.dims, tensor.name)
        array_type = _AS_STORED.get(dtype)
        if tensor.raw is not None and array_type is not None and not tensor.location:
            start, stop = tensor.raw
            _check_bytes(stop - start, math.prod(shape) * array_type.itemsize, tensor.name)
            return np.ndarray(shape, array_type, self._data, start), dtype
        return self._flat(tensor, dtype, math.prod(shape)).reshape(shape), dtype

    def _flat(self, tensor: Tensor, dtype: DType, n_elements: int) -> np.ndarray:
        if dtype is DType.STRING:
            return self._strings(tensor, n_elements)
        if tensor.location == 1:
            return self._from_bytes(self.external_bytes(tensor), dtype, n_elements, tensor.name)
        if tensor.raw is not None:
            start, stop = tensor.raw
            stored = np.ndarray((stop - start,), np.uint8, self._data, start)
            return self._from_bytes(stored, dtype, n_elements, tensor.name)
        return self._from_typed_fields(tensor, dtype, n_elements)

    def read_sparse(self, sparse: SparseTensor) -> tuple[np.ndarray, DType]:
        """A sparse tensor as a dense array."""
        if sparse.values is None or sparse.indices is None:
            raise ModelError("a sparse tensor lacks its values or its indices")
        values, dtype = self.read(sparse.values)
        indices, index_type = self.read(sparse.indices)
        name = sparse.values.name
        shape = _checked_shape(sparse.dims, name)
        if values.ndim != 1 or index_type is not DType.INT64:
            raise ModelError(f"sparse tensor {name!r} needs a list of values and int64 indices")
        if indices.shape not in ((values.size,), (values.size, len(shape))):
            raise ModelError(
                f"sparse tensor {name!r} has {values.size} values and indices of shape {list(indices.shape)}"
            )
        if math.prod(shape) > max(2**24, 1000 * values.size):
            raise UnsupportedOp(f"sparse tensor {name!r} of {shape} is too large to be made dense")
        sizes = shape if indices.ndim == 2 else (math.prod(shape),)
        positions = indices.reshape(values.size, len(sizes))
        if np.any(positions < 0) or np.any(positions >= np.array(sizes, np.int64)):
            raise ModelError(f"sparse tensor {name!r} of {list(shape)} has an index outside of it")
        if len(np.unique(positions, axis=0)) < values.size:
            raise ModelError(f"sparse tensor {name!r} has two values for one element")
        dense = np.full(sizes, "", object) if dtype is DType.STRING else np.zeros(sizes, values.dtype)
        dense[tuple(positions.T)] = values
        return dense.reshape(shape), dtype

    def floats(self, spans: Sequence[Span], type_name: str = "<f4") -> np.ndarray:
        """The numbers in the spans of a repeated float or double field."""
        itemsize = np.dtype(type_name).itemsize
        for start, stop in spans:
            if (stop - start) % itemsize:
                raise ModelError(f"a list of {type_name} numbers at byte {start} has {stop - start} bytes")
        if len(spans) == 1:
            start, stop = spans[0]
            return np.ndarray(((stop - start) // itemsize,), type_name, self._data, start)
        return np.frombuffer(b"".join(self._data[start:stop] for start, stop in spans), type_name)

    def _from_bytes(self, stored: np.ndarray, dtype: DType, n_elements: int, name: str) -> np.ndarray:
        bits = _BITS_PER_ELEMENT.get(dtype, 8 * dtype.array_type.itemsize)
        expected = -(-n_elements * bits // 8)
        _check_bytes(stored.size, expected, name)
        if dtype in _BITS_PER_ELEMENT:
            return _unpacked(stored, bits, n_elements).view(dtype.array_type)
        if dtype is DType.BOOL:
            return stored != 0
        return stored.view(dtype.array_type)

    def _from_typed_fields(self, tensor: Tensor, dtype: DType, n_elements: int) -> np.ndarray:
        if dtype in (DType.FLOAT, DType.COMPLEX64):
            flat = self.floats(tensor.floats)
        elif dtype in (DType.DOUBLE, DType.COMPLEX128):
            flat = self.floats(tensor.doubles, "<f8")
        else:
            return self._from_integers(tensor, dtype, n_elements)
        if dtype in (DType.COMPLEX64, DType.COMPLEX128):
            if flat.size % 2:
                raise ModelError(f"tensor {tensor.name!r} has half a complex number")
            flat = flat.view(dtype.array_type)
        return _of_size(flat, n_elements, tensor.name)

    def _from_integers(self, tensor: Tensor, dtype: DType, n_elements: int) -> np.ndarray:
        numbers = decode_varints(self._data, getattr(tensor, _TYPED_INTEGERS.get(dtype, "integers")))
        bits = _BITS_PER_ELEMENT.get(dtype)
        if bits in (2, 4):
            packed = _of_size(numbers.astype(np.uint8), -(-n_elements * bits // 8), tensor.name)
            return _unpacked(packed, bits, n_elements).view(dtype.array_type)
        if dtype is DType.BOOL:
            flat = numbers != 0
        elif dtype is DType.FLOAT16 or dtype.is_narrow:
            as_bits = np.uint16 if dtype.array_type.itemsize == 2 else np.uint8
            flat = numbers.astype(as_bits).view(dtype.array_type)
        else:
            flat = numbers.view(np.int64).astype(dtype.array_type, copy=False)
        return _of_size(flat, n_elements, tensor.name)

    def _strings(self, tensor: Tensor, n_elements: int) -> np.ndarray:
        if tensor.raw is not None or tensor.location == 1:
            raise ModelError(f"tensor {tensor.name!r} of strings is not encoded as strings")
        flat = np.empty(len(tensor.strings), object)
        try:
            flat[:] = [item.decode() for item in tensor.strings]
        except UnicodeDecodeError:
            raise ModelError(f"tensor {tensor.name!r} has a string that is not UTF-8") from None
        return _of_size(flat, n_elements, tensor.name)

    def external_bytes(self, tensor: Tensor) -> np.ndarray:
        where = {entry.key: entry.value for entry in tensor.external}
        location = where.get("location", "")
        if location not in self._external:
            path = self._inside_folder(location, tensor.name)
            try:
                self._external[location] = np.memmap(path, np.uint8, mode="r") if path.stat().st_size else _NO_BYTES
            except OSError as error:
                raise ModelError(f"external data of tensor {tensor.name!r}: {error}") from None
        whole = self._external[location]
        try:
            offset = int(where.get("offset", "0"))
            length = int(where["length"]) if "length" in where else whole.size - offset
        except ValueError:
            raise ModelError(f"tensor {tensor.name!r} has an external offset or length that is no number") from None
        if offset < 0 or length < 0 or offset + length > whole.size:
            raise ModelError(f"tensor {tensor.name!r} lies outside of the {whole.size} bytes of {location!r}")
        return whole[offset : offset + length]

    def _inside_folder(self, location: str, name: str) -> Path:
        if self._folder is None:
            raise ModelError(
                f"tensor {name!r} is in file {location!r}; a model given as bytes has no folder to find it"
            )
        folder = self._folder.resolve()
        try:
            path = (folder / location).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise ModelError(f"external data of tensor {name!r}: {str(error)[:200]}") from None
        parts = location.replace("\\", "/").split("/")
        if not location or ".." in parts or location.startswith(("/", "\\")) or not path.is_relative_to(folder):
            raise ModelError(f"external data of tensor {name!r} is outside of the model's folder: {location!r}")
        try:
            is_file = path.is_file()
        except OSError as error:  # a name that is too long
            raise ModelError(f"external data of tensor {name!r}: {error.strerror}") from None
        if not is_file:
            raise ModelError(f"external data of tensor {name!r}: there is no file {location!r}")
        return path


_NO_BYTES = np.empty(0, np.uint8)


DTYPES = {int(dtype): dtype for dtype in DType}


def element_type(code: int, what: str) -> DType:
    """The element type with this number."""
    if code not in DTYPES:
        raise ModelError(f"{what} has the unknown element type {code}")
    return DTYPES[code]


def _unpacked(packed: np.ndarray, bits: int, n_elements: int) -> np.ndarray:
    """One byte for each element of fewer bits; the first element is in the lowest bits of the first byte."""
    stream = np.unpackbits(packed, count=n_elements * bits, bitorder="little").reshape(n_elements, bits)
    return np.packbits(stream, axis=1, bitorder="little").reshape(n_elements)


def _checked_shape(dims: Sequence[int], name: str) -> tuple[int, ...]:
    if min(dims, default=0) < 0 or math.prod(filter(None, dims)) >= 2**62 or len(dims) > 32:
        raise ModelError(f"tensor {name!r} has the impossible shape {list(dims[:33])}")
    return tuple(dims)


def _check_bytes(have: int, need: int, name: str) -> None:
    if have != need:
        raise ModelError(f"tensor {name!r} has {have} bytes, its shape and type need {need}")


def _of_size(flat: np.ndarray, n_elements: int, name: str) -> np.ndarray:
    if flat.size != n_elements:
        raise ModelError(f"tensor {name!r} has {flat.size} elements, its shape needs {n_elements}")
    return flat


class ValueType(NamedTuple):
    dtype: DType | None = None
    shape: Shape | None = None
    container: tuple[str, ...] = ()


UNKNOWN = ValueType()


def value_type(proto: TypeProto | None, name: str) -> ValueType:
    """The type in a ValueInfoProto; UNKNOWN if it says nothing."""
    container: list[str] = []
    while proto is not None:
        if proto.tensor is not None:
            element = proto.tensor.element
            dtype = element_type(element, f"value {name!r}") if element else None
            return ValueType(dtype, _shape(proto.tensor.shape, name), tuple(container))
        if proto.sequence is not None:
            container.append("seq")
            proto = proto.sequence.element
        elif proto.optional is not None:
            container.append("optional")
            proto = proto.optional.element
        elif proto.map is not None or proto.sparse is not None:
            kind = "map" if proto.map is not None else "sparse tensor"
            raise UnsupportedOp(f"value {name!r} is a {kind}, which is not supported")
        else:
            break
    return ValueType(container=tuple(container))


def type_text(proto: TypeProto) -> str:
    """`seq(tensor(float))`, as onnxruntime writes it."""
    dtype, _, container = value_type(proto, "type")
    return spell_type(dtype, container)


def spell_type(dtype: DType | None, container: tuple[str, ...]) -> str:
    text = f"tensor({dtype.text if dtype else 'unknown'})"
    for kind in reversed(container):
        text = f"{kind}({text})"
    return text


NO_NAMES = (None, "", "?", "-1", "*", "None")
"""How exporters write a size that is not known; two of them are not the same size."""


def _shape(proto: ShapeProto | None, name: str) -> Shape | None:
    if proto is None:
        return None
    sizes: list = []
    for dim in proto.dims:
        if dim.value is not None and dim.value < -1:
            raise ModelError(f"value {name!r} has an axis of size {dim.value}")
        if dim.value == -1 or (dim.value is None and (dim.name or "") in NO_NAMES):
            sizes.append(None)
        else:
            sizes.append(dim.value if dim.value is not None else Symbol(dim.name or ""))
    return tuple(sizes)
