"""One function for each op that the VM can run, by (domain, op)."""

from ..lowering import Rule, rules
from . import cells, control, elementwise, layout, linear, reductions, scans, signal, windows

RULES: dict[tuple[str, str], Rule] = rules(
    layout.RULES,
    elementwise.RULES,
    linear.RULES,
    cells.RULES,
    scans.RULES,
    control.RULES,
    reductions.RULES,
    windows.RULES,
    signal.RULES,
)

READS_FIRST_ONLY = layout.READS_FIRST_ONLY | reductions.READS_FIRST_ONLY | signal.READS_FIRST_ONLY
"""Ops whose other operands say how, and must be known."""
