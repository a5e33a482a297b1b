"""A reader of HDF5 files as Keras writes them (h5py with its default settings, which any version of HDF5 can read).

Groups are B-trees of names, datasets lie in one piece, attributes are texts or arrays of them. What else HDF5 has, such
as chunks, filters and the newer form of groups, raises `UnsupportedOp`.

    superblock ─▶ object header of "/" ─▶ symbol table message ─▶ B-tree of the group, local heap with the names
                                                                     └─▶ nodes (SNOD) ─▶ object headers of members
    object header of a dataset ─▶ messages: dataspace (shape), datatype, layout (where the bytes are)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from webrnn.errors import ModelError, UnsupportedOp

from .elements import count_of, shaped

SIGNATURE = b"\x89HDF\r\n\x1a\n"
UNDEFINED = 2**64 - 1
DEEPEST, MOST_OBJECTS = 64, 1_000_000

_DATASPACE, _DATATYPE, _LINK_INFO, _LINK, _LAYOUT, _FILTERS, _ATTRIBUTE, _CONTINUATION, _SYMBOLS = (
    0x01, 0x03, 0x02, 0x06, 0x08, 0x0B, 0x0C, 0x10, 0x11,
)  # fmt: skip

Attributes = dict[str, "str | list[str] | np.ndarray"]


class Hdf5(NamedTuple):
    """All of a file, by paths without a slash in front; the root is ""."""

    datasets: dict[str, np.ndarray]
    attributes: dict[str, Attributes]


class _Type(NamedTuple):
    kind: str
    """"number", "text" of a fixed length, or "long text", which lies in the global heap."""
    size: int
    dtype: np.dtype | None = None


def read_hdf5(data: bytes) -> Hdf5:
    """The datasets and attributes of a file."""
    return _Reader(data).read()


class _Reader:
    def __init__(self, data: bytes):
        self.data = data
        self.found = Hdf5({}, {})
        self.seen: set[int] = set()
        self.n_objects = 0

    def read(self) -> Hdf5:
        try:
            self._object(self._root(), "", 0)
        except (struct.error, IndexError, ValueError, OverflowError) as error:
            raise ModelError(f"the HDF5 file is damaged: {error}") from None
        return self.found

    # ------------------------------------------------------------------------------------------------------- the bytes

    def _bytes(self, at: int, count: int) -> bytes:
        if at < 0 or count < 0 or at + count > len(self.data):
            raise ModelError(f"the HDF5 file points to byte {at + count}, it has {len(self.data)}")
        return self.data[at : at + count]

    def _unpack(self, form: str, at: int) -> tuple[int, ...]:
        return struct.unpack(f"<{form}", self._bytes(at, struct.calcsize(f"<{form}")))

    def _expect(self, at: int, signature: bytes) -> None:
        if self._bytes(at, len(signature)) != signature:
            raise ModelError(f"the HDF5 file is damaged: no {signature.decode()} at byte {at}")

    def _root(self) -> int:
        if not self.data.startswith(SIGNATURE):
            raise ModelError("this is not an HDF5 file")
        version = self._unpack("B", 8)[0]
        if version > 1:
            raise UnsupportedOp(f"HDF5 with a superblock of version {version}: {_AGAIN}")
        if self._unpack("BB", 13) != (8, 8):
            raise UnsupportedOp("HDF5 with addresses that are not of 8 bytes")
        base = 24 if version == 0 else 28
        if self._unpack("Q", base)[0] != 0:
            raise UnsupportedOp("HDF5 that does not begin at the first byte of the file")
        return self._unpack("Q", base + 32 + 8)[0]

    # ----------------------------------------------------------------------------------------------------- the objects

    def _object(self, address: int, path: str, depth: int) -> None:
        if address in self.seen or depth > DEEPEST:
            raise ModelError(f"{path!r} of the HDF5 file is there twice, or groups are in each other")
        self.seen.add(address)
        messages: dict[int, list[bytes]] = {}
        for kind, body in self._messages(address, path):
            messages.setdefault(kind, []).append(body)
        attributes = dict(filter(None, (self._attribute(body, path) for body in messages.get(_ATTRIBUTE, ()))))
        if attributes:
            self.found.attributes[path] = attributes
        if _SYMBOLS in messages:
            tree, heap = struct.unpack("<QQ", messages[_SYMBOLS][0][:16])
            for name, member in self._members(tree, self._heap(heap)):
                if not name or "/" in name:
                    raise ModelError(f"{path!r} of the HDF5 file has a member that is called {name!r}")
                self._object(member, f"{path}/{name}" if path else name, depth + 1)
        elif _LAYOUT in messages:
            self.found.datasets[path] = self._dataset(messages, path)
        elif _LINK in messages or _LINK_INFO in messages:
            raise UnsupportedOp(f"group {path!r} is of the newer form of HDF5: {_AGAIN}")

    def _messages(self, address: int, path: str) -> Iterator[tuple[int, bytes]]:
        """The messages of an object header, (kind, body)."""
        if self._bytes(address, 4) == b"OHDR":
            raise UnsupportedOp(f"{path!r} is of the newer form of HDF5: {_AGAIN}")
        version, _, count, _, size = self._unpack("BBHII", address)
        if version != 1:
            raise ModelError(f"the HDF5 file is damaged: no object header at byte {address}")
        blocks = [(address + 16, size)]
        while blocks:
            at, left = blocks.pop(0)
            end = at + left
            while at + 8 <= end and count:
                kind, length, flags = self._unpack("HHB", at)
                body = self._bytes(at + 8, length)
                at, count = at + 8 + length, count - 1
                self.n_objects += 1
                if self.n_objects > MOST_OBJECTS:
                    raise ModelError("the HDF5 file has too many objects")
                if flags & 2 and kind in (_DATASPACE, _DATATYPE, _LAYOUT, _ATTRIBUTE):
                    raise UnsupportedOp(f"{path!r} shares a part of its header with others: {_AGAIN}")
                if kind == _CONTINUATION:
                    where, how_long = struct.unpack("<QQ", body[:16])
                    blocks.append((where, how_long))
                else:
                    yield kind, body

    def _heap(self, address: int) -> int:
        """Where the names of a local heap begin."""
        self._expect(address, b"HEAP")
        return self._unpack("Q", address + 24)[0]

    def _members(self, tree: int, names: int, depth: int = 0) -> Iterator[tuple[str, int]]:
        """(name, address of the object header) of a group's members."""
        if tree in self.seen or depth > DEEPEST:
            raise ModelError("a group of the HDF5 file has a damaged tree")
        self.seen.add(tree)
        if self._bytes(tree, 4) == b"SNOD":
            for at in range(tree + 8, tree + 8 + 40 * self._unpack("H", tree + 6)[0], 40):
                name, address, cache = self._unpack("QQI", at)
                if cache == 2:
                    raise UnsupportedOp("the HDF5 file has soft links")
                yield self._name(names + name), address
            return
        self._expect(tree, b"TREE")
        if self._unpack("B", tree + 4)[0] != 0:
            raise ModelError("a group of the HDF5 file has the tree of a dataset")
        for index in range(self._unpack("H", tree + 6)[0]):
            yield from self._members(self._unpack("Q", tree + 32 + 16 * index)[0], names, depth + 1)

    def _name(self, at: int) -> str:
        return self._bytes(at, self.data.index(b"\0", at) - at).decode()

    # ------------------------------------------------------------------------------------------- datasets, attributes

    def _dataset(self, messages: dict[int, list[bytes]], path: str) -> np.ndarray:
        if messages.get(_FILTERS):
            raise UnsupportedOp(f"dataset {path!r} is compressed or checked: {_AGAIN}")
        if _DATASPACE not in messages or _DATATYPE not in messages:
            raise ModelError(f"dataset {path!r} has no shape or no type")
        shape = _shape(messages[_DATASPACE][0], path)
        kind = _type(messages[_DATATYPE][0], path)
        if kind.dtype is None:
            return np.zeros(0, np.uint8)  # texts are no weights
        needed = count_of(shape) * kind.size
        raw = self._laid_out(messages[_LAYOUT][0], needed, path)
        array = shaped(np.frombuffer(raw, kind.dtype, count_of(shape)), shape, path)
        return array.astype(kind.dtype.newbyteorder("="), copy=False)

    def _laid_out(self, layout: bytes, needed: int, path: str) -> bytes:
        version, kind = layout[0], layout[1]
        if version not in (3, 4) or kind > 1:
            raise UnsupportedOp(f"dataset {path!r} does not lie in one piece: {_AGAIN}")
        if kind == 0:
            raw = layout[4 : 4 + struct.unpack("<H", layout[2:4])[0]]
        else:
            address, size = struct.unpack("<QQ", layout[2:18])
            raw = b"" if not needed else self._bytes(address, size)
        if len(raw) < needed:
            raise ModelError(f"dataset {path!r} has {len(raw)} bytes, it needs {needed}")
        return raw[:needed]

    def _attribute(self, body: bytes, path: str) -> tuple[str, str | list[str] | np.ndarray] | None:
        version, name_size, type_size, space_size = body[0], *struct.unpack("<HHH", body[2:8])
        if version not in (1, 2, 3):
            raise ModelError(f"an attribute of {path!r} is of version {version}")
        at, unit = (9 if version == 3 else 8), (8 if version == 1 else 1)
        parts = []
        for size in (name_size, type_size, space_size):
            parts.append(body[at : at + size])
            at += -(-size // unit) * unit
        name = parts[0].split(b"\0")[0].decode()
        try:
            kind, shape = _type(parts[1], path), _shape(parts[2], path)
        except UnsupportedOp:
            return None  # nobody asks for it
        count = count_of(shape)
        if count * kind.size > len(body) - at:
            raise ModelError(f"attribute {name!r} of {path!r} ends in the middle")
        raw = body[at : at + count * kind.size]
        if kind.dtype is not None:
            return name, shaped(np.frombuffer(raw, kind.dtype, count), shape, name)
        pieces = [raw[index : index + kind.size] for index in range(0, len(raw), kind.size)]
        texts = [(piece if kind.kind == "text" else self._long_text(piece)) for piece in pieces]
        decoded = [text.split(b"\0")[0].decode() for text in texts]
        return name, decoded[0] if not shape and decoded else decoded

    def _long_text(self, reference: bytes) -> bytes:
        """A text in the global heap: its length, the address of the collection, and its number there."""
        length, address, wanted = struct.unpack("<IQI", reference)
        if not length:
            return b""
        self._expect(address, b"GCOL")
        at, end = address + 16, address + self._unpack("Q", address + 8)[0]
        while at + 16 <= end:
            number, _, size = self._unpack("HHxxxxQ", at)
            if number == wanted:
                return self._bytes(at + 16, min(size, length))
            if not number:
                break
            at += 16 + -(-size // 8) * 8
        raise ModelError("a text of the HDF5 file is missing")


_AGAIN = "write the weights again with Keras, or as arrays in an .npz"


def _shape(message: bytes, path: str) -> tuple[int, ...]:
    version, rank = message[0], message[1]
    if version not in (1, 2):
        raise ModelError(f"the shape of {path!r} is of version {version}")
    if version == 2 and message[3] == 2:
        return (0,)
    start = 8 if version == 1 else 4
    return struct.unpack(f"<{rank}Q", message[start : start + 8 * rank])


def _type(message: bytes, path: str) -> _Type:
    kind, (size,) = message[0] & 0x0F, struct.unpack("<I", message[4:8])
    if not size:
        raise ModelError(f"{path!r} has elements of no bytes")
    order = ">" if message[1] & 1 else "<"
    if kind == 0 and size in (1, 2, 4, 8):
        return _Type("number", size, np.dtype(f"{order}{'i' if message[1] & 8 else 'u'}{size}"))
    if kind == 1 and size in (2, 4, 8) and _is_ieee(message, size):
        return _Type("number", size, np.dtype(f"{order}f{size}"))
    if kind == 3:
        return _Type("text", size)
    if kind == 8 and size == 1:  # an enumeration: bool
        return _Type("number", size, np.dtype("?"))
    if kind == 9 and message[1] & 0x0F == 1 and size == 16:
        return _Type("long text", size)
    raise UnsupportedOp(f"{path!r} is of a type that weights do not have (class {kind}, {size} bytes)")


def _is_ieee(message: bytes, size: int) -> bool:
    """Whether the bits of a float are those of IEEE 754; bfloat16 has others."""
    exponent_size = message[8 + 5]
    return exponent_size == {2: 5, 4: 8, 8: 11}[size]
