"""Inputs that are made up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from webrnn.errors import ShapeError
from webrnn.ir import DType, Value
from webrnn.reference.narrow import TYPES, encode


def random_input(value: Value, sizes: Mapping[str, int], rng: np.random.Generator) -> Any:
    """Normal noise for floats, zeros otherwise; sizes that the model leaves open are 1 unless given."""
    if value.container or value.shape is None or value.dtype is None:
        raise ShapeError(f"input {value.name!r} cannot be made up: its type or rank is not known")
    names = open_sizes(value)
    shape = [dim if isinstance(dim, int) else sizes.get(names[axis], 1) for axis, dim in enumerate(value.shape)]
    if value.dtype.array_type.kind == "f":
        return rng.standard_normal(shape).astype(value.dtype.array_type)
    if value.dtype is DType.BFLOAT16:
        return encode(rng.standard_normal(shape, np.float32), TYPES[value.dtype])
    return np.zeros(shape, value.dtype.array_type)


def open_sizes(value: Value) -> dict[int, str]:
    """The names of the sizes that an input leaves open, by axis; one that the model does not name is `input.axis`.

    >>> from webrnn.ir import DType, Symbol
    >>> open_sizes(Value("x", DType.FLOAT, (2, Symbol("n"), None)))
    {1: 'n', 2: 'x.2'}
    """
    dims = enumerate(value.shape or ())
    return {axis: f"{value.name}.{axis}" if dim is None else str(dim) for axis, dim in dims if not isinstance(dim, int)}
