"""Ops on arrays, if they are allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from webrnn import reference
from webrnn.shapes.facts import UNKNOWN, Fact, fact_of_array

from .check import NO_TENSOR, Check
from .types import decide


def call(op_type: str, domain: str, inputs: Sequence[Any], attrs: Mapping[str, Any], n_outputs: int = 1) -> list[Any]:
    """The results of an op on arrays, if it is allowed.

    >>> call("Add", "", [np.float32([1, 2]), np.float32(3)], {})
    [array([4., 5.], dtype=float32)]
    """
    reference.check_signature(op_type, domain, inputs, attrs)
    check_arrays(op_type, domain, inputs, attrs, n_outputs)
    return reference.call(op_type, domain, inputs, attrs, n_outputs)


def check_arrays(op_type: str, domain: str, inputs: Sequence[Any], attrs: Mapping[str, Any], n_outputs: int) -> bool:
    """Raise if an op is not allowed with these arrays. Whether all arrays of these types and shapes are allowed."""
    c = Check(op_type, attrs, [None if value is None else _fact(value) for value in inputs], n_outputs)
    decide(c, domain)
    return not c.reads_elements


def _fact(value: Any) -> Fact:
    if isinstance(value, np.ndarray):
        return fact_of_array(value)
    return NO_TENSOR if isinstance(value, list) else UNKNOWN
