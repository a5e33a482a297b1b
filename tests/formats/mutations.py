"""JSON files that are nearly models: one to three changes to one that is."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np

JUNK: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3, 7, 1.5, -0.0, 1e-40, 1e39, 1e308, 10**30, 2**31, 2**24, float("nan"),
    float("inf"), "", "tanh", "Tanh", "0", "none", [], [[]], [0], [1, 2], [[1.0]], [None], {}, {"type": "Tanh"},
    {"active": True}, {"a": {"b": [1]}}, [[[[[[1]]]]]], "x" * 300,
)  # fmt: skip


def places(data: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to each value of a file; of a long list of numbers to its first ones."""
    found: list[tuple[Any, ...]] = [way] if way else []
    items = data.items() if isinstance(data, dict) else enumerate(data[:4]) if isinstance(data, list) else ()
    for key, item in items:
        found += places(item, (*way, key))
    return found


def mutated(rng: np.random.Generator, data: dict[str, Any]) -> bytes:
    """The bytes of a file that may be broken."""
    data = copy.deepcopy(data)
    for _ in range(int(rng.integers(1, 4))):
        ways = places(data)
        if ways:
            _change(rng, data, ways[int(rng.integers(len(ways)))])
    text = json.dumps(data).encode()
    if rng.random() < 0.1:
        text = text[: int(rng.integers(len(text)))]
    elif rng.random() < 0.05:
        at = int(rng.integers(len(text)))
        text = text[:at] + bytes([int(rng.integers(256))]) + text[at + 1 :]
    return text


def _change(rng: np.random.Generator, data: Any, way: tuple[Any, ...]) -> None:
    *before, last = way
    for key in before:
        data = data[key]
    value, kind = data[last], int(rng.integers(6))
    if kind == 0:
        del data[last]
    elif kind == 1 and isinstance(value, list) and value:
        value.pop()
    elif kind == 2 and isinstance(value, list):
        value.append(copy.deepcopy(value[-1]) if value else 0)
    elif kind == 3 and isinstance(value, int) and not isinstance(value, bool):
        data[last] = value + int(rng.integers(-2, 3))
    elif kind == 4 and isinstance(data, dict):
        data[JUNK[int(rng.integers(20, 24))] or "more"] = copy.deepcopy(value)
    else:
        data[last] = copy.deepcopy(JUNK[int(rng.integers(len(JUNK)))])
