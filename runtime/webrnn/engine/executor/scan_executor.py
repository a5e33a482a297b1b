"""The generic Scan: one run of the body for each step.

There are two ways that give the same bits. The naive one runs the body anew in each step. The other one sets up once
what stays the same, keeps states and traces in buffers and lets the ops of the body write where they wrote in the step
before. `disable=["scan_buffers"]` of a session, WEBRNN_DISABLE=scan_buffers, or `naive` here ask for the naive one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from webrnn.errors import Error, ModelError, ShapeError
from webrnn.ir import DType, Node, Scan, ScanSpec, SequenceSpec, Value

from ..limits import Budget
from .repeated_run import RepeatedRun
from .scan_parts import BufferedRecorder, BufferedState, Carried, LayoutChanges, Recorder, padded

if TYPE_CHECKING:
    from webrnn.shapes.facts import Fact

    from .executor import Executor

FEWEST_STEPS = 4
"""For fewer it does not pay to set anything up."""


class ScanExecutor:
    def __init__(self, node: Node, body: Executor, naive: bool = False):
        self._spec: ScanSpec = node.attrs["spec"]
        self._body = body
        self._trace_elements: list[Value] = [trace.element for trace in Scan.of(node).traces]
        self._wanted = [output is not None for output in node.outputs]
        self._naive = naive

    def run(self, arguments: list[Any], budget: Budget) -> list[Any]:
        spec = self._spec
        n_steps, cond, *operands = arguments
        n_states, n_sequences = len(spec.states), len(spec.sequences)
        inits, wholes = operands[:n_states], operands[n_states : n_states + n_sequences]
        invariants = operands[n_states + n_sequences :]
        most = self._most_steps(n_steps, wholes)
        is_running = cond is None or is_true(cond)
        if is_running and not spec.has_condition:
            budget.charge_loop(most)
        if not self._naive and (most is None or most >= FEWEST_STEPS) and _are_arrays(inits):
            steps_left = budget.steps_left
            try:
                return self._in_buffers(most, is_running, inits, wholes, invariants, budget)
            except LayoutChanges:
                budget.steps_left = steps_left
        states = [Carried(state, init) for state, init in zip(spec.states, inits, strict=True)]
        traces = [Recorder(trace, budget.limits) if wanted else None for trace, wanted in self._traces()]

        def run_body(values: list[Any]) -> list[Any]:
            return self._body.run(values, budget)

        return self._loop(most, is_running, states, wholes, invariants, traces, run_body, invariants, budget)

    def _in_buffers(
        self,
        most: int | None,
        is_running: bool,
        inits: list[Any],
        wholes: list[Any],
        invariants: list[Any],
        budget: Budget,
    ) -> list[Any]:
        spec = self._spec
        states = [BufferedState(state, init) for state, init in zip(spec.states, inits, strict=True)]
        traces = [BufferedRecorder(trace, budget.limits) if wanted else None for trace, wanted in self._traces()]
        first = len(self._body.input_slots) - len(invariants)
        body = RepeatedRun(self._body, {first + i: value for i, value in enumerate(invariants)}, budget)
        with np.errstate(all="ignore"):
            return self._loop(most, is_running, states, wholes, invariants, traces, body.run, [], budget)

    def _traces(self) -> Iterator[tuple[Any, bool]]:
        return zip(self._spec.traces, self._wanted[len(self._spec.states) :], strict=True)

    def _loop(
        self,
        most: int | None,
        is_running: bool,
        states: Sequence[Carried],
        wholes: list[Any],
        invariants: list[Any],
        traces: Sequence[Recorder | None],
        run_body: Callable[[list[Any]], list[Any]],
        passed: list[Any],
        budget: Budget,
    ) -> list[Any]:
        """`passed` are the invariants that `run_body` takes in each step."""
        spec = self._spec
        sequences = [_elements(sequence, whole, most) for sequence, whole in zip(spec.sequences, wholes, strict=True)]
        is_timed = budget.deadline is not None
        step = 0
        while is_running and (most is None or step < most):
            if spec.has_condition:
                budget.charge_step(step)
            if is_timed:
                budget.check_time()
            results = iter(run_body(self._body_arguments(step, states, map(next, sequences), passed)))
            is_running = is_true(next(results)) if spec.has_condition else True
            for state in states:
                state.push(next(results))
            for recorder in traces:
                element = next(results)
                if recorder is not None:
                    recorder.record(element)
            step += 1
        finals = [state.final() for state in states]
        if step == 0 and any(recorder is not None for recorder in traces):
            return [*finals, *self._empty_traces(states, wholes, invariants, budget)]
        return [*finals, *(recorder and recorder.stacked() for recorder in traces)]

    def _body_arguments(
        self, step: int, states: Sequence[Carried], elements: Iterator[Any], invariants: list[Any]
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

    def _empty_traces(
        self, states: Sequence[Carried], wholes: list[Any], invariants: list[Any], budget: Budget
    ) -> list[np.ndarray]:
        """Traces of no steps. Their element type and shape are those that one step on zeros would give; where these
        numbers let it fail (a division by zero), those that follow from the sizes of its operands."""
        elements: list[Any]
        steps_left = budget.steps_left
        zeros = (
            np.zeros(np.delete(whole.shape, sequence.axis), whole.dtype)
            for sequence, whole in zip(self._spec.sequences, wholes, strict=True)
        )
        arguments = self._body_arguments(0, states, zeros, invariants)
        n_traces = len(self._spec.traces)
        try:
            results = self._body.run(arguments, budget)
            elements = results[len(results) - n_traces :]
        except Error:
            from webrnn.shapes.infer import infer_outputs

            facts = infer_outputs(self._body.graph, arguments)
            facts = facts[len(facts) - n_traces :]
            elements = [_zeros_of(*pair) for pair in zip(facts, self._trace_elements, strict=True)]
        budget.steps_left = steps_left
        empty = []
        for spec, element in zip(self._spec.traces, elements, strict=True):
            axis = spec.axis % (element.ndim + 1)
            none = np.zeros((*element.shape[:axis], 0, *element.shape[axis:]), element.dtype)
            empty.append(padded(spec, none))
        return empty


def _are_arrays(values: list[Any]) -> bool:
    return all(isinstance(value, np.ndarray) for value in values)


def _elements(spec: SequenceSpec, whole: np.ndarray, n_steps: int | None) -> Iterator[np.ndarray]:
    """Without gaps, as a Gather gives them: a product of what has gaps may have other bits."""
    along = np.ascontiguousarray(np.moveaxis(whole, spec.axis, 0)[:n_steps])
    return (np.asarray(along[index]) for index in (range(len(along))[::-1] if spec.reverse else range(len(along))))


def _zeros_of(fact: Fact, value: Value) -> np.ndarray:
    """What is known of a value, else what it declares; a size that neither says, or that cannot be, is 0."""
    shape = value.shape or () if fact.shape is None else fact.shape
    if fact.shape is not None and value.shape is not None and len(value.shape) == len(shape):
        shape = tuple(b if a is None else a for a, b in zip(shape, value.shape, strict=True))
    dtype = fact.dtype or value.dtype or DType.FLOAT
    sizes = [dim if isinstance(dim, int) and dim >= 0 else 0 for dim in shape]
    if prod(max(size, 1) for size in sizes) >= 2**31:
        sizes = [0] * len(sizes)
    return np.broadcast_to(np.zeros((), dtype.array_type), sizes)


def is_true(condition: Any) -> bool:
    if not isinstance(condition, np.ndarray) or condition.dtype != bool or condition.size != 1:
        raise ModelError("a condition is one bool")
    return bool(condition.reshape(()))
