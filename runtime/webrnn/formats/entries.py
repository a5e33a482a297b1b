"""Parts of a JSON file, read with their types checked: whatever is wrong is said with the name of the layer."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.errors import ModelError, UnsupportedOp

MOST = 2**24
"""No size in a file is larger."""
MOST_HISTORY = 2**26
"""Numbers that the layers of a model remember together."""

_MISSING: Any = object()


def parsed(data: bytes) -> Any:
    """What a JSON file says."""
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ModelError(f"the file begins like JSON, but it is no text: {error}") from None
    except RecursionError:
        raise ModelError("the JSON file is nested too deep to be a model") from None
    except ValueError as error:
        raise ModelError(f"the JSON file is broken: {error}") from None


@dataclass(frozen=True, eq=False)
class Entry:
    """A JSON object, and what error messages call it."""

    data: dict[str, Any]
    node: str
    op: str

    @staticmethod
    def of(value: Any, node: str, op: str) -> Entry:
        if not isinstance(value, dict):
            raise ModelError(f"it is {_kind(value)}, it needs to be an object, {{...}}", node=node, op=op)
        return Entry(value, node, op)

    def wrong(self, message: str, key: str | None = None) -> ModelError:
        return ModelError(message, node=self.node, op=self.op, attribute=key)

    def unsupported(self, message: str, key: str | None = None) -> UnsupportedOp:
        return UnsupportedOp(message, node=self.node, op=self.op, attribute=key)

    def has(self, key: str) -> bool:
        return self.data.get(key) is not None

    def refuse_others(self, known: Collection[str]) -> None:
        """A key that is not known may change what the layer does."""
        for key in self.data:
            if key not in known:
                raise self.unsupported("this setting is not known", key)

    def get(self, key: str, default: Any = _MISSING) -> Any:
        value = self.data.get(key)
        if value is not None:
            return value
        if default is _MISSING:
            raise self.wrong("it is missing", key)
        return default

    def inside(self, key: str, op: str = "") -> Entry:
        """An object below this one."""
        return Entry.of(self.get(key), f"{self.node}.{key}", op or self.op)

    def count(self, key: str, default: Any = _MISSING, least: int = 1) -> Any:
        value = self.get(key, default)
        return value if value is default and default is not _MISSING else self.whole(value, key, least)

    def whole(self, value: Any, key: str, least: int = 1) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(f"it is {_kind(value)}, it needs to be a whole number", key)
        if not least <= value <= MOST:
            raise self.wrong(f"it is {value}, it needs to be {least} to {MOST}", key)
        return value

    def last_count(self, key: str, default: Any = _MISSING) -> Any:
        """A number, or the last of a list of numbers."""
        value = self.get(key, default)
        if value is default and default is not _MISSING:
            return value
        if isinstance(value, list):
            if not value:
                raise self.wrong("the list is empty", key)
            value = value[-1]
        return self.whole(value, key)

    def number(self, key: str, default: Any = _MISSING) -> Any:
        value = self.get(key, default)
        if value is default and default is not _MISSING:
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(f"it is {_kind(value)}, it needs to be a number", key)
        with np.errstate(over="ignore"):
            small = _as_float32(value)
        if not np.isfinite(small):
            raise self.wrong("it is no finite number", key)
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.get(key, default)
        if not isinstance(value, bool | int) or value not in (0, 1):
            raise self.wrong(f"it is {_kind(value)}, it needs to be true or false", key)
        return bool(value)

    def text(self, key: str, default: Any = _MISSING) -> Any:
        value = self.get(key, default)
        if value is not default and not isinstance(value, str):
            raise self.wrong(f"it is {_kind(value)}, it needs to be a text", key)
        return value

    def items(self, key: str, default: Any = _MISSING) -> list[Any]:
        value = self.get(key, default)
        if not isinstance(value, list):
            raise self.wrong(f"it is {_kind(value)}, it needs to be a list", key)
        return value

    def counts(self, key: str) -> list[int]:
        found = [self.whole(value, key) for value in self.items(key)]
        if not found:
            raise self.wrong("the list is empty", key)
        return found

    def array(self, value: Any, shape: Sequence[int], key: str) -> np.ndarray:
        """Lists of numbers in lists, as an array of this shape."""
        found: list[Any] = []
        if not all(_collect(value, tuple(shape), found)):
            raise self.wrong(f"it is {_shape_text(value)}, it needs to be {list(shape)}", key)
        return self._floats(found, key).reshape(shape)

    def vector(self, key: str) -> np.ndarray:
        """A list of numbers of any length."""
        return self._floats(self.items(key), key)

    def _floats(self, found: list[Any], key: str) -> np.ndarray:
        if not {*map(type, found)} <= {int, float}:
            stranger = next(item for item in found if type(item) not in (int, float))
            raise self.wrong(f"{_kind(stranger)} stands where a number is expected", key)
        try:
            with np.errstate(over="ignore"):
                array = np.array(found, np.float64).astype(np.float32)
        except OverflowError:
            array = np.full(1, np.inf, np.float32)
        if not np.isfinite(array).all():
            raise self.wrong("some of its numbers are not finite", key)
        return array


class Weights:
    """The numbers of a model one behind the other, as .nam files have them."""

    def __init__(self, entry: Entry, key: str = "weights"):
        self._entry, self._key = entry, key
        self._numbers, self._next = entry.vector(key), 0

    def take(self, shape: Sequence[int], layer: str) -> np.ndarray:
        """The next numbers, for a layer of that name."""
        count = 1
        for size in shape:
            count *= size
        if count > len(self._numbers) - self._next:
            raise ModelError(
                f"the file has {len(self._numbers)} weights, which are not enough: {list(shape)} of them are needed "
                f"behind the first {self._next}",
                node=layer,
                op=self._entry.op,
                attribute=self._key,
            )
        taken = self._numbers[self._next : self._next + count].reshape(shape)
        self._next += count
        return taken

    def finish(self) -> None:
        if self._next != len(self._numbers):
            raise self._entry.wrong(f"the layers take {self._next}, the file has {len(self._numbers)}", self._key)


def _collect(value: Any, shape: tuple[int, ...], found: list[Any]) -> Iterator[bool]:
    if not isinstance(value, list) or len(value) != shape[0]:
        yield False
    elif len(shape) == 1:
        found.extend(value)
        yield True
    else:
        for each in value:
            yield from _collect(each, shape[1:], found)


def _shape_text(value: Any) -> str:
    sizes = []
    while isinstance(value, list):
        sizes.append(len(value))
        value = value[0] if value else None
    return str(sizes) if sizes else _kind(value)


def _as_float32(value: float) -> np.float32:
    try:
        return np.float32(value)
    except OverflowError:
        return np.float32(np.inf)


def _kind(value: Any) -> str:
    """What a value of a JSON file is called."""
    names = {bool: "true or false", dict: "an object", list: "a list", str: "a text", type(None): "nothing"}
    if type(value) in names:
        return names[type(value)]
    text = str(value) if not isinstance(value, int) or abs(value) < 10**12 else "a huge number"
    return text
