"""An item as the steps of a stream, and their results as those of the item."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from webrnn.audio.frames import OverlapAdd
from webrnn.errors import OptionError
from webrnn.ir import Value
from webrnn.ir.timing import Timing

from .errors import ItemError
from .loading import Feeds
from .options import Options


class Steps:
    """The feeds of an item, cut. `steps[t]` are those of step t."""

    def __init__(self, feeds: Feeds, axes: Mapping[str, int], frame: int, hop: int, count: int, length: int):
        self._feeds, self._axes, self._frame, self._hop = feeds, axes, frame, hop
        self._count = count
        self.length = length
        """Of the item, in frames or samples."""

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> Feeds:
        if not self._axes:
            return self._feeds
        first = number * self._hop
        cut = slice(first, first + self._frame)
        return {
            name: feed[(slice(None),) * self._axes[name] + (cut,)] if name in self._axes else feed
            for name, feed in self._feeds.items()
        }


class Cutter:
    """Cuts items into steps."""

    def __init__(self, options: Options, fed: Sequence[Value], timing: Timing | None, audio: Mapping[str, Any]):
        """`audio` is what a plan says of the frames that it takes, see webrnn.audio.plans."""
        self._fed, self._timing = {value.name: value for value in fed}, timing
        self._stride = 1 if timing is None else timing.stride
        self._axes = self._time_axes(options.time, options.input) if timing is None else dict(timing.inputs)
        self._frame = options.frame or audio.get("frame") or self._declared_frame()
        self._hop = options.hop or (audio.get("hop") if options.frame is None else None) or self._frame
        self._is_overlapping = self._frame is not None and self._hop != self._frame
        self._is_added = options.join == "overlap"
        self._remainder = options.remainder or ("pad" if timing is None else "keep")
        if options.hop is not None and self._frame is None:
            raise OptionError("hop= is for frames: say frame= (--frame) too")
        if self._is_overlapping and timing is not None:
            raise OptionError("frames overlap (hop=) only in streams whose states have names: this one keeps its own")
        if self._is_overlapping and options.remainder == "keep":
            raise OptionError("a shorter frame at the end (remainder='keep') is for frames that do not overlap")
        if self._frame is not None and self._frame % self._stride:
            raise OptionError(f"frame={self._frame}: a step of this stream takes a multiple of {self._stride}")

    @property
    def frame(self) -> int | None:
        return self._frame

    @property
    def hop(self) -> int | None:
        return self._hop

    def cut(self, feeds: Feeds, signals: Collection[str] = ()) -> Steps:
        """`signals` are the inputs for which the item has an array of one axis."""
        axes = self._signal_axis(feeds, signals) if self._axes is None else self._axes_of(self._axes, feeds)
        if not axes:
            return Steps(feeds, {}, 0, 0, 1, 0)
        lengths = {name: feeds[name].shape[axis] for name, axis in axes.items()}
        length = next(iter(lengths.values()))
        if set(lengths.values()) != {length}:
            raise ItemError(f"its inputs have different lengths: {lengths}")
        if not length:
            raise ItemError("it is empty: there is nothing to step over")
        frame = self._frame or (length if self._remainder != "pad" else -(-length // self._stride) * self._stride)
        hop = self._hop or frame
        lead = frame - hop
        whole = length + (lead if self._is_added else 0)
        count = whole // hop if self._remainder == "drop" else -(-whole // hop)
        if not count:
            raise ItemError(f"it is shorter than one frame: {length}, not {hop}")
        behind = max(0, count * hop - length) if self._remainder == "pad" else 0
        if lead or behind:
            feeds = {
                name: _padded(feed, axes[name], lead, behind) if name in axes else feed for name, feed in feeds.items()
            }
        return Steps(feeds, axes, frame, hop, count, length)

    @staticmethod
    def _axes_of(axes: Mapping[str, int], feeds: Feeds) -> dict[str, int]:
        found = {}
        for name, axis in axes.items():
            if name in feeds:
                if not -feeds[name].ndim <= axis < feeds[name].ndim:
                    raise ItemError(f"what it has for {name!r} has {feeds[name].ndim} axes: there is no axis {axis}")
                found[name] = axis % feeds[name].ndim
        return found

    def _time_axes(self, given: Mapping[str, int] | None, named: str | None) -> dict[str, int] | None:
        """Along which axis each input is cut: as said, or the one axis of the one input that it can be; else None."""
        if given is not None:
            unknown = [name for name in given if name not in self._fed]
            if unknown:
                raise OptionError(f"time=: a stream takes {list(self._fed)}, not {unknown[0]!r}")
            for name, axis in given.items():
                shape = self._fed[name].shape
                if shape is not None and not -len(shape) <= axis < len(shape):
                    raise OptionError(f"time=: {name!r} has {len(shape)} axes, there is no axis {axis}")
            return dict(given)
        candidates = [value for value in self._fed.values() if value.name == named or named is None]
        if len(candidates) != 1 or candidates[0].shape is None:
            return None
        name, shape = candidates[0].name, candidates[0].shape
        if shape and all(size == 1 for size in shape[:-1]):
            return {name: len(shape) - 1}
        open_axes = [axis for axis, size in enumerate(shape) if not isinstance(size, int)]
        return {name: open_axes[0]} if len(open_axes) == 1 else None

    def _signal_axis(self, feeds: Feeds, signals: Collection[str]) -> dict[str, int]:
        """The one axis of a signal, if an item is nothing else; its others were added."""
        if self._frame is None:
            return {}
        if len(signals) == 1:
            (name,) = signals
            return {name: feeds[name].ndim - 1}
        shapes = {
            name: None if value.shape is None else list(map(str, value.shape)) for name, value in self._fed.items()
        }
        raise OptionError(
            f"along which axis to cut {shapes} is not clear: say time={{input: axis}} (--time INPUT=AXIS)"
        )

    def _declared_frame(self) -> int | None:
        """A size that the model fixes for a step."""
        fed = [(self._fed[name].shape, axis) for name, axis in (self._axes or {}).items()]
        sizes = {shape[axis] for shape, axis in fed if shape is not None}
        numbers = {size for size in sizes if isinstance(size, int)}
        return next(iter(numbers)) if len(numbers) == 1 else None


class Joiner:
    """Puts the results of steps together."""

    def __init__(self, options: Options, names: Sequence[str], timing: Timing | None, cutter: Cutter):
        self._names, self._timing, self._join, self._cutter = names, timing, options.join, cutter
        self._kept = names if options.outputs is None else options.outputs
        if options.join == "overlap" and cutter.frame is None:
            raise OptionError("join='overlap' is for frames: say frame= and hop=")
        if timing is not None and options.join is not None:
            raise OptionError("join= is for streams whose states have names: this one knows the axis of its frames")

    def joined(self, steps: Sequence[Sequence[np.ndarray]], length: int) -> dict[str, np.ndarray]:
        """`steps` has the outputs of each step, and of the flush if there was one."""
        found = {}
        for place, name in enumerate(self._names):
            if name in self._kept:
                found[name] = self._together(name, [outputs[place] for outputs in steps], length)
        return found

    def _together(self, name: str, parts: list[np.ndarray], length: int) -> np.ndarray:
        if self._timing is not None:
            timed = self._timing.outputs.get(name)
            return parts[-1] if timed is None else np.concatenate(parts, timed.axis)
        try:
            if self._join == "overlap":
                return self._added(name, parts)[:length]
            if isinstance(self._join, int):
                return np.concatenate(parts, self._join)
            return np.stack(parts)
        except OptionError:
            raise
        except ValueError as error:
            raise ItemError(f"the results of its steps for {name!r} do not fit together: {error}") from None

    def _added(self, name: str, parts: list[np.ndarray]) -> np.ndarray:
        frame, hop = self._cutter.frame, self._cutter.hop
        assert frame is not None
        assert hop is not None
        if any(part.size != frame for part in parts):
            raise OptionError(f"join='overlap': output {name!r} is not a frame of {frame} samples; say outputs=")
        add = OverlapAdd(frame, hop, lead=frame - hop)
        return add.push(np.stack([part.ravel() for part in parts]))


def _padded(feed: np.ndarray, axis: int, before: int, behind: int) -> np.ndarray:
    size = feed.shape[axis]
    shape = (*feed.shape[:axis], before + size + behind, *feed.shape[axis + 1 :])
    padded = np.zeros(shape, feed.dtype)
    padded[(slice(None),) * axis + (slice(before, before + size),)] = feed
    return padded
