"""What is known of an op's outputs when something is known of its inputs, one module a family of ops."""

from . import attention, elementwise, fused, indexing, layout, linear, reductions, resize, signal, windows
from .registry import NOT_A_RULE_BUG, RULES, Rule

__all__ = [
    "NOT_A_RULE_BUG",
    "RULES",
    "Rule",
    "attention",
    "elementwise",
    "fused",
    "indexing",
    "layout",
    "linear",
    "reductions",
    "resize",
    "signal",
    "windows",
]
