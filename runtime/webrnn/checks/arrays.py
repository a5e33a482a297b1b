"""Whether an application of an op is allowed: its attributes, its element types, and the rule of the op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from webrnn.errors import Error
from webrnn.passes.facts import UNKNOWN, Fact, fact_of_array
from webrnn.reference.families import MODULE_OF

from . import (  # noqa: F401  their rules are in the table once they are imported
    elementwise,
    indexing,
    layout,
    linear,
    normalize,
    quantize,
    reductions,
    signal,
    windows,
)
from .attributes import check_attributes
from .check import Check
from .registry import RULES
from .types import check_types


def decide(c: Check, domain: str) -> None:
    """Raise if it is not allowed."""
    domain = "" if domain == "ai.onnx" else domain
    rule = RULES.get((domain, c.op))
    try:
        if not domain and (domain, c.op) in MODULE_OF:
            check_attributes(c)
            check_types(c)
        if rule is not None:
            rule(c)
    except Error as error:
        raise type(error)(error.message, op=c.op, attribute=error.attribute) from error


def check_arrays(op_type: str, domain: str, inputs: Sequence[Any], attrs: Mapping[str, Any], n_outputs: int) -> bool:
    """Raise if an op is not allowed with these arrays. Whether all arrays of these types and shapes are allowed."""
    c = Check(op_type, attrs, [None if value is None else _fact(value) for value in inputs], n_outputs)
    decide(c, domain)
    return not c.reads_elements


def _fact(value: Any) -> Fact:
    """Sequences, and whatever is no tensor, are not known."""
    return fact_of_array(value) if isinstance(value, np.ndarray) else UNKNOWN
