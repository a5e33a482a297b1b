"""Sums over axes before time, in a model for a fixed number of frames.

Its own run adds them up column by column: each result is one chain. A stream does not know how many frames a step has,
and one frame is a row, which is added up in parts. In a stream of such a model each frame stands beside itself, so that
there are always columns. A model whose axis of time is open adds up rows in both, and needs nothing of this.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from webrnn.ops.sets import REDUCTIONS

from .copies import copied
from .kinds import BreaksTime
from .moves import Move, move
from .view import NodeView
from .writer import Writer

_NOT_ADDED = frozenset({"ReduceMax", "ReduceMin"})
"""What has no order."""


def sums_columns(view: NodeView, gone: Collection[int]) -> bool:
    """Whether the model's own run sums over these axes column by column, and rows are possible in a stream."""
    time = view.time_of(0)
    if not gone or time in gone or sorted(gone) != list(range(min(gone), max(gone) + 1)):
        return False
    behind = view.shape(0)[max(gone) + 1 :]
    others = any(isinstance(size, int) and size > 1 for size in behind)
    return view.fixed_length(0) not in (None, 1) and time > max(gone) and not others


def require_no_columns(view: NodeView, gone: Collection[int]) -> None:
    """Refuse what cannot be written by `beside_itself`."""
    if view.node.op not in _NOT_ADDED and sums_columns(view, gone):
        raise BreaksTime(
            "it sums over an axis before that of time, in another order than the model does for its fixed number of "
            "frames: export it with an open axis of time",
            view.time_of(0),
        )


@move(*(REDUCTIONS - _NOT_ADDED), "LpNormalization", "MeanVarianceNormalization")
def beside_itself(view: NodeView) -> Move | None:
    gone = view.reduced_axes()
    if not sums_columns(view, gone):
        return None
    ready = copied(view.node, view.operands)
    (along, *_), time, rank = ready.operands, view.time_of(0), view.rank(0)
    drops = view.node.op in REDUCTIONS and not view.node.attrs.get("keepdims", 1)
    result = along.at(time - len(gone) if drops else time)

    def write(writer: Writer) -> None:
        b, attrs = writer.builder, dict(view.node.attrs)
        x = b.op("Unsqueeze", writer.at(view.operand, ready.delay), b.ints(rank))
        operands, axes = [b.op("Concat", x, x, axis=rank)], sorted(gone)
        if view.node.op in REDUCTIONS:
            operands.append(b.ints(*axes))
        else:
            attrs.update({"axis": axes[0]} if view.node.op == "LpNormalization" else {"axes": axes})
        made = b.op(view.node.op, *operands, **attrs)
        writer.new[view.result] = b.op("Gather", made, writer.scalar(0), axis=-1)

    return Move([replace(result, length=view.operands[0].length, delay=ready.delay)], write)
