"""How the frames of a stream relate to those of the whole run: what hosts know of a model that runs by frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimedOutput:
    """An output that has frames. A step of m strides gives `m * rate` frames, whatever was before it.

    The first `delay` frames of a stream come before the first frame of the whole run: they are never shown. The whole
    run of m strides has `m * rate + extra` frames, or none if that is negative; `delay + extra` is never negative.
    """

    axis: int
    rate: int
    delay: int = 0
    extra: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """The frames of a stream.

    >>> timing = Timing(2, {"x": 1}, {"y": TimedOutput(axis=1, rate=1, delay=3, extra=-1)}, "time.end")
    >>> timing.delay, timing.flush_strides
    (6, 2)
    """

    stride: int
    """A step takes a multiple of so many frames."""
    inputs: Mapping[str, int]
    """The axis of time of each input that has one."""
    outputs: Mapping[str, TimedOutput]
    end: str | None = None
    """The state, int64[1], that says after how many strides the sequence ends: more than there will ever be, until a
    flush sets it. Without one nothing that is shown depends on the end."""
    position: str = "time.position"
    """The state, int64[1], that counts the strides so far. A stream with a delay or an end has it."""
    rest: int = 0
    """How many strides a flush feeds at least, because outputs without frames are that far behind."""

    @property
    def delay(self) -> int:
        """By how many frames of the inputs the outputs are behind, the latest of them."""
        return max((-(-output.delay * self.stride // output.rate) for output in self.outputs.values()), default=0)

    @property
    def warm_up(self) -> int:
        """After how many strides no step has frames that are not shown."""
        return max((-(-output.delay // output.rate) for output in self.outputs.values()), default=0)

    @property
    def flush_strides(self) -> int:
        """How many strides of zeros a flush feeds, to get the frames that are left."""
        left = ((output.delay + output.extra, output.rate) for output in self.outputs.values())
        return max([self.rest, *(-(-frames // rate) for frames, rate in left)])
