"""States and traces of a loop that is run step by step."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from webrnn.errors import ModelError, ShapeError
from webrnn.ir import StateSpec, TraceSpec

from .limits import Limits


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
