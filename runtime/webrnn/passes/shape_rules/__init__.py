"""What is known of an op's outputs when something is known of its inputs, one module a family of ops."""

from . import elementwise, fused, indexing, layout, linear, reductions, windows
from .registry import NOT_A_RULE_BUG, RULES, Rule

__all__ = [
    "NOT_A_RULE_BUG",
    "RULES",
    "Rule",
    "elementwise",
    "fused",
    "indexing",
    "layout",
    "linear",
    "reductions",
    "windows",
]
