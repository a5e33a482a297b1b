"""Expressions that run along with the instruction before them, on each block of its results while that is near."""

from __future__ import annotations

from itertools import pairwise

from .draft import Draft, ExpressionInstruction, Instruction
from .instructions import RUN_ALONG
from .views import View


def run_expressions_along(draft: Draft) -> None:
    """Let each instruction that can do so take the expression behind it with it."""
    _mark(draft.code)
    for instruction in draft.walk():
        for block in instruction.blocks:
            _mark(block)


def _mark(block: list[Instruction]) -> None:
    for first, then in pairwise(block):
        if first.name in RUN_ALONG and isinstance(then, ExpressionInstruction) and _goes_with(first.target, then):
            first.operands[-1] = 1


def _goes_with(target: View, then: ExpressionInstruction) -> bool:
    """Whether positions are the first axis of an expression, or are all of it with the filters behind them: then a
    block of positions is a block of the expression."""
    if not target.is_contiguous or target.storage.kind != "arena":
        return False
    shape = then.outputs[0][0].shape
    filters = target.shape[-1]
    by_position = len(shape) == 1 or (len(shape) == 2 and shape[1] == filters)
    read = [view for view in then.inputs if view.storage is target.storage]
    return (
        by_position
        and then.outputs[0][0].count == target.count
        and bool(read)
        and all(view.is_contiguous and view.offset == target.offset for view in read)
        and not any(view.motions or view.follows for view in (target, *then.views()))
    )
