"""Histories of a stream: the frames that a node still needs of those that were, as a state that is a ring.

The state of a history of H frames is `[first axis, slots, other axes ...]`, channels last, with a few slots more than H.
Frame j of the stream is in slot j mod slots. So a step writes its own frames and moves none: what it overwrites is
needed by nobody any more, also if it fails and is tried again. See `reference/rings.py` for the op.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from webrnn.ir import WEBRNN, DType, GraphBuilder, Node, Shape, Value

SLACK_PART = 32
"""One slot more for each of so many frames of history: as many frames may come in a step that moves none."""


@dataclass(frozen=True, slots=True)
class History:
    """What a history is in the graph."""

    operand: Value
    """What the node reads along time in place of the new frames, in their layout."""
    stride: int
    """With which stride it does, with a dilation of 1 and without padding."""
    state: Value
    """An input of the graph."""
    following: Value
    """What that is in the next step."""
    axes: tuple[int, ...]
    """The axes of the frames in the order of the state's."""
    slots: int

    def start(self, frames: np.ndarray) -> np.ndarray:
        """What the state starts from, of its rank: `frames` in the layout of the new ones, of size 1 where all elements
        are the same."""
        moved = frames.transpose(self.axes)
        if moved.shape[1] == 1:
            return moved
        spare = np.zeros_like(moved, shape=(moved.shape[0], self.slots - moved.shape[1], *moved.shape[2:]))
        return np.concatenate([spare, moved], 1)


def slots_of(history: int, rate: int) -> int:
    """How many frames a ring has room for, if a stride of the stream brings `rate` frames.

    With room for a stride more than the history, a state has one place in memory; without, it has two, of which each
    step copies one to the other. So rings have that room, unless it would take more than half of the history.

    >>> slots_of(256, 1), slots_of(2, 1), slots_of(240, 160)
    (264, 3, 240)
    """
    room = max(rate, history // SLACK_PART // rate * rate)
    return history + (room if 2 * room <= history else 0)


def keep_history(
    b: GraphBuilder,
    frames: Value,
    shape: Shape,
    dtype: DType,
    time: int,
    history: int,
    position: Value,
    rate: int,
    *,
    kernel: int = 1,
    dilation: int = 1,
    stride: int = 1,
    name: str = "history",
) -> History:
    """Windows of the last `history` frames and of new ones: one for each `stride` new frames.

    `shape` and `dtype` are those of the new frames, `time` is their axis that counts them, `position` how many strides
    of the stream were before them, int64[1], and `rate` how many frames each of these was. The first window begins with
    the first frame of the history. Without a kernel this is a delay of `history` frames.
    """
    axes, slots = _axes(len(shape), time), slots_of(history, rate)
    sizes = [shape[axis] for axis in axes]
    state = b.input(name, dtype, (sizes[0], slots, *sizes[2:]))
    following, windows = b.value(f"{name}.next", dtype, state.shape), b.value(f"{name}.windows")
    lies_side_by_side = kernel > 1 and dilation == 1  # in the stream itself, where windows overlap
    steps = {"more": kernel - stride} if lies_side_by_side else {"kernel": kernel, "dilation": dilation, "stride": stride}
    attrs = {"axis": 1, "rate": rate, "history": history, **steps}
    is_moved = axes != tuple(sorted(axes))
    rows = b.op("Transpose", frames, perm=list(axes)) if is_moved else frames
    b.add(Node("Ring", [state, rows, position], [following, windows], attrs, name, WEBRNN))
    operand = b.op("Transpose", windows, perm=[axes.index(axis) for axis in sorted(axes)]) if is_moved else windows
    return History(operand, stride if lies_side_by_side else kernel, state, following, axes, slots)


def _axes(rank: int, time: int) -> tuple[int, ...]:
    """The axes of frames as a ring has them: one that counts sequences, time, and the channels of convolutions last."""
    first = 0 if time else 1
    others = [axis for axis in range(rank) if axis not in (first, time)]
    if time >= 2:
        others = [*others[1:], others[0]]
    return (first, time, *others)
