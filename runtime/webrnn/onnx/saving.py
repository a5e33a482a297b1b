"""`save_onnx`: an ONNX file with other values for some of its weights.

The bytes of the file are edited where the weights are. Everything else stays as it is, byte for byte: names, metadata,
what this runtime does not know. Only the lengths of the messages around a weight are written anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.errors import ModelError, OptionError, ShapeError
from webrnn.ir import DType
from webrnn.reference.narrow import TYPES, encode

from . import attributes, proto
from .tensors import TensorReader, element_type
from .wire import BYTES, MAX_DEPTH, VARINT, Field, MessageType, Span, decode, encode_varint, fields

_GRAPH_OF_MODEL = 7
_NODE, _INITIALIZER, _SPARSE_INITIALIZER = 1, 5, 15
_ATTRIBUTE_OF_NODE = 5
_T, _G, _TENSORS, _GRAPHS = 5, 6, 10, 11
_NAME_OF_ATTRIBUTE, _KIND_OF_ATTRIBUTE = 1, 20
_RAW = 9
_DATA = {4, 5, 6, 7, _RAW, 10, 11, 13, 14}
"""The fields of a tensor that hold its elements, or say in which file they are."""

_MOST_BYTES = 2**31 - 1
"""Protobuf's limit of a message."""

_FLOATS = (DType.FLOAT, DType.DOUBLE, DType.FLOAT16, DType.BFLOAT16)

Edit = Callable[[Field], "bytes | None"]
"""What becomes of a field: its new content, or None if it stays."""


class _Node:
    outputs: Sequence[str] = ()
    op: str = ""
    domain: str = ""


_NODE_HEAD = MessageType(_Node).texts(2, "outputs").text(4, "op").text(7, "domain")


