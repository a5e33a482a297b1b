"""Inputs for a model that may be damaged: what it declares, with sizes and numbers by chance."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from webrnn.engine.session import NodeArg
from webrnn.ir import DType

LARGEST_SIZE = 40
"""A model that declares more gets less, and refuses it."""

_TYPES = {dtype.text: dtype for dtype in DType}


def make_feeds(arguments: Sequence[NodeArg], known: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Feeds for these inputs; `known` ones are taken half of the time where they still fit."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    sizes: dict[str, int] = {}
    take_known = rng.random() < 0.5
    kind = rng.choice(("plain",) * 8 + ("nan", "inf", "zero", "large", "negative"))
    feeds = {}
    for argument in arguments:
        shape = [_size(dim, sizes, rng) for dim in argument.shape]
        old = known.get(argument.name)
        if take_known and old is not None and _fits(argument, old, sizes):
            feeds[argument.name] = old
        else:
            feeds[argument.name] = _value(argument.type, shape, kind, rng, numbers)
    return feeds


def _size(dim: int | str | None, sizes: dict[str, int], rng: random.Random) -> int:
    chosen = rng.choice((1, 2, 2, 3, 3, 4, 5, 7)) if rng.random() < 0.95 else 0
    if isinstance(dim, int):
        return min(dim, LARGEST_SIZE)
    return chosen if dim is None else sizes.setdefault(dim, chosen)


def _fits(argument: NodeArg, old: Any, sizes: dict[str, int]) -> bool:
    if not isinstance(old, np.ndarray):
        return not argument.type.startswith("tensor")
    if argument.type != f"tensor({DType.of(old).text})":
        return False
    if len(argument.shape) != old.ndim:
        return False
    for dim, size in zip(argument.shape, old.shape, strict=True):
        if isinstance(dim, str):
            sizes[dim] = size
    return True


def _value(text: str, shape: list[int], kind: str, rng: random.Random, numbers: np.random.Generator) -> Any:
    if text.startswith("optional("):
        return None if rng.random() < 0.3 else _value(text[9:-1], shape, kind, rng, numbers)
    if text.startswith("seq("):
        return [_value(text[4:-1], shape, kind, rng, numbers) for _ in range(rng.choice((0, 1, 2, 3)))]
    dtype = _TYPES.get(text.removeprefix("tensor(").removesuffix(")"), DType.FLOAT)
    if np.prod([float(size) for size in shape]) > 20_000:
        shape = [min(size, 2) for size in shape][:10]
    return _array(dtype, shape, kind, rng, numbers)


def _array(dtype: DType, shape: list[int], kind: str, rng: random.Random, numbers: np.random.Generator) -> np.ndarray:
    array_type = dtype.array_type
    if dtype.is_narrow:
        bits = array_type[0]
        most = {DType.UINT4: 16, DType.INT4: 16, DType.FLOAT4E2M1: 16, DType.UINT2: 4, DType.INT2: 4}.get(dtype, 64)
        return numbers.integers(0, most, shape).astype(bits).view(array_type).reshape(shape)
    if dtype is DType.STRING:
        return numbers.choice(np.array(["", "a", "Bb", "ünï"], object), shape).astype(object).reshape(shape)
    if array_type.kind == "b":
        return numbers.random(shape) < 0.5
    if array_type.kind in "iu":
        return _integers(array_type, shape, kind, numbers)
    values = np.asarray(numbers.standard_normal(shape))
    if kind == "zero":
        values = np.zeros(shape)
    elif kind == "large":
        values = values * 1e4
    elif kind in ("nan", "inf") and values.size:
        chosen = {"nan": np.nan, "inf": rng.choice((np.inf, -np.inf))}[kind]
        values.reshape(-1)[rng.randrange(values.size)] = chosen
    return np.asarray(values).astype(array_type)


def _integers(array_type: np.dtype, shape: list[int], kind: str, numbers: np.random.Generator) -> np.ndarray:
    low, high = {"zero": (0, 1), "negative": (-6, 0), "large": (-100, 100), "nan": (-3, 9)}.get(kind, (0, 4))
    if array_type.kind == "u":
        low, high = max(low, 0), max(high, 1)
    values = np.asarray(numbers.integers(low, high, shape))
    if kind == "inf" and values.size:
        limits = np.iinfo(array_type)
        values = values.astype(array_type)
        values.reshape(-1)[0] = numbers.choice(np.array([limits.min, limits.max], array_type))
    return values.astype(array_type)
