"""Inputs that are made up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from webrnn.errors import ShapeError
from webrnn.ir import Value


def random_input(value: Value, sizes: Mapping[str, int], rng: np.random.Generator) -> Any:
    """Normal noise for floats, zeros otherwise; sizes that the model leaves open are 1 unless given."""
    if value.container or value.shape is None or value.dtype is None:
        raise ShapeError(f"input {value.name!r} cannot be made up: its type or rank is not known")
    shape = [dim if isinstance(dim, int) else sizes.get(str(dim), 1) for dim in value.shape]
    if value.dtype.array_type.kind == "f":
        return rng.standard_normal(shape).astype(value.dtype.array_type)
    return np.zeros(shape, value.dtype.array_type)
