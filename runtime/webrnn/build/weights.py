"""Weights by name, and who has used them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from webrnn.errors import OptionError, ShapeError, UnsupportedOp

MOST_NAMED = 24
"""How many names an error lists."""


class Weights(Mapping[str, np.ndarray]):
    """The arrays of a file. `separator` stands between the parts of a name: "rnn.weight_ih_l0" or "gru/kernel".

    >>> weights = Weights({"out.weight": np.ones((2, 3)), "out.bias": np.ones(2)}, ".", "a dict")
    >>> weights["out.bias"], weights.prefixes(), weights.unused()
    (array([1., 1.]), ['out'], ['out.weight'])
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], separator: str, origin: str):
        self.arrays, self.separator, self.origin = dict(arrays), separator, origin
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> np.ndarray:
        """An array, which is used from now on."""
        array = self.arrays[name]
        self.used.add(name)
        return array

    def __contains__(self, name: object) -> bool:
        return name in self.arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def below(self, prefix: str) -> list[str]:
        """What follows the prefix in the names that have it; all names if it is empty."""
        start = f"{prefix}{self.separator}" if prefix else ""
        return [name[len(start) :] for name in self.arrays if name.startswith(start)]

    def full(self, prefix: str, name: str) -> str:
        return f"{prefix}{self.separator}{name}" if prefix else name

    def prefixes(self) -> list[str]:
        """What stands in front of the last part of each name, in the order of the file."""
        return list(dict.fromkeys(name.rpartition(self.separator)[0] for name in self.arrays))

    def unused(self) -> list[str]:
        return [name for name in self.arrays if name not in self.used]

    def missing(self, prefix: str, name: str) -> OptionError:
        """What to raise for a name that is not there: it says which ones are."""
        there = self.below(prefix)
        if there:
            return OptionError(
                f"{self.origin} has no {self.full(prefix, name)!r}; below {prefix!r} it has {few(there)}"
            )
        return self.unknown(prefix)

    def unknown(self, prefix: str) -> OptionError:
        """What to raise for a prefix that no name has."""
        prefixes = self.prefixes()
        near = difflib.get_close_matches(prefix, prefixes, 1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        return OptionError(f"{self.origin} has no weights below {prefix!r}{hint} It has {few(prefixes)}")


def few(names: list[str]) -> str:
    """Some of the names, as a text.

    >>> few(["a", "b"]), few([])
    ("'a', 'b'", 'none')
    """
    shown = ", ".join(repr(name) for name in names[:MOST_NAMED])
    return f"{shown} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else shown or "none"


def floats(array: np.ndarray, name: str, dtype: np.dtype) -> np.ndarray:
    """An array of weights in the type that the model computes in."""
    if array.dtype.kind != "f":
        raise UnsupportedOp(
            f"tensor {name!r} is of type {array.dtype}, not of floats: weights that the framework quantized are not "
            "read; load the float ones and make them small with webrnn.InferenceSession(..., weights='int8')"
        )
    return np.ascontiguousarray(array, dtype)


def require_shape(array: np.ndarray, name: str, needed: tuple[int | None, ...]) -> np.ndarray:
    """The array, or an error with both shapes; None is any size.

    >>> require_shape(np.ones((3, 2)), "out.weight", (2, 3))
    Traceback (most recent call last):
        ...
    webrnn.errors.ShapeError: tensor 'out.weight' is [3, 2], it needs to be [2, 3]: it is transposed
    """
    if len(array.shape) == len(needed) and all(
        want in (None, have) for have, want in zip(array.shape, needed, strict=True)
    ):
        return array
    turned = array.T.shape
    is_turned = len(turned) == len(needed) > 1 and all(
        want in (None, have) for have, want in zip(turned, needed, strict=True)
    )
    raise ShapeError(
        f"tensor {name!r} is {spelled(array.shape)}, it needs to be {spelled(needed)}{': it is transposed' * is_turned}"
    )


def spelled(shape: tuple[Any, ...] | None) -> str:
    return "of unknown shape" if shape is None else "[" + ", ".join("?" if d is None else str(d) for d in shape) + "]"
