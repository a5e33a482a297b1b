"""States and traces of a loop that is run step by step."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from webrnn.errors import ModelError, ShapeError
from webrnn.ir import StateSpec, TraceSpec

from ..limits import Limits


class Carried:
    """A state: its last `depth` values, the newest last."""

    def __init__(self, spec: StateSpec, init: Any):
        self._spec = spec
        if not spec.is_plain and len(init) != spec.depth:
            raise ShapeError(f"a state with taps {spec.taps} starts from {spec.depth} values, {len(init)} given")
        self._past: deque[Any] = deque([init] if spec.is_plain else list(init), maxlen=spec.depth)

    def taps(self) -> list[Any]:
        return [self._past[tap] for tap in self._spec.taps]

    def push(self, value: Any) -> None:
        self._past.append(value)

    def final(self) -> Any:
        return self._past[-1] if self._spec.is_plain else np.stack(list(self._past))


class Recorder:
    """The elements of a trace; of a trimmed one only the last."""

    def __init__(self, spec: TraceSpec, limits: Limits):
        self._spec, self._limits = spec, limits
        self._elements: deque[np.ndarray] = deque(maxlen=spec.keep)
        self._n_bytes = 0

    def record(self, element: Any) -> None:
        if not isinstance(element, np.ndarray):
            raise ModelError("only tensors can be stacked to an output of a loop")
        self._count_bytes(element)
        self._elements.append(element)

    def _count_bytes(self, element: np.ndarray) -> None:
        self._n_bytes += element.nbytes + 64
        if self._spec.keep is None and self._n_bytes > self._limits.trace_bytes:
            raise ShapeError(f"an output of the loop grows beyond {self._limits.trace_bytes} bytes")

    def stacked(self) -> np.ndarray:
        elements = list(self._elements)
        if self._spec.reverse:
            elements.reverse()
        first = elements[0]
        if any(element.shape != first.shape or element.dtype != first.dtype for element in elements):
            raise ShapeError("the elements of an output of the loop differ in shape or type")
        self._check_axis(first.ndim)
        return padded(self._spec, np.stack(elements, self._spec.axis))

    def _check_axis(self, rank: int) -> None:
        if not -rank - 1 <= self._spec.axis <= rank:
            raise ShapeError(f"elements of {rank} axes cannot be stacked on axis {self._spec.axis}")


def padded(spec: TraceSpec, trace: np.ndarray) -> np.ndarray:
    if spec.length is None:
        return trace
    missing = spec.length - trace.shape[spec.axis]
    if missing < 0:
        raise ShapeError(f"{trace.shape[spec.axis]} steps for an output of length {spec.length}")
    return np.pad(trace, [(0, missing if axis == spec.axis % trace.ndim else 0) for axis in range(trace.ndim)])


FIRST_ROWS = 64


class LayoutChanges(Exception):
    """A copy of a state would have another memory layout, and a product of it perhaps other bits."""


class BufferedState(Carried):
    """What is pushed is copied. What is no tap any more is the place for the value after the next."""

    def __init__(self, spec: StateSpec, init: Any):
        super().__init__(spec, init)
        self._own: list[np.ndarray] = []
        """Buffers in `_past`, and at the end the one that is free."""
        self._free: np.ndarray | None = None

    def push(self, value: Any) -> None:
        if not value.flags.forc:
            raise LayoutChanges
        place = self._free
        if place is None or place.shape != value.shape or place.dtype != value.dtype or not _alike(place, value):
            place = np.empty_like(value)
        place[...] = value
        oldest = self._past[0]
        self._past.append(place)
        self._free = oldest if any(oldest is own for own in self._own) else None
        self._own = [own for own in self._own if own is not oldest] + [place]


class BufferedRecorder(Recorder):
    """The elements of a trace as rows of one array, which grows; of a trimmed one copies of the last elements."""

    def __init__(self, spec: TraceSpec, limits: Limits):
        super().__init__(spec, limits)
        self._rows: np.ndarray | None = None
        self._count = 0

    def record(self, element: Any) -> None:
        if self._spec.keep is not None:
            super().record(element.copy() if isinstance(element, np.ndarray) else element)
            return
        if not isinstance(element, np.ndarray):
            raise ModelError("only tensors can be stacked to an output of a loop")
        self._count_bytes(element)
        rows = self._rows
        if rows is None:
            rows = self._rows = np.empty((FIRST_ROWS, *element.shape), element.dtype)
        if element.shape != rows.shape[1:] or element.dtype != rows.dtype:
            raise ShapeError("the elements of an output of the loop differ in shape or type")
        if self._count == len(rows):
            rows = self._rows = np.concatenate([rows, np.empty_like(rows)])
        rows[self._count] = element
        self._count += 1

    def stacked(self) -> np.ndarray:
        if self._spec.keep is not None:
            return super().stacked()
        assert self._rows is not None
        rows = self._rows[: self._count]
        self._check_axis(rows.ndim - 1)
        along = rows[::-1] if self._spec.reverse else rows
        axis = self._spec.axis % rows.ndim
        return padded(self._spec, np.array(np.moveaxis(along, 0, axis), order="C"))


def _alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of the same shape have their axes in the same order in memory."""
    return a.flags.c_contiguous == b.flags.c_contiguous and a.flags.f_contiguous == b.flags.f_contiguous
