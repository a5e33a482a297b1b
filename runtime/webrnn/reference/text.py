"""The few ops on strings (object arrays of str)."""

from __future__ import annotations

import numpy as np

from webrnn.errors import ModelError

from .arrays import Array
from .registry import op
from .sizes import check_size


def _require_strings(*tensors: Array) -> None:
    for x in tensors:
        if x.dtype.kind != "O":
            raise ModelError(f"the inputs must be strings, not {x.dtype}")


@op("StringConcat")
def string_concat(x: Array, y: Array) -> Array:
    _require_strings(x, y)
    return np.asarray(x + y, dtype=object)


@op("StringSplit")
def string_split(x: Array, *, delimiter: str | None = None, maxsplit: int | None = None) -> tuple[Array, Array]:
    """The parts of each string on a new last axis, filled up with empty strings, and their numbers."""
    _require_strings(x)
    limit = -1 if maxsplit is None else maxsplit
    # Without a delimiter, white space at both ends is no part of the last piece either.
    parts = [text.split(delimiter, limit) if delimiter else text.strip().split(None, limit) for text in x.reshape(-1)]
    counts = np.array([len(words) for words in parts], np.int64)
    result = np.full(check_size((len(parts), int(counts.max(initial=0))), object), "", object)
    for row, words in zip(result, parts, strict=True):
        row[: len(words)] = words
    return result.reshape(*x.shape, result.shape[1]), counts.reshape(x.shape)
