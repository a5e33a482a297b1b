"""A reader of pickles that runs nothing: a stack machine with the opcodes that data needs, and a table of the names
that it knows. What a name stands for is decided by the caller; a pickle that names anything else is refused.

Objects are plain Python data: None, bool, int, float, str, bytes, lists, tuples, dicts, sets, and what the known names
make of them. A mapping is a dict, whatever class it was; attributes that a pickle sets on one are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from webrnn.errors import ModelError, UnsupportedOp

Maker = Callable[..., Any]
"""What a name stands for: called with the arguments that the pickle gives."""

MOST_OBJECTS = 20_000_000


DEEPEST = 64
"""How deep data may be nested. Python frees and hashes a tuple by calls that are nested as deep, and in a browser the
stack ends soon. So that the depth is known, nothing is added to a container that is part of another one already."""


class _Slot:
    """A value on the stack."""

    __slots__ = ("is_open", "level", "value")

    def __init__(self, value: Any, level: int = 0, is_open: bool = False):
        self.value, self.level, self.is_open = value, level, is_open


_MARK = _Slot(None)


class Name:
    """A known name on the stack; to be called, or to be an argument."""

    __slots__ = ("full", "make")

    def __init__(self, full: str, make: Maker):
        self.full, self.make = full, make


class PickleReader:
    """Reads one pickle. `resolve` gives the maker of a name ("torch.FloatStorage"), or raises; `load` is for what the
    pickle keeps elsewhere (persistent ids).

    >>> import pickle
    >>> PickleReader(pickle.dumps({"a": [1, (2.5, None)]}), {}.__getitem__, print).read()
    {'a': [1, (2.5, None)]}
    """

    def __init__(self, data: bytes, resolve: Callable[[str], Maker], load: Callable[[Any], Any]):
        self.data, self.resolve, self.load = data, resolve, load
        self.at = 0
        self.stack: list[_Slot] = []
        self.memo: dict[int, _Slot] = {}
        self.n_objects = 0

    def read(self) -> Any:
        try:
            while True:
                code = self._bytes(1)[0]
                if code == 0x2E:  # STOP
                    return self._pop()
                step = _STEPS.get(code)
                if step is None:
                    raise UnsupportedOp(f"the pickle has an opcode that weights do not need, {bytes([code])!r}")
                step(self)
                self.n_objects += 1
                if self.n_objects > MOST_OBJECTS:
                    raise ModelError("the pickle has too many objects")
        except (ValueError, TypeError, IndexError, KeyError, AttributeError, struct.error, RecursionError) as error:
            raise ModelError(f"the pickle is damaged near byte {self.at}: {error}") from None

    # ------------------------------------------------------------------------------------------------------- the bytes

    def _bytes(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise ValueError("it ends in the middle")
        found = self.data[self.at : self.at + count]
        self.at += count
        return found

    def _number(self, count: int) -> int:
        return int.from_bytes(self._bytes(count), "little")

    def _line(self) -> str:
        end = self.data.index(b"\n", self.at)
        return self._bytes(end + 1 - self.at)[:-1].decode()

    # ------------------------------------------------------------------------------------------------------- the stack

    def _push(self, value: Any, level: int = 0, is_open: bool = False) -> None:
        if level > DEEPEST:
            raise ValueError("its data are nested too deep")
        self.stack.append(_Slot(value, level, is_open))

    def _take(self) -> _Slot:
        """The last value, which nothing is added to from now on."""
        slot = self.stack.pop()
        if slot is _MARK:
            raise ValueError("a mark is where a value is needed")
        slot.is_open = False
        return slot

    def _pop(self) -> Any:
        return self._take().value

    def _to_mark(self) -> list[_Slot]:
        place = len(self.stack) - 1
        while self.stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise ValueError("there is no mark")
        found = self.stack[place + 1 :]
        del self.stack[place:]
        for slot in found:
            slot.is_open = False
        return found

    def _open(self, kind: type | tuple[type, ...], items: list[_Slot]) -> Any:
        """The container that is last on the stack, to which items are added."""
        slot = self.stack[-1]
        if not slot.is_open or not isinstance(slot.value, kind):
            raise ValueError(f"something is added to a {type(slot.value).__name__}")
        slot.level = max(slot.level, _level(items))
        if slot.level > DEEPEST:
            raise ValueError("its data are nested too deep")
        return slot.value

    def _push_name(self, module: str, name: str) -> None:
        full = f"{module}.{name}"
        self._push(Name(full, self.resolve(full)))

    def _push_tuple(self, items: list[_Slot]) -> None:
        self._push(tuple(slot.value for slot in items), _level(items))

    def _set_items(self, items: list[_Slot]) -> None:
        if len(items) % 2:
            raise ValueError("a key has no value")
        target = self._open(dict, items)
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[plain_key(key.value)] = value.value

    def _call(self) -> None:
        arguments, name = self._take(), self._pop()
        if not isinstance(name, Name) or not isinstance(arguments.value, tuple):
            raise ValueError(f"a {type(name).__name__} is called")
        made = name.make(*arguments.value)
        self._push(made, arguments.level + 1, isinstance(made, dict | list))

    def _memoize(self, index: int) -> None:
        if self.stack[-1] is _MARK:
            raise ValueError("a mark is kept")
        self.memo[index] = self.stack[-1]

    def _push_again(self, index: int) -> None:
        slot = self.memo[index]
        slot.is_open = False
        self._push(slot.value, slot.level)

    def _drop_attributes(self) -> None:
        """BUILD: the attributes of an object, such as the `_metadata` of a state_dict."""
        self._pop()
        if not isinstance(self.stack[-1].value, dict):
            raise ValueError(f"attributes of a {type(self.stack[-1].value).__name__} are set")

    def _add_items(self, kind: type | tuple[type, ...], items: list[_Slot]) -> None:
        target = self._open(kind, items)
        if isinstance(target, list):
            target.extend(slot.value for slot in items)
        else:
            target.update(plain_key(slot.value) for slot in items)


def _level(items: list[_Slot]) -> int:
    """How deep a container of these is nested."""
    return 1 + max((slot.level for slot in items), default=0)


def plain_key(key: Any) -> Any:
    """A key of a dict or an element of a set. Tuples could be nested so deep that hashing them ends the process."""
    if not isinstance(key, str | int | float | bool | bytes | None):
        raise ValueError(f"a {type(key).__name__} is a key")
    return key


def _pushes(value: Callable[[PickleReader], Any]) -> Callable[[PickleReader], None]:
    return lambda reader: reader._push(value(reader))


def _opens(kind: type) -> Callable[[PickleReader], None]:
    return lambda reader: reader._push(kind(), 1, True)


def _long(reader: PickleReader) -> int:
    return int.from_bytes(reader._bytes(reader._number(1)), "little", signed=True)


def _signed(reader: PickleReader) -> int:
    return int.from_bytes(reader._bytes(4), "little", signed=True)


def _text(width: int) -> Callable[[PickleReader], str]:
    return lambda reader: reader._bytes(reader._number(width)).decode("utf-8", "surrogatepass")


def _raw(width: int) -> Callable[[PickleReader], bytes]:
    return lambda reader: reader._bytes(reader._number(width))


def _tuple(count: int) -> Callable[[PickleReader], None]:
    def step(reader: PickleReader) -> None:
        items = [reader._take() for _ in range(count)]
        reader._push_tuple(items[::-1])

    return step


def _drop(reader: PickleReader) -> None:
    reader.stack.pop()


def _drop_to_mark(reader: PickleReader) -> None:
    reader._to_mark()


def _stack_name(reader: PickleReader) -> None:
    name, module = reader._pop(), reader._pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise ValueError("a name is no text")
    reader._push_name(module, name)


_STEPS: Mapping[int, Callable[[PickleReader], None]] = {
    0x80: lambda r: _require_protocol(r._number(1)),  # PROTO
    0x95: lambda r: _require_frame(r, r._number(8)),  # FRAME
    ord("c"): lambda r: r._push_name(r._line(), r._line()),  # GLOBAL
    0x93: _stack_name,  # STACK_GLOBAL
    ord("R"): lambda r: r._call(),  # REDUCE
    0x81: lambda r: r._call(),  # NEWOBJ
    ord("b"): lambda r: r._drop_attributes(),  # BUILD
    ord("Q"): lambda r: r._push(r.load(r._pop())),  # BINPERSID
    ord("("): lambda r: r.stack.append(_MARK),  # MARK
    ord("0"): _drop,  # POP
    ord("1"): _drop_to_mark,  # POP_MARK
    ord("N"): _pushes(lambda r: None),
    0x88: _pushes(lambda r: True),
    0x89: _pushes(lambda r: False),
    ord("K"): _pushes(lambda r: r._number(1)),  # BININT1
    ord("M"): _pushes(lambda r: r._number(2)),  # BININT2
    ord("J"): _pushes(_signed),  # BININT
    0x8A: _pushes(_long),  # LONG1
    ord("G"): _pushes(lambda r: struct.unpack(">d", r._bytes(8))[0]),  # BINFLOAT
    ord("X"): _pushes(_text(4)),  # BINUNICODE
    0x8C: _pushes(_text(1)),  # SHORT_BINUNICODE
    0x8D: _pushes(_text(8)),  # BINUNICODE8
    ord("B"): _pushes(_raw(4)),  # BINBYTES
    ord("C"): _pushes(_raw(1)),  # SHORT_BINBYTES
    0x8E: _pushes(_raw(8)),  # BINBYTES8
    ord("T"): _pushes(_raw(4)),  # BINSTRING
    ord("U"): _pushes(_raw(1)),  # SHORT_BINSTRING
    ord("}"): _opens(dict),  # EMPTY_DICT
    ord("]"): _opens(list),  # EMPTY_LIST
    ord(")"): _pushes(lambda r: ()),  # EMPTY_TUPLE
    0x8F: _opens(set),  # EMPTY_SET
    ord("t"): lambda r: r._push_tuple(r._to_mark()),  # TUPLE
    0x85: _tuple(1),
    0x86: _tuple(2),
    0x87: _tuple(3),
    ord("a"): lambda r: r._add_items(list, [r._take()]),  # APPEND
    ord("e"): lambda r: r._add_items(list, r._to_mark()),  # APPENDS
    0x90: lambda r: r._add_items(set, r._to_mark()),  # ADDITEMS
    ord("s"): lambda r: r._set_items([r._take(), r._take()][::-1]),  # SETITEM
    ord("u"): lambda r: r._set_items(r._to_mark()),  # SETITEMS
    ord("q"): lambda r: r._memoize(r._number(1)),  # BINPUT
    ord("r"): lambda r: r._memoize(r._number(4)),  # LONG_BINPUT
    0x94: lambda r: r._memoize(len(r.memo)),  # MEMOIZE
    ord("h"): lambda r: r._push_again(r._number(1)),  # BINGET
    ord("j"): lambda r: r._push_again(r._number(4)),  # LONG_BINGET
}


def _require_protocol(version: int) -> None:
    if version > 5:
        raise ValueError(f"protocol {version}")


def _require_frame(reader: PickleReader, length: int) -> None:
    if reader.at + length > len(reader.data):
        raise ValueError("a frame is longer than the pickle")
