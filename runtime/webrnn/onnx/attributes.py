"""AttributeProto to Python values."""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import ModelError, UnsupportedOp
from webrnn.ir import DType

from .proto import Attribute, GraphProto, SparseTensor, Tensor
from .tensors import TensorReader, type_text

FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS, TENSORS, GRAPHS, SPARSE_TENSOR = range(1, 12)
TYPE_PROTO = 13

_FIELD_OF_KIND = {
    FLOAT: "f",
    INT: "i",
    STRING: "s",
    TENSOR: "t",
    GRAPH: "g",
    SPARSE_TENSOR: "sparse",
    TYPE_PROTO: "type",
}
_LIST_OF_KIND = {FLOATS: "floats", INTS: "ints", STRINGS: "strings", TENSORS: "tensors", GRAPHS: "graphs"}


def python_value(attribute: Attribute, tensors: TensorReader) -> Any:
    """int, float, str, array, GraphProto, or a list of one of them; a type is its text."""
    kind = attribute.kind or _guess_kind(attribute)
    if kind in _FIELD_OF_KIND:
        value = getattr(attribute, _FIELD_OF_KIND[kind])
        if value is None:
            if kind == STRING:
                return ""
            if kind in (FLOAT, INT):
                return 0 if kind == INT else 0.0
            raise ModelError("the attribute has no value", attribute=attribute.name)
        if kind in (FLOAT, INT, GRAPH):
            return value
        if kind == STRING:
            return _text(value, attribute.name)
        if kind == TYPE_PROTO:
            return type_text(value)
        return _array(value, tensors)
    if kind not in _LIST_OF_KIND:
        raise UnsupportedOp(f"attributes of kind {kind} are not supported", attribute=attribute.name)
    values = getattr(attribute, _LIST_OF_KIND[kind])
    if kind == FLOATS:
        return tensors.floats(values).tolist()
    if kind == STRINGS:
        return [_text(value, attribute.name) for value in values]
    if kind == TENSORS:
        return [_array(value, tensors) for value in values]
    return list(values)


def _array(value: Tensor | SparseTensor, tensors: TensorReader) -> np.ndarray:
    return (tensors.read(value) if isinstance(value, Tensor) else tensors.read_sparse(value))[0]


def constant_value(attribute: Attribute, tensors: TensorReader) -> tuple[np.ndarray, DType]:
    """The array of a Constant node with this attribute."""
    if attribute.name == "value" and attribute.t is not None:
        return tensors.read(attribute.t)
    if attribute.name == "sparse_value" and attribute.sparse is not None:
        return tensors.read_sparse(attribute.sparse)
    element_types = {
        "value_float": np.float32,
        "value_floats": np.float32,
        "value_int": np.int64,
        "value_ints": np.int64,
    }
    value = python_value(attribute, tensors)
    if attribute.name in element_types:
        array = np.array(value, element_types[attribute.name])
    elif attribute.name in ("value_string", "value_strings"):
        array = np.array(value, object)
    else:
        raise ModelError("this attribute is no value", attribute=attribute.name)
    return array, DType.of(array)


def graph_attribute(attrs: dict[str, Any], name: str) -> GraphProto:
    """Take a sub-graph out of a node's attributes."""
    graph = attrs.pop(name, None)
    if not isinstance(graph, GraphProto):
        raise ModelError("a sub-graph is missing", attribute=name)
    return graph


def _guess_kind(attribute: Attribute) -> int:
    """The kind of an attribute that does not state it, as files of the first ONNX versions."""
    for kind, name in _FIELD_OF_KIND.items():
        if getattr(attribute, name) is not None:
            return kind
    for kind, name in _LIST_OF_KIND.items():
        if getattr(attribute, name):
            return kind
    raise ModelError("the attribute has no value", attribute=attribute.name)


def _text(value: bytes, name: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ModelError("the attribute is not UTF-8", attribute=name) from None
