"""The table of rules: `@check("Name")` puts a function in it.

A rule takes a `Check`, what is known of one application of the op, and states what has to hold of its operands and
attributes for the op to be allowed. It may rely on the number of inputs, on required attributes and on the types of
attributes (`reference.check_signature`), on the element types of `types.py` and on the attributes of `attributes.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from .check import Check

Rule: TypeAlias = Callable[[Check], None]

RULES: dict[tuple[str, str], Rule] = {}
"""By domain and op."""


def check(*names: str, domain: str = "") -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for name in names:
            if (domain, name) in RULES:
                raise ValueError(f"two rules for {domain}:{name}")
            RULES[domain, name] = function
        return function

    return register
