"""The messages of onnx.proto that a runtime needs, and the numbers of their fields.

The classes only list the fields and their defaults, as class attributes: a model has thousands of messages that set two
or three fields each, and most of the time of opening it would go into setting the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webrnn.errors import ModelError

from .wire import MessageType, Span, decode


class StringEntry:
    key: str = ""
    value: str = ""


class OperatorSet:
    domain: str = ""
    version: int = 0


class Tensor:
    """Its elements are in one of: `raw` bytes, a list of the matching type (where it is in the file), or another file
    (`location` 1)."""

    dims: Sequence[int] = ()
    data_type: int = 0
    name: str = ""
    raw: Span | None = None
    floats: Sequence[Span] = ()
    doubles: Sequence[Span] = ()
    integers: Sequence[Span] = ()
    longs: Sequence[Span] = ()
    unsigned: Sequence[Span] = ()
    strings: Sequence[bytes] = ()
    location: int = 0
    external: Sequence[StringEntry] = ()


class SparseTensor:
    values: Tensor | None = None
    indices: Tensor | None = None
    dims: Sequence[int] = ()


class Dimension:
    value: int | None = None
    name: str | None = None


class ShapeProto:
    dims: Sequence[Dimension] = ()


class TensorType:
    element: int = 0
    shape: ShapeProto | None = None


class TypeProto:
    """One of its fields is set; `sequence` and `optional` hold the type of what is inside."""

    tensor: TensorType | None = None
    sparse: TensorType | None = None
    sequence: ElementType | None = None
    optional: ElementType | None = None
    map: Span | None = None


class ElementType:
    element: TypeProto | None = None


class ValueInfo:
    name: str = ""
    type: TypeProto | None = None


class Attribute:
    name: str = ""
    reference: str = ""
    kind: int = 0
    f: float | None = None
    i: int | None = None
    s: bytes | None = None
    t: Tensor | None = None
    g: GraphProto | None = None
    sparse: SparseTensor | None = None
    type: TypeProto | None = None
    floats: Sequence[Span] = ()
    ints: Sequence[int] = ()
    strings: Sequence[bytes] = ()
    tensors: Sequence[Tensor] = ()
    graphs: Sequence[GraphProto] = ()


class NodeProto:
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    name: str = ""
    op: str = ""
    domain: str = ""
    overload: str = ""
    attributes: Sequence[Attribute] = ()


class MetadataEntry:
    """What a model says about itself need not be text: whoever reads it decides."""

    key: bytes = b""
    value: bytes = b""


class GraphProto:
    nodes: Sequence[NodeProto] = ()
    name: str = ""
    description: bytes = b""
    initializers: Sequence[Tensor] = ()
    sparse_initializers: Sequence[SparseTensor] = ()
    inputs: Sequence[ValueInfo] = ()
    outputs: Sequence[ValueInfo] = ()
    value_infos: Sequence[ValueInfo] = ()


class FunctionProto:
    name: str = ""
    domain: str = ""
    overload: str = ""
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    attributes: Sequence[str] = ()
    attribute_defaults: Sequence[Attribute] = ()
    nodes: Sequence[NodeProto] = ()
    opsets: Sequence[OperatorSet] = ()


class Model:
    ir_version: int = 0
    producer: str = ""
    domain: bytes = b""
    version: int = 0
    description: bytes = b""
    metadata: Sequence[MetadataEntry] = ()
    graph: GraphProto | None = None
    opsets: Sequence[OperatorSet] = ()
    functions: Sequence[FunctionProto] = ()


_STRING_ENTRY, _OPERATOR_SET = MessageType(StringEntry), MessageType(OperatorSet)
_METADATA_ENTRY = MessageType(MetadataEntry)
_TENSOR, _SPARSE_TENSOR = MessageType(Tensor), MessageType(SparseTensor)
_DIMENSION, _SHAPE, _TENSOR_TYPE = MessageType(Dimension), MessageType(ShapeProto), MessageType(TensorType)
_TYPE, _ELEMENT_TYPE, _VALUE_INFO = (
    MessageType(TypeProto, repeats=True),
    MessageType(ElementType),
    MessageType(ValueInfo),
)
_ATTRIBUTE, _NODE, _GRAPH = MessageType(Attribute, repeats=True), MessageType(NodeProto), MessageType(GraphProto)
_FUNCTION, _MODEL = MessageType(FunctionProto), MessageType(Model)

_STRING_ENTRY.text(1, "key").text(2, "value")
_METADATA_ENTRY.raw(1, "key").raw(2, "value")
_OPERATOR_SET.text(1, "domain").integer(2, "version")
(
    _TENSOR.integers(1, "dims")
    .integer(2, "data_type")
    .float_spans(4, "floats")
    .integer_spans(5, "integers")
    .raws(6, "strings")
    .integer_spans(7, "longs")
    .text(8, "name")
    .span(9, "raw")
    .double_spans(10, "doubles")
    .integer_spans(11, "unsigned")
    .messages(13, "external", _STRING_ENTRY)
    .integer(14, "location")
)
(_SPARSE_TENSOR.message(1, "values", _TENSOR).message(2, "indices", _TENSOR).integers(3, "dims"))
_DIMENSION.integer(1, "value").text(2, "name")
_SHAPE.messages(1, "dims", _DIMENSION)
_TENSOR_TYPE.integer(1, "element").message(2, "shape", _SHAPE)
(
    _TYPE.message(1, "tensor", _TENSOR_TYPE)
    .message(4, "sequence", _ELEMENT_TYPE)
    .span(5, "map")
    .message(8, "sparse", _TENSOR_TYPE)
    .message(9, "optional", _ELEMENT_TYPE)
)
_ELEMENT_TYPE.message(1, "element", _TYPE)
_VALUE_INFO.text(1, "name").message(2, "type", _TYPE)
(
    _ATTRIBUTE.text(1, "name")
    .float(2, "f")
    .integer(3, "i")
    .raw(4, "s")
    .message(5, "t", _TENSOR)
    .message(6, "g", _GRAPH)
    .float_spans(7, "floats")
    .integers(8, "ints")
    .raws(9, "strings")
    .messages(10, "tensors", _TENSOR)
    .messages(11, "graphs", _GRAPH)
    .message(14, "type", _TYPE)
    .integer(20, "kind")
    .text(21, "reference")
    .message(22, "sparse", _SPARSE_TENSOR)
)
(
    _NODE.texts(1, "inputs")
    .texts(2, "outputs")
    .text(3, "name")
    .text(4, "op")
    .messages(5, "attributes", _ATTRIBUTE)
    .text(7, "domain")
    .text(8, "overload")
)
(
    _GRAPH.messages(1, "nodes", _NODE)
    .text(2, "name")
    .raw(10, "description")
    .messages(5, "initializers", _TENSOR)
    .messages(11, "inputs", _VALUE_INFO)
    .messages(12, "outputs", _VALUE_INFO)
    .messages(13, "value_infos", _VALUE_INFO)
    .messages(15, "sparse_initializers", _SPARSE_TENSOR)
)
(
    _FUNCTION.text(1, "name")
    .texts(4, "inputs")
    .texts(5, "outputs")
    .texts(6, "attributes")
    .messages(7, "nodes", _NODE)
    .messages(9, "opsets", _OPERATOR_SET)
    .text(10, "domain")
    .messages(11, "attribute_defaults", _ATTRIBUTE)
    .text(13, "overload")
)
(
    _MODEL.integer(1, "ir_version")
    .text(2, "producer")
    .raw(4, "domain")
    .integer(5, "version")
    .raw(6, "description")
    .messages(14, "metadata", _METADATA_ENTRY)
    .message(7, "graph", _GRAPH)
    .messages(8, "opsets", _OPERATOR_SET)
    .messages(25, "functions", _FUNCTION)
)


TENSOR, SPARSE_TENSOR, ATTRIBUTE = _TENSOR, _SPARSE_TENSOR, _ATTRIBUTE
"""For those who decode a message on its own."""


def decode_model(data: bytes) -> Model:
    """The ModelProto in `data`; tensors are still spans of it."""
    model: Any = decode(_MODEL, data)
    if model.graph is None:
        raise ModelError("the file has no graph: it is not an ONNX model")
    return model
