"""Which output of a model is which of its inputs in the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.errors import ModelError, OptionError, ShapeError
from webrnn.ir import Value
from webrnn.names import unknown_name

from .states import fits_sizes

Carry = Mapping[str, str] | str
"""{input: output}, "auto" or "internal"."""


@dataclass(frozen=True)
class ByFrames:
    """How a model for whole sequences is to run by frames, with carry="internal"."""

    axes: tuple[tuple[str, int], ...] = ()
    """Which axis of an input is time, where the model does not say it."""
    running: bool = False
    """Whether statistics over all frames are taken over the frames so far."""
    lookback: int | None = None
    """How many frames attention sees, instead of all."""

    @staticmethod
    def of(carry: Carry | None, time: Mapping[str, int] | None, running: bool, lookback: int | None) -> ByFrames:
        given = {"time": time, "running": running, "lookback": lookback}
        unused = [name for name, value in given.items() if value and carry != "internal"]
        if unused:
            raise OptionError(f'{unused[0]}= is for carry="internal", which runs a model for whole sequences by frames')
        if lookback is not None and lookback < 1:
            raise OptionError(f"lookback={lookback}: attention sees at least one frame")
        return ByFrames(tuple((time or {}).items()), running, lookback)

    @property
    def time(self) -> dict[str, int] | None:
        return dict(self.axes) or None


def resolve(carry: Mapping[str, str], inputs: Sequence[Value], outputs: Sequence[Value]) -> list[tuple[int, int]]:
    """(input, output) positions of pairs that the caller names."""
    input_names, output_names = [value.name for value in inputs], [value.name for value in outputs]
    pairs = []
    for before, after in carry.items():
        if before not in input_names:
            raise ModelError(f"carry: {unknown_name('input', before, input_names)}")
        if after not in output_names:
            raise ModelError(f"carry: {unknown_name('output', after, output_names)}")
        first, second = inputs[input_names.index(before)], outputs[output_names.index(after)]
        if first.container or second.container or first.dtype != second.dtype:
            raise ModelError(f"carry: {before!r} and {after!r} are of different types")
        if not fits_sizes(first, second):
            raise ModelError(f"carry: {before!r} is {list(first.shape or ())}, {after!r} is {list(second.shape or ())}")
        pairs.append((input_names.index(before), output_names.index(after)))
    twice = {after for _, after in pairs if [a for _, a in pairs].count(after) > 1}
    if twice:
        raise ModelError(f"carry: output {output_names[min(twice)]!r} feeds two inputs")
    return pairs


def checked_starts(starts: Mapping[str, Any] | None, states: Sequence[Value]) -> dict[str, np.ndarray]:
    """What states start from instead of zeros: arrays of the caller's, of the type and the shape of their inputs."""
    by_name, found = {value.name: value for value in states}, {}
    for name, given in (starts or {}).items():
        if name not in by_name:
            raise OptionError(f"starts: there is no state {name!r}; there are {list(by_name)}")
        array = found[name] = np.array(given)
        value = by_name[name]
        if value.dtype is not None and array.dtype != value.dtype.array_type:
            raise ShapeError(f"starts: {name!r} is {array.dtype}, the state is {value.dtype.array_type}")
        sizes = value.shape if value.shape is not None else array.shape
        fits = len(sizes) == array.ndim and all(
            have == need if isinstance(need, int) else have == 1 for have, need in zip(array.shape, sizes, strict=True)
        )
        if not fits:
            raise ShapeError(
                f"starts: {name!r} is {list(array.shape)}, the state is {list(map(str, sizes))}; along a size that is "
                "open it has to be 1, and is repeated"
            )
    return found
