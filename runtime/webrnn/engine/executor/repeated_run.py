"""Running a graph again and again on inputs of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from webrnn import reference
from webrnn.ir import WEBRNN

from ..limits import Budget

if TYPE_CHECKING:
    from .executor import Executor, Step


class RepeatedRun:
    """Runs a graph step by step: constants and inputs that stay are set once, functions are looked up once, and
    results of common ops are written where those of the run before were.

    The outputs of a run are overwritten by the next one. Results have the bits and the memory layout that
    `Executor.run` gives.
    """

    def __init__(self, executor: Executor, fixed: Mapping[int, Any], budget: Budget | None = None):
        """`fixed` are the inputs that are the same in all runs, by their position; `budget` is that of all of them."""
        budget = budget or Budget(executor.limits)
        self._slots = executor.initial_slots()
        inputs = list(executor.input_slots)
        for position, value in fixed.items():
            self._slots[inputs[position]] = value
        self._changing = [slot for position, slot in enumerate(inputs) if position not in fixed]
        self._steps = [
            _RepeatedBody(step, budget) if step.body is not None else _RepeatedStep(step, budget)
            for step in executor.steps
        ]
        self._outputs = executor.output_slots

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """The outputs for the inputs that are not fixed."""
        slots = self._slots
        for slot, argument in zip(self._changing, arguments, strict=True):
            slots[slot] = argument
        for step in self._steps:
            step.run(slots)
        return [slots[slot] for slot in self._outputs]


class _RepeatedBody:
    """An Expression: its ops are run as those of the graph."""

    def __init__(self, step: Step, budget: Budget):
        assert step.body is not None
        self._step, self._body = step, RepeatedRun(step.body, {}, budget)

    def run(self, slots: list[Any]) -> None:
        arguments = [None if index is None else slots[index] for index in self._step.inputs]
        try:
            results = self._body.run(arguments)
        except Exception as error:
            raise self._step.blamed(error) from (error.__cause__ or error)
        for index, result in zip(self._step.outputs, results, strict=True):
            if index is not None:
                slots[index] = result


class _RepeatedStep:
    """A node. When its inputs have the types and shapes of the run before, it is run without further checks."""

    __slots__ = ("_budget", "_buffer", "_function", "_inputs", "_keywords", "_kinds", "_outputs", "_step", "_writer")

    def __init__(self, step: Step, budget: Budget):
        self._step, self._budget = step, budget
        self._inputs, self._outputs = step.inputs, step.outputs
        node = step.node
        self._function = _plain_function(step)
        self._keywords = node.attrs
        writer = None if node.attrs or None in step.inputs else WRITERS.get(node.op)
        self._writer = writer if self._function is not None else None
        self._kinds: list[tuple[Any, Any]] | None = None
        self._buffer: np.ndarray | None = None

    def run(self, slots: list[Any]) -> None:
        arguments = [None if index is None else slots[index] for index in self._inputs]
        if self._kinds is not None and self._function is not None and self._is_like_before(arguments):
            try:
                if self._buffer is not None and self._writer is not None:
                    self._writer(arguments, self._buffer)
                    result: Any = self._buffer
                else:
                    result = self._function(*arguments, **self._keywords)
                if type(result) is tuple:
                    result = result[0]
                if isinstance(result, np.ndarray | np.generic) and self._outputs[0] is not None:
                    slots[self._outputs[0]] = np.asarray(result)
                    return
            except Exception:  # the checked way says what is wrong
                pass
        self._run_checked(arguments, slots)

    def _run_checked(self, arguments: list[Any], slots: list[Any]) -> None:
        results = self._step.call(arguments, self._budget)
        for index, result in zip(self._outputs, results, strict=True):
            if index is not None:
                slots[index] = result
        if self._function is None:
            return
        self._kinds = [(getattr(each, "dtype", None), getattr(each, "shape", None)) for each in arguments]
        self._buffer = None
        result = results[0]
        floats = all(dtype in (np.float32, np.float64) for dtype, _ in self._kinds)
        if self._writer is not None and floats and isinstance(result, np.ndarray):
            self._buffer = np.empty_like(result)

    def _is_like_before(self, arguments: list[Any]) -> bool:
        assert self._kinds is not None
        for argument, (dtype, shape) in zip(arguments, self._kinds, strict=True):
            if argument is None:
                if dtype is not None:
                    return False
            elif type(argument) is not np.ndarray or argument.dtype != dtype or argument.shape != shape:
                return False
        return True


def _plain_function(step: Step) -> Callable[..., Any] | None:
    """The numpy function of a node of one output; None for what is not one."""
    node = step.node
    if (node.domain, node.op) == (WEBRNN, "Linear"):
        return _linear
    if node.domain or node.op == "If" or len(step.outputs) != 1:
        return None
    return reference.lookup(node.domain, node.op)


def _writes(ufunc: Callable[..., Any]) -> Callable[[list[Any], np.ndarray], Any]:
    return lambda arguments, out: ufunc(*arguments, out=out)


def _sigmoid(arguments: list[Any], out: np.ndarray) -> None:
    np.negative(arguments[0], out=out)
    np.exp(out, out=out)
    np.add(1, out, out=out)
    np.divide(1, out, out=out)


def _relu(arguments: list[Any], out: np.ndarray) -> None:
    np.maximum(arguments[0], arguments[0].dtype.type(0), out=out)


def _linear(x: np.ndarray, w: np.ndarray, *bias: np.ndarray) -> np.ndarray:
    if x.dtype not in (np.float32, np.float64):
        raise TypeError("half floats are accumulated in float32")
    product = np.matmul(x, w)
    return np.add(product, bias[0], out=product) if bias else product


def _write_linear(arguments: list[Any], out: np.ndarray) -> None:
    np.matmul(arguments[0], arguments[1], out=out)
    if len(arguments) > 2:
        np.add(out, arguments[2], out=out)


WRITERS: dict[str, Callable[[list[Any], np.ndarray], Any]] = {
    "Add": _writes(np.add),
    "Sub": _writes(np.subtract),
    "Mul": _writes(np.multiply),
    "Div": _writes(np.divide),
    "MatMul": _writes(np.matmul),
    "Linear": _write_linear,
    "Neg": _writes(np.negative),
    "Abs": _writes(np.abs),
    "Exp": _writes(np.exp),
    "Sqrt": _writes(np.sqrt),
    "Tanh": _writes(np.tanh),
    "Sigmoid": _sigmoid,
    "Relu": _relu,
}
"""Ops on floats that write their result into an array, with the arithmetic of the reference."""