def save_onnx(model: str | os.PathLike[str] | bytes, weights: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write an ONNX model to a file with new values for the weights that are named: initializers, also of sub-graphs,
    and Constant nodes, by the name of their output. Shapes stay, and so do types: floats are rounded to the file's.

    Weights in files beside the model stay there if the new file is in the same folder, and else become part of it; new
    values are always part of it.

    >>> import webrnn
    >>> from onnx.parser import parse_model
    >>> model = parse_model('''<ir_version: 8, opset_import: ["": 17]>
    ... scale (float[n] x) => (float[n] y) <float[1] w = {2}> { y = Mul(x, w) }''').SerializeToString()
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "new.onnx"
    ...     save_onnx(model, {"w": [3.0]}, path)
    ...     webrnn.InferenceSession(path).run(None, {"x": np.float32([1, 2])})
    [array([3., 6.], dtype=float32)]
    """
    found = with_weights(model, weights, Path(path).parent)
    with open(path, "wb") as file:
        file.write(found)


def with_weights(
    model: str | os.PathLike[str] | bytes, weights: Mapping[str, Any], folder: Path | None = None
) -> bytes:
    """The file with these weights, for a file in this folder."""
    home = None
    if isinstance(model, bytes | bytearray | memoryview):
        data = bytes(model)
    else:
        try:
            data, home = Path(model).read_bytes(), Path(model).parent
        except (OSError, ValueError) as error:
            raise ModelError(f"cannot read the model: {error}") from None
    moves = home is not None and (folder is None or folder.resolve() != home.resolve())
    return _Editor(data, home, weights, moves).run()


class _Editor:
    def __init__(self, data: bytes, home: Path | None, weights: Mapping[str, Any], moves: bool):
        self.data, self.weights, self.moves = data, weights, moves
        self.reader = TensorReader(data, home)
        self.replaced: set[str] = set()
        self.known: list[str] = []

    def run(self) -> bytes:
        proto.decode_model(self.data)  # whatever is wrong with the file is said as everywhere

        def edit(field: Field) -> bytes | None:
            is_graph = field.number == _GRAPH_OF_MODEL and field.wire_type == BYTES
            return self._graph((field.content, field.stop), 0) if is_graph else None

        found = self._edited((0, len(self.data)), edit)
        missing = [name for name in self.weights if name not in self.replaced]
        if missing:
            names = ", ".join(map(repr, self.known[:12])) + (", ..." if len(self.known) > 12 else "")
            raise OptionError(f"the model has no initializer or Constant {missing[0]!r}; it has {names or 'none'}")
        if found is not None and len(found) > _MOST_BYTES:
            raise ModelError("with all weights inside, the file is larger than the 2 GB that ONNX allows")
        return self.data if found is None else found

    def _edited(self, span: Span, edit: Edit) -> bytes | None:
        """A message with some of its fields edited; None if none is."""
        parts, kept = [], span[0]
        for field in fields(self.data, span):
            content = edit(field)
            if content is not None:
                parts += [self.data[kept : field.start], _message(field.number, content)]
                kept = field.stop
        return b"".join([*parts, self.data[kept : span[1]]]) if parts else None

    def _graph(self, span: Span, depth: int) -> bytes | None:
        if depth > MAX_DEPTH:
            raise ModelError(f"graphs are nested more than {MAX_DEPTH} deep")

        def edit(field: Field) -> bytes | None:
            inside = field.content, field.stop
            if field.number == _INITIALIZER:
                tensor: proto.Tensor = decode(proto.TENSOR, self.data, inside)
                return self._weight(tensor, tensor.name, inside)
            if field.number == _SPARSE_INITIALIZER:
                sparse: proto.SparseTensor = decode(proto.SPARSE_TENSOR, self.data, inside)
                name = sparse.values.name if sparse.values else ""
                if name in self.weights:
                    raise OptionError(f"the initializer {name!r} is sparse; such weights are not replaced")
                return None
            return self._node(inside, depth) if field.number == _NODE else None

        return self._edited(span, edit)

    def _node(self, span: Span, depth: int) -> bytes | None:
        node: _Node = decode(_NODE_HEAD, self.data, span)
        is_constant = node.op == "Constant" and node.domain in ("", "ai.onnx") and len(node.outputs) == 1

        def edit_attribute(field: Field) -> bytes | None:
            inside = field.content, field.stop
            if field.number in (_G, _GRAPHS):
                return self._graph(inside, depth + 1)
            if field.number in (_T, _TENSORS) and not is_constant:
                return self._moved(decode(proto.TENSOR, self.data, inside), inside)
            return None

        def edit(field: Field) -> bytes | None:
            if field.number != _ATTRIBUTE_OF_NODE:
                return None
            inside = field.content, field.stop
            return self._constant(node.outputs[0], inside) if is_constant else self._edited(inside, edit_attribute)

        return self._edited(span, edit)

    def _constant(self, name: str, span: Span) -> bytes | None:
        """The attribute of a Constant node: another tensor in it, or one instead of numbers."""
        attribute: proto.Attribute = decode(proto.ATTRIBUTE, self.data, span)
        if attribute.t is not None:
            tensor = attribute.t

            def edit(field: Field) -> bytes | None:
                inside = field.content, field.stop
                return self._weight(tensor, name, inside) if field.number == _T else None

            return self._edited(span, edit)
        self.known.append(name)
        if name not in self.weights:
            return None
        self._take(name)
        array, dtype = attributes.constant_value(attribute, self.reader)
        content = _content(self.weights[name], array.shape, dtype, name)
        sizes = b"".join(encode_varint(1 << 3 | VARINT) + encode_varint(size) for size in array.shape)
        tensor_bytes = sizes + encode_varint(2 << 3 | VARINT) + encode_varint(int(dtype)) + _message(_RAW, content)
        kind = encode_varint(_KIND_OF_ATTRIBUTE << 3 | VARINT) + encode_varint(attributes.TENSOR)
        return _message(_NAME_OF_ATTRIBUTE, b"value") + _message(_T, tensor_bytes) + kind

    def _weight(self, tensor: proto.Tensor, name: str, span: Span) -> bytes | None:
        """A tensor that may be one of the weights."""
        self.known.append(name)
        if name not in self.weights:
            return self._moved(tensor, span)
        self._take(name)
        dtype = element_type(tensor.data_type, f"tensor {name!r}")
        return self._with_elements(span, _content(self.weights[name], tuple(tensor.dims), dtype, name))

    def _take(self, name: str) -> None:
        if name in self.replaced:
            raise OptionError(f"there are two constants {name!r}, in different graphs: which one is meant is not clear")
        self.replaced.add(name)

    def _moved(self, tensor: proto.Tensor, span: Span) -> bytes | None:
        """A tensor whose elements are in a file beside the model, with its elements."""
        if not self.moves or tensor.location != 1:
            return None
        return self._with_elements(span, self.reader.external_bytes(tensor).tobytes())

    def _with_elements(self, span: Span, content: bytes) -> bytes:
        """A tensor with other elements, where the old ones were; everything else of it stays."""
        parts: list[bytes] = []
        is_written = False
        for field in fields(self.data, span):
            if field.number not in _DATA:
                parts.append(self.data[field.start : field.stop])
            elif not is_written:
                parts.append(_message(_RAW, content))
                is_written = True
        return b"".join(parts if is_written else [*parts, _message(_RAW, content)])


def _message(number: int, content: bytes) -> bytes:
    return b"".join([encode_varint(number << 3 | BYTES), encode_varint(len(content)), content])


def _content(given: Any, shape: tuple[int, ...], dtype: DType, name: str) -> bytes:
    """The elements of a weight as a file of little-endian numbers has them."""
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise ShapeError(f"weight {name!r} is not an array: {error}") from None
    if array.shape != shape:
        raise ShapeError(f"weight {name!r} has shape {list(array.shape)}, the model's is {list(shape)}")
    target = dtype.array_type
    if array.dtype != target:
        is_float = array.dtype.kind == "f" or (array.dtype.kind in "iu" and not isinstance(given, np.ndarray))
        if not is_float or dtype not in _FLOATS:
            raise ShapeError(f"weight {name!r} is {array.dtype}, the model's is {dtype.text}")
        array = encode(array, TYPES[dtype]) if dtype is DType.BFLOAT16 else array.astype(target)
    if dtype is DType.STRING or (dtype.is_narrow and dtype is not DType.BFLOAT16):
        raise OptionError(f"weight {name!r} is of type {dtype.text}; such weights are not replaced")
    return np.ascontiguousarray(array).tobytes()
