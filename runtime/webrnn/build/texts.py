"""JSON from strangers."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np

from webrnn.errors import ModelError

DEEPEST = 100
"""How deep values may be in each other. Python's parser calls itself for each level, and in a browser the stack ends
long before Python says so."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def read_json(text: bytes, what: str) -> Any:
    """The value; a key that an object has twice is an error.

    >>> read_json(b'{"a": [1, 2]}', "the header")
    {'a': [1, 2]}
    """
    if _depth(text) > DEEPEST:
        raise ModelError(f"{what} is not JSON: nested too deep")
    try:
        return json.loads(text.decode(), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{what} is not JSON: {error}") from None


def _depth(text: bytes) -> int:
    letters = np.frombuffer(_STRING.sub(b"", text), np.uint8)
    opening, closing = (np.isin(letters, np.frombuffer(marks, np.uint8)) for marks in (b"[{", b"]}"))
    return int((opening.astype(np.int64) - closing).cumsum().max(initial=0))


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise ValueError(f"{counts.most_common(1)[0][0]!r} is there twice")
    return found
