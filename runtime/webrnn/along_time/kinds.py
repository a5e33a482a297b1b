"""How a value depends on frames: on none, on one at a time, on those so far, or on more than that."""

from __future__ import annotations

from dataclasses import dataclass, replace

from webrnn.ir import Dim


@dataclass(frozen=True, slots=True)
class Fault:
    """A node that looks at more than one frame."""

    node: str
    op: str
    reason: str


class BreaksTime(Exception):
    """Raised by a rule whose node looks at more than one frame. `axis` is where frames still are, if that is known."""

    def __init__(self, reason: str, axis: int | None = None):
        super().__init__(reason)
        self.reason, self.axis = reason, axis


@dataclass(frozen=True, slots=True)
class Along:
    """What is known of one value.

    Without an axis it does not depend on frames. With one, what it has at place t depends on frame t of the inputs and
    on carried states, and on nothing else. The axis may count other things too: it has `outer * frames * inner` places,
    as after a Reshape of [batch, time, n] to [batch * time, n].
    """

    axis: int | None = None
    outer: Dim = 1
    inner: Dim = 1
    uniform: bool = False
    """It is the same at all places of the axis, so that it does not matter how frames and others share them."""
    counts: bool = False
    """It depends on the number of frames, and on nothing else of them."""
    last: bool = False
    """It is what comes after the last frame of a step: the final state of a loop, the last element of a trace."""
    fault: Fault | None = None
    """Why none of this can be relied on."""

    @property
    def is_timeless(self) -> bool:
        return self.axis is None and not self.counts and not self.last and self.fault is None

    @property
    def is_pure(self) -> bool:
        """Whether its axis counts frames only."""
        return self.axis is not None and self.outer == 1 and self.inner == 1

    def at(self, axis: int) -> Along:
        return replace(self, axis=axis)

    def sound(self) -> Along:
        return replace(self, fault=None)


TIMELESS = Along()
COUNTS = Along(counts=True)
LAST = Along(last=True)


def join(first: Along, second: Along) -> Along | None:
    """What holds for a value that is one of two; None if they do not go together."""
    if first == second:
        return first
    if {first, second} == {TIMELESS, LAST}:
        return LAST
    if first.axis is None or first.axis != second.axis:
        return None
    if first.uniform or second.uniform:
        return second if first.uniform else first
    return None
