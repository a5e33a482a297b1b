"""Damaged model files: bytes changed, cut, repeated and mixed."""

from __future__ import annotations

import numpy as np


def mutated(files: list[bytes], rng: np.random.Generator) -> bytes:
    """One damaged file made of the given ones."""
    data = bytearray(files[rng.integers(len(files))])
    kind = rng.integers(6)
    if kind == 0:
        return bytes(data[: rng.integers(len(data))])
    if kind == 1:
        other = files[rng.integers(len(files))]
        return bytes(data[: rng.integers(len(data))]) + other[rng.integers(len(other)) :]
    if kind == 2:
        start, stop = sorted(rng.integers(len(data), size=2))
        del data[start : min(stop, start + 64)]
        return bytes(data)
    if kind == 3:
        start, target = rng.integers(len(data), size=2)
        data[target:target] = data[start : start + rng.integers(1, 64)]
        return bytes(data)
    for position in rng.integers(len(data), size=rng.integers(1, 8)):
        data[position] = rng.integers(256) if kind == 4 else data[position] ^ (1 << rng.integers(8))
    return bytes(data)
