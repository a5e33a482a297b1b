"""States and traces of a loop in buffers that are used again, for bodies whose results the next step overwrites."""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import ModelError, ShapeError
from webrnn.ir import StateSpec, TraceSpec

from .limits import Limits
from .scan_parts import Carried, Recorder, padded

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
