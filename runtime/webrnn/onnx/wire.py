"""Decoding of the protobuf wire format, driven by tables of fields.

Nothing is trusted: lengths are checked against the bytes that remain, nesting is bounded, and no memory is reserved
from a length field. A field that no table knows is skipped, as protobuf demands.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from webrnn.errors import ModelError

MAX_DEPTH = 100
"""How deep messages may nest; protobuf's own limit."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""The wire types."""

Span: TypeAlias = tuple[int, int]
"""Where the bytes of a field begin and end in the file."""

TEXT, TEXTS, MESSAGES, MESSAGE, SPAN, PACKED_SPANS, PACKED_INTEGERS, RAW, RAWS = range(9)
INTEGER, INTEGERS, INTEGER_SPANS = range(9, 12)
FLOAT, FIXED32_SPANS, FIXED64_SPANS = range(12, 15)
"""What becomes of a field: first those of wire type BYTES, then those of VARINT, then those of fixed size.

The plural ones are repeated and end up in a list.
"""

_SMALL = 128
"""Equal messages of up to so many bytes are decoded once, if their type says that they repeat."""

_WORTH_NUMPY = 256
"""From so many bytes on numpy decodes a list of numbers faster than a loop."""


class MessageType:
    """A message: its Python class, and for each field tag (number << 3 | wire type) what it is and where it goes.

    A type that `repeats` has many equal messages in one file, which become one object.
    """

    def __init__(self, python_class: type, repeats: bool = False):
        self.python_class, self.repeats = python_class, repeats
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

    def integer_spans(self, number: int, name: str) -> MessageType:
        """Integers, packed or not, that stay where they are; `decode_varints` decodes them."""
        return self._field(number, VARINT, INTEGER_SPANS, name)._field(number, BYTES, PACKED_SPANS, name)

    def float_spans(self, number: int, name: str) -> MessageType:
        """Floats, packed or not, that stay where they are."""
        return self._field(number, FIXED32, FIXED32_SPANS, name)._field(number, BYTES, PACKED_SPANS, name)

    def double_spans(self, number: int, name: str) -> MessageType:
        """Doubles, packed or not, that stay where they are."""
        return self._field(number, FIXED64, FIXED64_SPANS, name)._field(number, BYTES, PACKED_SPANS, name)

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


def decode(message_type: MessageType, data: bytes, span: Span | None = None) -> Any:
    """Decode a whole file, or a part of it, as one message."""
    start, stop = span or (0, len(data))
    try:
        return _decode(message_type, data, start, stop, 0, {})
    except UnicodeDecodeError as error:
        raise ModelError(f"a string is not UTF-8: {error.reason}") from None
    except IndexError:
        raise _truncated(len(data)) from None


def _decode(message_type: MessageType, data: bytes, position: int, end: int, depth: int, known: dict[Any, Any]) -> Any:
    """The message in these bytes; `known` are the small ones of types that repeat, by type and bytes.

    Reading a byte beyond `end` is noticed at the end of the message; beyond `data` it raises IndexError.
    """
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
        if field is None:
            position = _skip(data, position, end, tag & 7)
            continue
        kind, name, inner = field
        start = position
        item: Any
        if kind <= RAWS:
            length = data[position]
            start += 1
            if length >= 0x80:
                if data[start] < 0x80:
                    length += (data[start] << 7) - 0x80
                    start += 1
                else:
                    length, start = _varint(data, position, end)
            position = start + length
            if position > end:
                raise _too_long(start, length, end)
            if kind == TEXT:
                found[name] = data[start:position].decode()
                continue
            if kind == TEXTS:
                item = data[start:position].decode()
            elif kind <= MESSAGE:
                assert inner is not None
                if inner.repeats and length <= _SMALL:
                    key = inner, data[start:position]
                    item = known.get(key)
                    if item is None:
                        item = known[key] = _decode(inner, data, start, position, depth + 1, known)
                else:
                    item = _decode(inner, data, start, position, depth + 1, known)
                if kind == MESSAGE:
                    found[name] = item
                    continue
            elif kind == SPAN:
                found[name] = (start, position)
                continue
            elif kind == PACKED_SPANS:
                item = (start, position)
            elif kind == PACKED_INTEGERS:
                found.setdefault(name, []).extend(_packed_integers(data, start, position))
                continue
            elif kind == RAW:
                found[name] = data[start:position]
                continue
            else:
                item = data[start:position]
        elif kind <= INTEGER_SPANS:
            item = data[position]
            position += 1
            if item >= 0x80:
                item, position = _varint(data, start, end)
            if kind == INTEGER:
                found[name] = item if item < 1 << 63 else item - (1 << 64)
                continue
            if kind == INTEGERS:
                item = item if item < 1 << 63 else item - (1 << 64)
            else:
                item = (start, position)
        else:
            position += 8 if kind == FIXED64_SPANS else 4
            if position > end:
                raise _truncated(start)
            if kind == FLOAT:
                (found[name],) = struct.unpack_from("<f", data, start)
                continue
            item = (start, position)
        if name in found:
            found[name].append(item)
        else:
            found[name] = [item]
    if position > end:
        raise _truncated(end)
    message = message_type.python_class()
    message.__dict__ = found
    return message


