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


class NeedsStride(Exception):
    """A step has to take `factor` times as many frames for a node to give whole frames."""

    def __init__(self, factor: int):
        super().__init__(factor)
        self.factor = factor


class BreaksTime(Exception):
    """Raised by a rule whose node looks at more than one frame. `axis` is where frames still are, if that is known."""

    def __init__(self, reason: str, axis: int | None = None):
        super().__init__(reason)
        self.reason, self.axis = reason, axis


@dataclass(frozen=True, slots=True)
class Mirror:
    """Frames around a sequence that repeat others of it: the first and the last ("edge"), or all but these turned round
    ("reflect")."""

    mode: str
    before: int
    after: int

    @property
    def reach(self) -> int:
        """The number, all counted, of the frame that the first one repeats."""
        return self.before * (2 if self.mode == "reflect" else 1)


@dataclass(frozen=True, slots=True)
class Along:
    """What is known of one value.

    Without an axis it does not depend on frames. With one, its frame t depends on frames of the inputs up to some frame
    and on carried states, and on nothing else. The axis may count other things too: it has `outer * frames * inner`
    places, as after a Reshape of [batch, time, n] to [batch * time, n].

    Frame j of the stream is frame j - `delay` of the whole run. A negative delay says that frames are known before the
    stream begins, because they are padding: `start` has them.
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
    length: Dim = 1
    """How many frames there are in the whole run."""
    delay: int = 0
    start: tuple[float, ...] = ()
    """What the frames of the whole run are that come before the first of the stream, each filled with one number."""
    mirror: Mirror | None = None
    """Frames around it that are not made yet: whoever reads it makes them. The delay and the length count them."""
    head: int | None = None
    """It has the first so many frames only. In the stream there are all of them, and nobody reads the others."""
    fault: Fault | None = None
    """Why none of this can be relied on."""

    @property
    def is_timeless(self) -> bool:
        return self.axis is None and not self.counts and not self.last and self.fault is None

    @property
    def is_pure(self) -> bool:
        """Whether its axis counts frames only."""
        return self.axis is not None and self.outer == 1 and self.inner == 1

    @property
    def is_settled(self) -> bool:
        """Whether all its frames come in the stream."""
        return self.delay >= 0 and self.mirror is None

    @property
    def earliest(self) -> int:
        """The smallest delay with which all its frames can come in the stream."""
        if self.mirror is None:
            return max(0, self.delay)
        return max(0, self.delay + self.mirror.reach)

    def before_end(self, extra: int) -> Along:
        """So late that no frame behind the last one comes before the end is known. `extra` is how many frames there are
        beyond the rate: frames that the model cuts off at its end are among those of a step before."""
        latest = max(self.earliest, -extra)
        return self if self.delay >= -extra or self.mirror is not None else self.settled(latest)

    def at(self, axis: int) -> Along:
        return replace(self, axis=axis)

    def settled(self, delay: int) -> Along:
        """The same, later."""
        return self if self.axis is None else replace(self, delay=delay, start=(), mirror=None)

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
