"""The messages of onnx.proto that a runtime needs, and the numbers of their fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from webrnn.errors import ModelError

from .wire import FIXED32, FIXED64, Fields, MessageType, Span, decode


@dataclass(slots=True)
class StringEntry:
    key: str = ""
    value: str = ""


@dataclass(slots=True)
class OperatorSet:
    domain: str = ""
    version: int = 0


@dataclass(slots=True)
class Tensor:
    """Its elements are in one of: `raw` bytes, a list of the matching type, or another file (`location` 1)."""

    dims: list[int] = field(default_factory=list)
    data_type: int = 0
    name: str = ""
    raw: Span | None = None
    floats: list[Span] = field(default_factory=list)
    doubles: list[Span] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)
    longs: list[int] = field(default_factory=list)
    unsigned: list[int] = field(default_factory=list)
    strings: list[bytes] = field(default_factory=list)
    location: int = 0
    external: list[StringEntry] = field(default_factory=list)


@dataclass(slots=True)
class SparseTensor:
    values: Tensor | None = None
    indices: Tensor | None = None
    dims: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Dimension:
    value: int | None = None
    name: str | None = None


@dataclass(slots=True)
class ShapeProto:
    dims: list[Dimension] = field(default_factory=list)


@dataclass(slots=True)
class TensorType:
    element: int = 0
    shape: ShapeProto | None = None


@dataclass(slots=True)
class TypeProto:
    """One of its fields is set; `sequence` and `optional` hold the type of what is inside."""

    tensor: TensorType | None = None
    sparse: TensorType | None = None
    sequence: ElementType | None = None
    optional: ElementType | None = None
    map: Span | None = None


@dataclass(slots=True)
class ElementType:
    element: TypeProto | None = None


@dataclass(slots=True)
class ValueInfo:
    name: str = ""
    type: TypeProto | None = None


@dataclass(slots=True)
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
    floats: list[Span] = field(default_factory=list)
    ints: list[int] = field(default_factory=list)
    strings: list[bytes] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    graphs: list[GraphProto] = field(default_factory=list)


@dataclass(slots=True)
class NodeProto:
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    name: str = ""
    op: str = ""
    domain: str = ""
    overload: str = ""
    attributes: list[Attribute] = field(default_factory=list)


@dataclass(slots=True)
class GraphProto:
    nodes: list[NodeProto] = field(default_factory=list)
    name: str = ""
    initializers: list[Tensor] = field(default_factory=list)
    sparse_initializers: list[SparseTensor] = field(default_factory=list)
    inputs: list[ValueInfo] = field(default_factory=list)
    outputs: list[ValueInfo] = field(default_factory=list)
    value_infos: list[ValueInfo] = field(default_factory=list)


@dataclass(slots=True)
class FunctionProto:
    name: str = ""
    domain: str = ""
    overload: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    attribute_defaults: list[Attribute] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)
    opsets: list[OperatorSet] = field(default_factory=list)


@dataclass(slots=True)
class Model:
    ir_version: int = 0
    producer: str = ""
    graph: GraphProto | None = None
    opsets: list[OperatorSet] = field(default_factory=list)
    functions: list[FunctionProto] = field(default_factory=list)


_STRING_ENTRY, _OPERATOR_SET = MessageType(StringEntry), MessageType(OperatorSet)
_TENSOR, _SPARSE_TENSOR = MessageType(Tensor), MessageType(SparseTensor)
_DIMENSION, _SHAPE, _TENSOR_TYPE = MessageType(Dimension), MessageType(ShapeProto), MessageType(TensorType)
_TYPE, _ELEMENT_TYPE, _VALUE_INFO = MessageType(TypeProto), MessageType(ElementType), MessageType(ValueInfo)
_ATTRIBUTE, _NODE, _GRAPH = MessageType(Attribute), MessageType(NodeProto), MessageType(GraphProto)
_FUNCTION, _MODEL = MessageType(FunctionProto), MessageType(Model)

Fields(_STRING_ENTRY).text(1, "key").text(2, "value")
Fields(_OPERATOR_SET).text(1, "domain").integer(2, "version")
(
    Fields(_TENSOR)
    .repeated_integer(1, "dims")
    .integer(2, "data_type")
    .repeated_fixed(4, "floats", FIXED32)
    .repeated_integer(5, "integers")
    .repeated_bytes(6, "strings")
    .repeated_integer(7, "longs")
    .text(8, "name")
    .span(9, "raw")
    .repeated_fixed(10, "doubles", FIXED64)
    .repeated_integer(11, "unsigned")
    .repeated_message(13, "external", _STRING_ENTRY)
    .integer(14, "location")
)
(
    Fields(_SPARSE_TENSOR)
    .message(1, "values", _TENSOR)
    .message(2, "indices", _TENSOR)
    .repeated_integer(3, "dims")
)
Fields(_DIMENSION).integer(1, "value").text(2, "name")
Fields(_SHAPE).repeated_message(1, "dims", _DIMENSION)
Fields(_TENSOR_TYPE).integer(1, "element").message(2, "shape", _SHAPE)
(
    Fields(_TYPE)
    .message(1, "tensor", _TENSOR_TYPE)
    .message(4, "sequence", _ELEMENT_TYPE)
    .span(5, "map")
    .message(8, "sparse", _TENSOR_TYPE)
    .message(9, "optional", _ELEMENT_TYPE)
)
Fields(_ELEMENT_TYPE).message(1, "element", _TYPE)
Fields(_VALUE_INFO).text(1, "name").message(2, "type", _TYPE)
(
    Fields(_ATTRIBUTE)
    .text(1, "name")
    .float(2, "f")
    .integer(3, "i")
    .bytes(4, "s")
    .message(5, "t", _TENSOR)
    .message(6, "g", _GRAPH)
    .repeated_fixed(7, "floats", FIXED32)
    .repeated_integer(8, "ints")
    .repeated_bytes(9, "strings")
    .repeated_message(10, "tensors", _TENSOR)
    .repeated_message(11, "graphs", _GRAPH)
    .message(14, "type", _TYPE)
    .integer(20, "kind")
    .text(21, "reference")
    .message(22, "sparse", _SPARSE_TENSOR)
)
(
    Fields(_NODE)
    .repeated_text(1, "inputs")
    .repeated_text(2, "outputs")
    .text(3, "name")
    .text(4, "op")
    .repeated_message(5, "attributes", _ATTRIBUTE)
    .text(7, "domain")
    .text(8, "overload")
)
(
    Fields(_GRAPH)
    .repeated_message(1, "nodes", _NODE)
    .text(2, "name")
    .repeated_message(5, "initializers", _TENSOR)
    .repeated_message(11, "inputs", _VALUE_INFO)
    .repeated_message(12, "outputs", _VALUE_INFO)
    .repeated_message(13, "value_infos", _VALUE_INFO)
    .repeated_message(15, "sparse_initializers", _SPARSE_TENSOR)
)
(
    Fields(_FUNCTION)
    .text(1, "name")
    .repeated_text(4, "inputs")
    .repeated_text(5, "outputs")
    .repeated_text(6, "attributes")
    .repeated_message(7, "nodes", _NODE)
    .repeated_message(9, "opsets", _OPERATOR_SET)
    .text(10, "domain")
    .repeated_message(11, "attribute_defaults", _ATTRIBUTE)
    .text(13, "overload")
)
(
    Fields(_MODEL)
    .integer(1, "ir_version")
    .text(2, "producer")
    .message(7, "graph", _GRAPH)
    .repeated_message(8, "opsets", _OPERATOR_SET)
    .repeated_message(25, "functions", _FUNCTION)
)


def decode_model(data: bytes) -> Model:
    """The ModelProto in `data`; tensors are still spans of it."""
    model: Any = decode(_MODEL, data, 0, len(data))
    if model.graph is None:
        raise ModelError("the file has no graph: it is not an ONNX model")
    return model
