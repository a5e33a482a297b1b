"""The table of rules: `@check("Name")` puts a function in it.

A rule takes a `Check`, what is known of one application of the op, and states what has to hold of its operands and
attributes for the op to be allowed. It may rely on the number of inputs, on required attributes and on the types of
attributes (`reference.check_signature`), on the element types of the op's row and on the attributes of `attributes.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from webrnn.ops.registry import Registry

from .check import Check

Rule: TypeAlias = Callable[[Check], None]

check: Registry[Rule] = Registry("check", f"{__package__}.{{}}")
