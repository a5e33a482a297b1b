"""Writing ONNX files: the few messages that a model needs, in protobuf's wire format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

IR_VERSION, OPSET = 8, 17

ELEMENT_TYPES = {np.dtype(np.float32): 1, np.dtype(np.int64): 7, np.dtype(np.bool_): 9}
FLOAT_ATTRIBUTE, INT_ATTRIBUTE, TEXT_ATTRIBUTE, GRAPH_ATTRIBUTE, INTS_ATTRIBUTE = 1, 2, 3, 5, 7

Ports = Mapping[str, Sequence[int | str]]
"""Shapes by name; names as sizes are symbols."""


@dataclass
class GraphFile:
    """A graph under construction.

    >>> from webrnn import InferenceSession
    >>> graph = GraphFile("double")
    >>> graph.node("Add", ["x", "x"], ["y"])
    >>> model = graph.model({"x": [2]}, {"y": [2]})
    >>> InferenceSession(model).run(None, {"x": np.float32([1, 2])})
    [array([2., 4.], dtype=float32)]
    """

    name: str
    nodes: list[bytes] = field(default_factory=list)
    constants: list[bytes] = field(default_factory=list)

    def node(self, op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        parts = [*(_text(1, name) for name in inputs), *(_text(2, name) for name in outputs), _text(4, op)]
        parts += [_field(5, _attribute(name, value)) for name, value in attributes.items()]
        self.nodes.append(b"".join(parts))

    def constant(self, name: str, array: Any) -> None:
        array = np.asarray(array)
        dims = b"".join(_number(1, size) for size in array.shape)
        kind = _number(2, ELEMENT_TYPES[array.dtype])
        data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
        self.constants.append(dims + kind + _text(8, name) + _field(9, data))

    def content(self, inputs: Ports, outputs: Ports, types: Mapping[str, Any] | None = None) -> bytes:
        """The graph's message. What is not in `types` is float."""
        element = {name: ELEMENT_TYPES[np.dtype(kind)] for name, kind in (types or {}).items()}
        return b"".join(
            [
                *(_field(1, node) for node in self.nodes),
                _text(2, self.name),
                *(_field(5, constant) for constant in self.constants),
                *(_field(11, _value(name, shape, element.get(name, 1))) for name, shape in inputs.items()),
                *(_field(12, _value(name, shape, element.get(name, 1))) for name, shape in outputs.items()),
            ]
        )

    def model(self, inputs: Ports, outputs: Ports) -> bytes:
        """The file."""
        opset = _field(8, _number(2, OPSET))
        return _number(1, IR_VERSION) + _field(7, self.content(inputs, outputs)) + opset


class GraphContent(bytes):
    """An attribute that is a graph."""


def _varint(number: int) -> bytes:
    number &= 2**64 - 1
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def _field(tag: int, content: bytes) -> bytes:
    return _varint(tag << 3 | 2) + _varint(len(content)) + content


def _number(tag: int, number: int) -> bytes:
    return _varint(tag << 3) + _varint(number)


def _text(tag: int, text: str) -> bytes:
    return _field(tag, text.encode())


def _attribute(name: str, value: Any) -> bytes:
    if isinstance(value, GraphContent):
        content, kind = _field(6, value), GRAPH_ATTRIBUTE
    elif isinstance(value, str):
        content, kind = _text(4, value), TEXT_ATTRIBUTE
    elif isinstance(value, float):
        content, kind = _varint(2 << 3 | 5) + np.float32(value).tobytes(), FLOAT_ATTRIBUTE
    elif isinstance(value, int):
        content, kind = _number(3, value), INT_ATTRIBUTE
    else:
        content, kind = b"".join(_number(8, number) for number in value), INTS_ATTRIBUTE
    return _text(1, name) + content + _number(20, kind)


def _value(name: str, shape: Sequence[int | str], element_type: int) -> bytes:
    dims = b"".join(_field(1, _text(2, size) if isinstance(size, str) else _number(1, size)) for size in shape)
    return _text(1, name) + _field(2, _field(1, _number(1, element_type) + _field(2, dims)))
