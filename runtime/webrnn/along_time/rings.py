"""Long histories are rings: frame j of the stream is in slot j mod slots of the state.

A step writes its own frames and moves none. A ring has a few slots more than the history has frames, so that what a
step overwrites is needed by nobody any more, also if the step fails and is tried again: before and after the step it is
the same memory. See `reference/rings.py` for the op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from webrnn.ir import WEBRNN, Node, Value

from .kinds import BreaksTime

if TYPE_CHECKING:
    from .writer import Writer

_MOST_ROOM = 8
"""A ring has room for at most a frame more for each so many frames of its history."""
_ROOM = 64
"""It has room for one for each so many: so many frames may come in a step that moves none."""


def slots_of(history: int, rate: int) -> int:
    """How many frames the state of a history has, if a stride of the stream brings `rate` frames.

    A ring that stays where it is needs room for a stride more than the history. One that is too short for that has two
    places in memory, and each step copies it from one to the other.

    >>> slots_of(256, 1), slots_of(8, 1), slots_of(2, 1), slots_of(240, 160)
    (260, 9, 2, 240)
    """
    room = max(rate, history // _ROOM // rate * rate)
    return history + (room if _MOST_ROOM * room <= history else 0)


def is_ring(history: int, rate: int, rank: int) -> bool:
    """Whether a ring of the history of a value stays where it is: then nothing else is as quick."""
    return history > 0 and rank > 1 and slots_of(history, rate) > history


def order_of(rank: int, axis: int) -> tuple[int, ...]:
    """The axes of a value with frames on an axis in the order of its history's: what counts sequences is the first, the
    channels of convolutions are the last."""
    first = 0 if axis else 1
    others = [place for place in range(rank) if place not in (first, axis)]
    return (first, axis, *others[1:], others[0]) if axis > 1 else (first, axis, *others)


def keep_ring(
    writer: Writer,
    value: Value,
    axis: int,
    new: Value,
    start: Sequence[float],
    rate: int,
    order: tuple[int, ...] | None = None,
    **steps: int,
) -> Value:
    """Windows of the frames that came before and of the new ones, in the layout of the new ones.

    `start` is what the history is before the stream begins, a number for each of its frames. `steps` are attributes of
    Ring: kernel, dilation, stride and more. The first window begins with the first frame of the history.
    """
    fact = writer.facts.of(value)
    if fact.shape is None or fact.dtype is None:
        raise BreaksTime("the shape or the type of what is to be kept is not known before it runs")
    order = order or order_of(len(fact.shape), axis)
    at, history = order.index(axis), len(start)
    slots = slots_of(history, rate)
    shape = [slots if place == axis else fact.shape[place] for place in order]
    filled = np.array([*[start[0]] * (slots - history), *start], fact.dtype.array_type)
    b = writer.builder
    before = writer.state(f"{value.name}.before", fact.dtype, shape, filled, at)
    after, windows = b.value(f"{value.name}.after"), b.value(f"{value.name}.windows")
    rows = writer.transposed(new, order)
    attrs = {"axis": at, "rate": rate, "history": history, **steps}
    b.add(Node("Ring", [before, rows, writer.position()], [after, windows], attrs, value.name, WEBRNN))
    writer.next_state(before, after)
    return writer.transposed(windows, tuple(np.argsort(order).tolist()))
