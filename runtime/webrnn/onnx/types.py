"""TypeProto to what a Value knows of itself."""

from __future__ import annotations

from typing import NamedTuple

from webrnn.errors import ModelError, UnsupportedOp
from webrnn.ir import DType, Shape, Symbol

from .proto import ShapeProto, TypeProto
from .tensors import element_type


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


def _shape(proto: ShapeProto | None, name: str) -> Shape | None:
    if proto is None:
        return None
    sizes: list = []
    for dim in proto.dims:
        if dim.value is not None and dim.value < 0:
            raise ModelError(f"value {name!r} has an axis of size {dim.value}")
        sizes.append(dim.value if dim.value is not None else Symbol(dim.name) if dim.name else None)
    return tuple(sizes)