def _skip(data: bytes, position: int, end: int, wire_type: int) -> int:
    """Where the field after an unknown one begins."""
    if wire_type == BYTES:
        length, start = _varint(data, position, end)
        if start + length > end:
            raise _too_long(start, length, end)
        return start + length
    if wire_type == VARINT:
        return _varint(data, position, end)[1]
    if wire_type not in (FIXED32, FIXED64):
        where = f"byte {position - 1} is not the start of a field (wire type {wire_type})"
        raise ModelError(f"the file is no ONNX model, or damaged: {where}")
    return position + (4 if wire_type == FIXED32 else 8)


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
            raise _too_wide(position)
    raise _truncated(position)


class Field(NamedTuple):
    """One field of a message, and where it is in the file: its tag begins at `start`, its content at `content`."""

    number: int
    wire_type: int
    start: int
    content: int
    stop: int


def fields(data: bytes, span: Span) -> Iterator[Field]:
    """The fields of the message in a part of a file, as they stand there.

    >>> list(fields(bytes([0x0A, 2, 5, 6, 0x10, 7]), (0, 6)))[0]
    Field(number=1, wire_type=2, start=0, content=2, stop=4)
    """
    position, end = span
    while position < end:
        tag, content = _varint(data, position, end)
        stop = _skip(data, content, end, tag & 7)
        if stop > end:
            raise _truncated(end)
        if tag & 7 == BYTES:
            content = _varint(data, content, end)[1]
        yield Field(tag >> 3, tag & 7, position, content, stop)
        position = stop


def encode_varint(number: int) -> bytes:
    """
    >>> encode_varint(300).hex()
    'ac02'
    """
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _packed_integers(data: bytes, position: int, end: int) -> list[int]:
    if end - position >= _WORTH_NUMPY:
        return decode_varints(data, [(position, end)]).view(np.int64).tolist()
    numbers = []
    while position < end:
        number, position = _varint(data, position, end)
        numbers.append(number if number < 1 << 63 else number - (1 << 64))
    return numbers


def decode_varints(data: bytes, spans: Sequence[Span]) -> np.ndarray:
    """The numbers in the spans of a repeated integer field, as uint64.

    >>> decode_varints(bytes([1, 0x96, 0x01, 2]), [(0, 3), (3, 4)])
    array([  1, 150,   2], dtype=uint64)
    """
    if len(spans) == 1:
        start, stop = spans[0]
        stored = np.ndarray((stop - start,), np.uint8, data, start)
    else:
        stored = np.frombuffer(b"".join(data[start:stop] for start, stop in spans), np.uint8)
    if not stored.size:
        return np.empty(0, np.uint64)
    last_byte = np.flatnonzero(stored < 0x80)
    if not last_byte.size or last_byte[-1] != stored.size - 1:
        raise _truncated(spans[-1][1])
    first_byte = np.concatenate([[0], last_byte[:-1] + 1])
    widths = last_byte - first_byte + 1
    numbers = (stored[first_byte] & 0x7F).astype(np.uint64)
    for index in range(1, int(widths.max())):
        if index == 10:
            raise _too_wide(spans[-1][1])
        wider = np.flatnonzero(widths > index)
        numbers[wider] |= (stored[first_byte[wider] + index] & 0x7F).astype(np.uint64) << np.uint64(7 * index)
    return numbers


def _truncated(position: int) -> ModelError:
    return ModelError(f"the file is cut off: it ends inside a field, at byte {position}")


def _too_long(start: int, length: int, end: int) -> ModelError:
    rest = max(end - start, 0)
    return ModelError(f"the file is cut off or damaged: a field at byte {start} claims {length} bytes, {rest} remain")


def _too_wide(position: int) -> ModelError:
    return ModelError(
        f"the file is no ONNX model, or damaged: the number that ends at byte {position} has more than 64 bits"
    )
