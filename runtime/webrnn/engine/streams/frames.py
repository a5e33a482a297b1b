"""Which frames a step of a stream takes, and which frames of its outputs are shown.

How many strides a stream was fed is in its state `time.position` and nowhere else: a snapshot is enough to go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from webrnn.errors import ModelError, PlanError, ShapeError
from webrnn.ir import Value
from webrnn.ir.timing import Timing

Kept = dict[int, np.ndarray]
"""Outputs without frames, by their place among the results."""


class Frames:
    """The timing of a model's streams, by the places of their inputs, outputs and states."""

    def __init__(
        self, timing: Timing, inputs: Sequence[Value], outputs: Sequence[Value], pairs: Sequence[tuple[int, int]]
    ):
        self.timing, self.warm_up = timing, timing.warm_up
        """`warm_up`: after how many strides nothing is cut."""
        carried, given = {before for before, _ in pairs}, {after for _, after in pairs}
        fed = [(place, value) for place, value in enumerate(inputs) if place not in carried]
        self._inputs = [(place, v.name, timing.inputs[v.name]) for place, v in fed if v.name in timing.inputs]
        self.timeless = [place for place, value in fed if value.name not in timing.inputs]
        """Inputs that have no frames: they are fed with each step."""
        returned = [value.name for place, value in enumerate(outputs) if place not in given]
        self._outputs = [
            (number, timing.outputs[name]) for number, name in enumerate(returned) if name in timing.outputs
        ]
        self.timeless_outputs = [number for number, name in enumerate(returned) if name not in timing.outputs]
        states = {inputs[before].name: number for number, (before, _) in enumerate(pairs)}
        self.end = None if timing.end is None else states[timing.end]
        """The state that says when the sequence ends."""
        self.position = states.get(timing.position)
        """The state that counts strides."""
        if self.position is None and (self.warm_up or self.end is not None):
            raise ModelError(f"a stream with a delay needs the state {timing.position!r}")
        fixed = [size for place, _, axis in self._inputs if isinstance(size := _size(inputs[place], axis), int)]
        self.flush_strides = max(1, timing.flush_strides) if not fixed else max(1, fixed[0] // timing.stride)
        """Of one step of a flush."""
        self.flush_steps = -(-max(1, timing.flush_strides) // self.flush_strides)
        self.keeps_results = bool(self.timeless_outputs) and not timing.flush_strides
        """Whether a flush gives outputs without frames as the last step gave them, since it runs nothing."""

    def check(self, arguments: Sequence[Any]) -> None:
        """Raise unless the inputs have whole strides, as many each."""
        stride, other = self.timing.stride, None
        for place, name, axis in self._inputs:
            size = arguments[place].shape[axis]
            other = size if other is None else other
            if size % stride or size != other or (not size and self.position is not None):
                takes = f"a positive multiple of {stride}" if size == other else "as many of each input"
                raise ShapeError(f"input {name!r} has {size} frames along axis {axis}; a step takes {takes}")

    def strides_of(self, shapes: Mapping[int, tuple[int, ...]]) -> int:
        """How many strides feeds of these shapes have, by the places of their inputs."""
        place, _, axis = self._inputs[0]
        return shapes[place][axis] // self.timing.stride

    def fed(self, states: Sequence[np.ndarray]) -> int:
        """How many strides a stream with these states was fed; 0 where that makes no difference."""
        return 0 if self.position is None else int(states[self.position][0])

    def kept(self, results: Sequence[Any]) -> Kept:
        """What a flush gives that nothing follows."""
        return {number: np.array(results[number]) for number in self.timeless_outputs}

    def shown(self, results: Sequence[Any], fed: int, leading: int = 0) -> list[Any]:
        """The results of a step without the warm-up, if so many strides were fed before it. They may have `leading`
        axes more than those of one stream."""
        shown = list(results)
        for number, output in self._outputs:
            hidden = output.delay - fed * output.rate
            if hidden > 0:
                shown[number] = _between(shown[number], output.axis + leading, hidden, None)
        return shown

    def rest(self, results: Sequence[Any], fed: int) -> list[Any]:
        """Of the results of a flush behind so many strides, the frames that the whole run has."""
        rest = list(results)
        for number, output in self._outputs:
            before = fed * output.rate
            first = max(0, output.delay - before)
            end = output.delay + max(0, before + output.extra) - before
            rest[number] = _between(rest[number], output.axis, first, end)
        return rest

    def joined(self, steps: Sequence[Sequence[Any]]) -> list[Any]:
        """The results of steps as one."""
        joined = list(steps[-1])
        for number, output in self._outputs if len(steps) > 1 else ():
            joined[number] = np.concatenate([results[number] for results in steps], output.axis)
        return joined

    def flush_arguments(self, shapes: Mapping[int, tuple[tuple[int, ...], np.dtype[Any]]], n_inputs: int) -> list[Any]:
        """Zeros for a step of a flush, without memory; `shapes` are those of the inputs of another step, by place."""
        arguments: list[Any] = [None] * n_inputs
        for place, _, axis in self._inputs:
            shape, dtype = shapes[place]
            sizes = (*shape[:axis], self.flush_strides * self.timing.stride, *shape[axis + 1 :])
            try:
                arguments[place] = np.broadcast_to(np.zeros((), dtype), sizes)
            except ValueError as error:  # more than an array of this platform may have
                raise PlanError(f"a flush would have to feed arrays of shape {list(sizes)}") from error
        return arguments


def _size(value: Value, axis: int) -> Any:
    return None if value.shape is None else value.shape[axis]


def _between(result: np.ndarray, axis: int, first: int, end: int | None) -> np.ndarray:
    return result[(slice(None),) * axis + (slice(first, end),)]
