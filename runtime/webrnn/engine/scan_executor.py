"""The generic Scan: one run of the body for each step."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from webrnn.errors import Error, ModelError, ShapeError
from webrnn.ir import Node, Scan, ScanSpec, SequenceSpec, StateSpec, TraceSpec, Value

from .limits import Limits


class Runner(Protocol):
    def run(self, arguments: list[Any]) -> list[Any]: ...


class ScanExecutor:
    def __init__(self, node: Node, limits: Limits, body: Runner):
        self._spec: ScanSpec = node.attrs["spec"]
        self._body = body
        self._trace_elements: list[Value] = [trace.element for trace in Scan.of(node).traces]
        self._wanted = [output is not None for output in node.outputs]
        self._limits = limits

    def run(self, arguments: list[Any]) -> list[Any]:
        spec = self._spec
        operands = iter(arguments)
        n_steps, cond = next(operands), next(operands)
        states = [_Carried(state, next(operands)) for state in spec.states]
        wholes = [next(operands) for _ in spec.sequences]
        invariants = list(operands)
        most = self._most_steps(n_steps, wholes)
        sequences = [_elements(sequence, whole, most) for sequence, whole in zip(spec.sequences, wholes, strict=True)]
        traces = [
            _Recorder(trace, self._limits) if wanted else None
            for trace, wanted in zip(spec.traces, self._wanted[len(states) :], strict=True)
        ]
        running = cond is None or is_true(cond)
        step = 0
        while running and (most is None or step < most):
            if step >= self._limits.loop_steps:
                raise ModelError(f"the loop did not end within {self._limits.loop_steps} steps")
            results = iter(self._body.run(self._body_arguments(step, states, map(next, sequences), invariants)))
            running = is_true(next(results)) if spec.has_condition else True
            for state in states:
                state.push(next(results))
            for recorder in traces:
                element = next(results)
                if recorder is not None:
                    recorder.record(element)
            step += 1
        finals = [state.final() for state in states]
        if step == 0 and any(recorder is not None for recorder in traces):
            return [*finals, *self._empty_traces(states, wholes, invariants)]
        return [*finals, *(recorder and recorder.stacked() for recorder in traces)]

    def _body_arguments(
        self, step: int, states: list[_Carried], elements: Iterator[Any], invariants: list[Any]
    ) -> list[Any]:
        count = [np.array(step, np.int64)] if self._spec.counts else []
        return [*count, *(value for state in states for value in state.taps()), *elements, *invariants]

    def _most_steps(self, n_steps: Any, wholes: list[Any]) -> int | None:
        lengths = []
        for sequence, whole in zip(self._spec.sequences, wholes, strict=True):
            if not -whole.ndim <= sequence.axis < whole.ndim:
                raise ShapeError(f"a sequence of {whole.ndim} axes has no axis {sequence.axis}")
            lengths.append(whole.shape[sequence.axis])
        if len(set(lengths)) > 1:
            raise ShapeError(f"the sequences have different lengths: {lengths}")
        if n_steps is None:
            return lengths[0] if lengths else None
        if np.size(n_steps) != 1:
            raise ShapeError("the number of steps is one integer")
        count = max(int(np.reshape(n_steps, ())), 0)
        if lengths and count > lengths[0]:
            raise ShapeError(f"{count} steps on sequences of length {lengths[0]}")
        return count

    def _empty_traces(self, states: list[_Carried], wholes: list[Any], invariants: list[Any]) -> list[np.ndarray]:
        """Traces of no steps. Their element type and shape are those that one step on zeros would give."""
        elements: list[Any]
        try:
            zeros = (
                np.zeros(np.delete(whole.shape, sequence.axis), whole.dtype)
                for sequence, whole in zip(self._spec.sequences, wholes, strict=True)
            )
            results = self._body.run(self._body_arguments(0, states, zeros, invariants))
            elements = results[len(results) - len(self._spec.traces) :]
        except Error:
            elements = [_declared_zeros(value) for value in self._trace_elements]
        empty = []
        for spec, element in zip(self._spec.traces, elements, strict=True):
            axis = spec.axis % (element.ndim + 1)
            none = np.zeros((*element.shape[:axis], 0, *element.shape[axis:]), element.dtype)
            empty.append(_padded(spec, none))
        return empty


class _Carried:
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


class _Recorder:
    """The elements of a trace; of a trimmed one only the last."""

    def __init__(self, spec: TraceSpec, limits: Limits):
        self._spec, self._limits = spec, limits
        self._elements: deque[np.ndarray] = deque(maxlen=spec.keep)
        self._n_bytes = 0

    def record(self, element: Any) -> None:
        if not isinstance(element, np.ndarray):
            raise ModelError("only tensors can be stacked to an output of a loop")
        self._n_bytes += element.nbytes + 64
        if self._spec.keep is None and self._n_bytes > self._limits.trace_bytes:
            raise ShapeError(f"an output of the loop grows beyond {self._limits.trace_bytes} bytes")
        self._elements.append(element)

    def stacked(self) -> np.ndarray:
        elements = list(self._elements)
        if self._spec.reverse:
            elements.reverse()
        first = elements[0]
        if any(element.shape != first.shape or element.dtype != first.dtype for element in elements):
            raise ShapeError("the elements of an output of the loop differ in shape or type")
        if not -first.ndim - 1 <= self._spec.axis <= first.ndim:
            raise ShapeError(f"elements of {first.ndim} axes cannot be stacked on axis {self._spec.axis}")
        return _padded(self._spec, np.stack(elements, self._spec.axis))


def _padded(spec: TraceSpec, trace: np.ndarray) -> np.ndarray:
    if spec.length is None:
        return trace
    missing = spec.length - trace.shape[spec.axis]
    if missing < 0:
        raise ShapeError(f"{trace.shape[spec.axis]} steps for an output of length {spec.length}")
    return np.pad(trace, [(0, missing if axis == spec.axis % trace.ndim else 0) for axis in range(trace.ndim)])


def _elements(spec: SequenceSpec, whole: np.ndarray, n_steps: int | None) -> Iterator[np.ndarray]:
    along = np.moveaxis(whole, spec.axis, 0)[:n_steps]
    return (np.asarray(along[index]) for index in (range(len(along))[::-1] if spec.reverse else range(len(along))))


def _declared_zeros(value: Value) -> np.ndarray:
    sizes = [dim if isinstance(dim, int) else 0 for dim in value.shape or ()]
    return np.zeros(sizes, value.dtype.array_type if value.dtype else np.float32)


def is_true(condition: Any) -> bool:
    if not isinstance(condition, np.ndarray) or condition.dtype != bool or condition.size != 1:
        raise ModelError("a condition is one bool")
    return bool(condition.reshape(()))
