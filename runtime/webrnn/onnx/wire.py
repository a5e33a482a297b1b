"""Decoding of the protobuf wire format, driven by tables of fields.

Nothing is trusted: lengths are checked against the bytes that remain, nesting is bounded, and no memory is reserved
from a length field. A field that no table knows is skipped, as protobuf demands.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

from webrnn.errors import ModelError

MAX_DEPTH = 100
"""How deep messages may nest; protobuf's own limit."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Span: TypeAlias = tuple[int, int]
"""Where the bytes of a field begin and end in the file."""

FieldReader: TypeAlias = Callable[[Any, bytes, Any, int], None]
"""Stores one occurrence of a field: (message, data, a number or a Span, depth)."""


class MessageType:
    """How to make a message and, for each field tag (number << 3 | wire type), how to store that field."""

    def __init__(self, make: Callable[[], Any]):
        self.make = make
        self.readers: dict[int, FieldReader] = {}


def decode(message_type: MessageType, data: bytes, start: int, end: int, depth: int = 0) -> Any:
    """Decode the message in data[start:end]."""
    if depth > MAX_DEPTH:
        raise ModelError(f"messages are nested more than {MAX_DEPTH} deep")
    message = message_type.make()
    readers = message_type.readers
    position = start
    while position < end:
        tag = data[position]
        position += 1
        if tag >= 0x80:
            tag, position = _long_varint(data, position - 1, end)
        wire_type = tag & 7
        if wire_type == BYTES:
            if position >= end:
                raise _truncated(position)
            length = data[position]
            position += 1
            if length >= 0x80:
                length, position = _long_varint(data, position - 1, end)
            stop = position + length
            if stop > end:
                raise ModelError(f"a field at byte {position} claims {length} bytes, {end - position} remain")
            reader = readers.get(tag)
            if reader is not None:
                reader(message, data, (position, stop), depth)
            position = stop
        elif wire_type == VARINT:
            number, position = _long_varint(data, position, end)
            reader = readers.get(tag)
            if reader is not None:
                reader(message, data, number, depth)
        elif wire_type in (FIXED32, FIXED64):
            size = 4 if wire_type == FIXED32 else 8
            if position + size > end:
                raise _truncated(position)
            reader = readers.get(tag)
            if reader is not None:
                reader(message, data, (position, position + size), depth)
            position += size
        else:
            raise ModelError(f"byte {position - 1} is not the start of a field (wire type {wire_type})")
    return message


def _long_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if position >= end:
            raise _truncated(position)
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
        if shift > 63:
            raise ModelError(f"the number that ends at byte {position} has more than 64 bits")


def _truncated(position: int) -> ModelError:
    return ModelError(f"the file ends inside a field, at byte {position}")


def signed(number: int) -> int:
    """Two's complement of a 64-bit varint."""
    return number - (1 << 64) if number >= 1 << 63 else number


def text_of(data: bytes, span: Span) -> str:
    try:
        return str(data[span[0] : span[1]], "utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"a string at byte {span[0]} is not UTF-8: {error.reason}") from None


def _set(tag: int, name: str, convert: Callable[[bytes, Any], Any]) -> tuple[int, FieldReader]:
    def read(message: Any, data: bytes, raw: Any, depth: int) -> None:
        setattr(message, name, convert(data, raw))

    return tag, read


def _append(tag: int, name: str, convert: Callable[[bytes, Any], Any]) -> tuple[int, FieldReader]:
    def read(message: Any, data: bytes, raw: Any, depth: int) -> None:
        getattr(message, name).append(convert(data, raw))

    return tag, read


def _extend(tag: int, name: str, convert: Callable[[bytes, Span], list[Any]]) -> tuple[int, FieldReader]:
    def read(message: Any, data: bytes, raw: Any, depth: int) -> None:
        getattr(message, name).extend(convert(data, raw))

    return tag, read


class Fields:
    """Adds fields to a message type: `Fields(type).text(3, "name").message(7, "graph", GRAPH)`.

    A field stores into the attribute of that name; the `repeated_` ones append to a list.
    """

    def __init__(self, message_type: MessageType):
        self._readers = message_type.readers

    def _add(self, *entries: tuple[int, FieldReader]) -> Fields:
        self._readers.update(entries)
        return self

    def integer(self, number: int, name: str) -> Fields:
        return self._add(_set(number << 3 | VARINT, name, lambda data, raw: signed(raw)))

    def float(self, number: int, name: str) -> Fields:
        return self._add(_set(number << 3 | FIXED32, name, _float_of))

    def text(self, number: int, name: str) -> Fields:
        return self._add(_set(number << 3 | BYTES, name, text_of))

    def span(self, number: int, name: str) -> Fields:
        """Bytes that stay where they are."""
        return self._add(_set(number << 3 | BYTES, name, lambda data, raw: raw))

    def bytes(self, number: int, name: str) -> Fields:
        return self._add(_set(number << 3 | BYTES, name, lambda data, raw: data[raw[0] : raw[1]]))

    def repeated_text(self, number: int, name: str) -> Fields:
        return self._add(_append(number << 3 | BYTES, name, text_of))

    def repeated_bytes(self, number: int, name: str) -> Fields:
        return self._add(_append(number << 3 | BYTES, name, lambda data, raw: data[raw[0] : raw[1]]))

    def repeated_integer(self, number: int, name: str) -> Fields:
        return self._add(
            _append(number << 3 | VARINT, name, lambda data, raw: signed(raw)),
            _extend(number << 3 | BYTES, name, _packed_integers),
        )

    def repeated_fixed(self, number: int, name: str, wire_type: int) -> Fields:
        """Floats or doubles, packed or not, as the spans that hold them."""
        return self._add(
            _append(number << 3 | wire_type, name, lambda data, raw: raw),
            _append(number << 3 | BYTES, name, lambda data, raw: raw),
        )

    def message(self, number: int, name: str, message_type: MessageType) -> Fields:
        def read(message: Any, data: bytes, raw: Span, depth: int) -> None:
            setattr(message, name, decode(message_type, data, raw[0], raw[1], depth + 1))

        return self._add((number << 3 | BYTES, read))

    def repeated_message(self, number: int, name: str, message_type: MessageType) -> Fields:
        def read(message: Any, data: bytes, raw: Span, depth: int) -> None:
            getattr(message, name).append(decode(message_type, data, raw[0], raw[1], depth + 1))

        return self._add((number << 3 | BYTES, read))


def _float_of(data: bytes, span: Span) -> float:
    return struct.unpack_from("<f", data, span[0])[0]


def _packed_integers(data: bytes, span: Span) -> list[int]:
    position, end = span
    numbers = []
    while position < end:
        number, position = _long_varint(data, position, end)
        numbers.append(signed(number))
    return numbers
