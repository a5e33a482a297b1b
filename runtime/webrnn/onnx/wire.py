"""Decoding of the protobuf wire format, driven by tables of fields.

Nothing is trusted: lengths are checked against the bytes that remain, nesting is bounded, and no memory is reserved
from a length field. A field that no table knows is skipped, as protobuf demands.
"""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

from webrnn.errors import ModelError

MAX_DEPTH = 100
"""How deep messages may nest; protobuf's own limit."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Span: TypeAlias = tuple[int, int]
"""Where the bytes of a field begin and end in the file."""

INTEGER, INTEGERS, PACKED_INTEGERS, FLOAT, SPAN, SPANS, RAW, RAWS, TEXT, TEXTS, MESSAGE, MESSAGES = range(12)
"""What becomes of a field. The plural ones are repeated and end up in a list."""


class MessageType:
    """A message: its Python class, and for each field tag (number << 3 | wire type) what it is and where it goes."""

    def __init__(self, python_class: type):
        self.python_class = python_class
        self.fields: dict[int, tuple[int, str, MessageType | None]] = {}

    def _field(
        self, number: int, wire_type: int, kind: int, name: str, inner: MessageType | None = None
    ) -> MessageType:
        self.fields[number << 3 | wire_type] = (kind, name, inner)
        return self

    def integer(self, number: int, name: str) -> MessageType:
        return self._field(number, VARINT, INTEGER, name)

    def integers(self, number: int, name: str) -> MessageType:
        return self._field(number, VARINT, INTEGERS, name)._field(number, BYTES, PACKED_INTEGERS, name)

    def float(self, number: int, name: str) -> MessageType:
        return self._field(number, FIXED32, FLOAT, name)

    def span(self, number: int, name: str) -> MessageType:
        """Bytes that stay where they are."""
        return self._field(number, BYTES, SPAN, name)

    def numbers(self, number: int, name: str, wire_type: int) -> MessageType:
        """Floats or doubles, packed or not, that stay where they are."""
        return self._field(number, wire_type, SPANS, name)._field(number, BYTES, SPANS, name)

    def raw(self, number: int, name: str) -> MessageType:
        return self._field(number, BYTES, RAW, name)

    def raws(self, number: int, name: str) -> MessageType:
        return self._field(number, BYTES, RAWS, name)

    def text(self, number: int, name: str) -> MessageType:
        return self._field(number, BYTES, TEXT, name)

    def texts(self, number: int, name: str) -> MessageType:
        return self._field(number, BYTES, TEXTS, name)

    def message(self, number: int, name: str, inner: MessageType) -> MessageType:
        return self._field(number, BYTES, MESSAGE, name, inner)

    def messages(self, number: int, name: str, inner: MessageType) -> MessageType:
        return self._field(number, BYTES, MESSAGES, name, inner)


def decode(message_type: MessageType, data: bytes) -> Any:
    """Decode a whole file as one message."""
    try:
        return _decode(message_type, data, 0, len(data), 0)
    except UnicodeDecodeError as error:
        raise ModelError(f"a string is not UTF-8: {error.reason}") from None


def _decode(message_type: MessageType, data: bytes, position: int, end: int, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ModelError(f"messages are nested more than {MAX_DEPTH} deep")
    fields = message_type.fields
    found: dict[str, Any] = {}
    while position < end:
        tag = data[position]
        position += 1
        if tag >= 0x80:
            tag, position = _varint(data, position - 1, end)
        field = fields.get(tag)
        wire_type = tag & 7
        start = position
        if wire_type == BYTES:
            if position >= end:
                raise _truncated(position)
            length = data[position]
            start += 1
            if length >= 0x80:
                length, start = _varint(data, position, end)
            position = start + length
            if position > end:
                raise ModelError(f"a field at byte {start} claims {length} bytes, {end - start} remain")
        elif wire_type == VARINT:
            if position < end and data[position] < 0x80:
                number = data[position]
                position += 1
            else:
                number, position = _varint(data, position, end)
        elif wire_type in (FIXED32, FIXED64):
            position += 4 if wire_type == FIXED32 else 8
            if position > end:
                raise _truncated(start)
        else:
            raise ModelError(f"byte {position - 1} is not the start of a field (wire type {wire_type})")
        if field is None:
            continue
        kind, name, inner = field
        if kind == TEXT:
            found[name] = data[start:position].decode()
        elif kind == TEXTS:
            found.setdefault(name, []).append(data[start:position].decode())
        elif kind == MESSAGES:
            found.setdefault(name, []).append(_decode(inner, data, start, position, depth + 1))  # type: ignore[arg-type]
        elif kind == MESSAGE:
            found[name] = _decode(inner, data, start, position, depth + 1)  # type: ignore[arg-type]
        elif kind == INTEGER:
            found[name] = number if number < 1 << 63 else number - (1 << 64)
        elif kind == SPAN:
            found[name] = (start, position)
        elif kind == SPANS:
            found.setdefault(name, []).append((start, position))
        elif kind == INTEGERS:
            found.setdefault(name, []).append(number if number < 1 << 63 else number - (1 << 64))
        elif kind == PACKED_INTEGERS:
            found.setdefault(name, []).extend(_packed_integers(data, start, position))
        elif kind == FLOAT:
            (found[name],) = struct.unpack_from("<f", data, start)
        elif kind == RAW:
            found[name] = data[start:position]
        else:
            found.setdefault(name, []).append(data[start:position])
    message = message_type.python_class()
    message.__dict__ = found
    return message


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """The number at `position` and where the next field begins."""
    number = shift = 0
    while position < end:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
        if shift > 63:
            raise ModelError(f"the number that ends at byte {position} has more than 64 bits")
    raise _truncated(position)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def _packed_integers(data: bytes, position: int, end: int) -> list[int]:
    numbers = []
    while position < end:
        number, position = _varint(data, position, end)
        numbers.append(_signed(number))
    return numbers


def _truncated(position: int) -> ModelError:
    return ModelError(f"the file ends inside a field, at byte {position}")
