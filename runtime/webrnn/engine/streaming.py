"""A model prepared for streams: its pairs of states, a program that carries them, and what they start from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from webrnn.errors import ModelError
from webrnn.ir import Graph, Value

from .backends import Program
from .carriers import ArrayCarrier, Carrier, PlanCarrier
from .carry import Carry, guess, resolve
from .executor import Executor
from .feeds import checked_feed
from .internal_states import expose_states
from .plan_program import PlanProgram
from .stream import Initial, Stream, zeros_of


class StreamingModel:
    """Makes streams of one model that share its weights."""

    def __init__(
        self,
        program: Program,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        pairs: list[tuple[int, int]],
        initial: Initial | None,
        graph: Graph | None = None,
    ):
        self.program, self.inputs, self.outputs, self.pairs, self.initial = program, inputs, outputs, pairs, initial
        self.graph = graph
        """Before the passes, its states inputs and outputs; None for a plan from a file."""

    @staticmethod
    def of_graph(graph: Graph, carry: Carry, make_program: Callable[[Graph], Program]) -> StreamingModel:
        initial = None
        if carry == "internal":
            exposed = expose_states(graph)
            if not exposed.pairs:
                raise ModelError('carry="internal": no loop of the model starts from constants')
            carry, initial = dict(exposed.pairs), _initial_of(exposed.initial)
        inputs = [value.like(value.name) for value in graph.inputs]
        outputs = [value.like(value.name) for value in graph.outputs]
        pairs = _pairs(carry, inputs, outputs)
        return StreamingModel(make_program(graph.copy()), inputs, outputs, pairs, initial, graph)

    @staticmethod
    def of_plan(program: Program, inputs: Sequence[Value], outputs: Sequence[Value], carry: Carry) -> StreamingModel:
        if carry == "internal":
            raise ModelError(
                'carry="internal" is chosen when a plan is exported: session.export(..., carry="internal")'
            )
        return StreamingModel(program, inputs, outputs, _pairs(carry, inputs, outputs), None)

    def first_states(self, arguments: Sequence[Any]) -> list[np.ndarray]:
        """What the states of a stream start from, given the arguments of its first step."""
        if self.initial is not None:
            return self.initial(arguments)
        sizes: dict[str, int] = {}
        for value, argument in zip(self.inputs, arguments, strict=True):
            if argument is not None:
                checked_feed(value, argument, sizes)
        return [zeros_of(self.inputs[before], sizes) for before, _ in self.pairs]

    def starts_from_zeros(self) -> bool:
        """Whether the states do, as those of a stream whose model says nothing else."""
        carried = {before for before, _ in self.pairs}
        arguments = [None if index in carried else zeros_of(value, {}) for index, value in enumerate(self.inputs)]
        return self.initial is None or not any(state.any() for state in self.initial(arguments))

    def stream(self, check_finite: bool = False) -> Stream:
        return Stream(self.inputs, self.outputs, self.pairs, self._carriers(), self.first_states, check_finite)

    def _carriers(self) -> list[Carrier]:
        """What may carry the states, the best first; the last takes all that the model takes."""
        arrays = ArrayCarrier(self.program, self.pairs)
        plan = self.program if isinstance(self.program, PlanProgram) else getattr(self.program, "plan", None)
        if plan is None or any(port.taken >= 0 for port in plan.file.outputs):
            return [arrays]
        return [PlanCarrier(plan, self.pairs), arrays]


def _pairs(carry: Carry, inputs: Sequence[Value], outputs: Sequence[Value]) -> list[tuple[int, int]]:
    if isinstance(carry, str):
        if carry != "auto":
            raise ModelError(f'carry is {{"input": "output"}}, "auto" or "internal", not {carry!r}')
        carry = guess(inputs, outputs)
    return resolve(carry, inputs, outputs)


def _initial_of(graph: Graph) -> Initial:
    executor = Executor(graph)
    n_inputs = len(graph.inputs)

    def initial(arguments: Sequence[Any]) -> list[np.ndarray]:
        return [np.array(array) for array in executor.run(list(arguments[:n_inputs]))]

    return initial
