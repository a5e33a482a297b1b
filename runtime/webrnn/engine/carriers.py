"""What holds the states of a stream between its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from webrnn.errors import PlanError

from .backends import Program
from .plan_program import PlanProgram

Pairs = Sequence[tuple[int, int]]
"""(input, output) positions of the states."""
Shapes = tuple[tuple[int, ...], ...]


class Carrier(Protocol):
    """`step` runs with the states as they are; they change when `commit` is called, and only then."""

    def start(self, shapes: Shapes, states: Sequence[np.ndarray]) -> None:
        """Prepare for inputs of these shapes, with these states. PlanError: it cannot take these shapes."""

    def step(self, arguments: list[Any]) -> list[Any]:
        """All outputs, in memory that the next step may use again. Arguments of states are ignored."""

    def commit(self) -> None: ...

    def states(self) -> list[np.ndarray]:
        """The states, as they are now: not copies."""

    def fork(self) -> Carrier:
        """The same without states."""


class PlanCarrier:
    """States in the memory of the kernels. Each has two places: a step reads one and writes the other, and then they
    change their roles, so that nothing is copied."""

    def __init__(self, program: PlanProgram, pairs: Pairs):
        self._program, self._pairs = program.another(), pairs
        self._shapes: Shapes | None = None
        self._odd = 0
        self._tables: list[Any] = [None, None]
        self._fed: list[tuple[int, np.ndarray]] = []
        self._places: list[list[np.ndarray]] = [[], []]
        """Where the states are before an even and before an odd step."""
        self._outputs: list[list[Any]] = [[], []]
        """Where all outputs are after an even and after an odd step."""

    def start(self, shapes: Shapes, states: Sequence[np.ndarray]) -> None:
        if shapes != self._shapes:
            self._bind(shapes)
        for place, state in zip(self._places[self._odd], states, strict=True):
            place[...] = state

    def _bind(self, shapes: Shapes) -> None:
        self._shapes = None
        program = self._program
        program.bind(shapes)
        for before, after in self._pairs:
            if program.inputs[before].shape != program.outputs[after].shape:
                raise PlanError(
                    f"{program.file.inputs[before].name!r} of shape {program.inputs[before].shape} becomes "
                    f"{program.outputs[after].shape}"
                )
        self._tables, self._odd = [None, program.swapped(self._pairs)], 0
        carried = {before for before, _ in self._pairs}
        self._fed = [(index, place) for index, place in enumerate(program.inputs) if index not in carried]
        first = [program.inputs[before] for before, _ in self._pairs]
        second = [program.outputs[after] for _, after in self._pairs]
        after_odd = list(program.outputs)
        for (_, after), place in zip(self._pairs, first, strict=True):
            after_odd[after] = place
        self._places, self._outputs = [first, second], [list(program.outputs), after_odd]
        self._shapes = shapes

    def step(self, arguments: list[Any]) -> list[Any]:
        for index, place in self._fed:
            place[...] = arguments[index]
        return self.execute()

    @property
    def feed_places(self) -> list[np.ndarray]:
        """Where the inputs that are not carried are, in their order."""
        return [place for _, place in self._fed]

    @property
    def output_places(self) -> list[Any]:
        """Where the outputs are that are not carried."""
        return self._outputs[0]

    def execute(self) -> list[Any]:
        """A step on what the places of the feeds hold."""
        self._program.execute(self._tables[self._odd])
        return self._outputs[self._odd]

    def commit(self) -> None:
        self._odd = 1 - self._odd

    def states(self) -> list[np.ndarray]:
        return self._places[self._odd]

    def fork(self) -> PlanCarrier:
        return PlanCarrier(self._program, self._pairs)


class ArrayCarrier:
    """States as arrays, for programs that are not one plan, and for states that change their shape."""

    def __init__(self, program: Program, pairs: Pairs):
        self._program, self._pairs = program, pairs
        self._states: list[np.ndarray] = []
        self._next: list[np.ndarray] = []

    def start(self, shapes: Shapes, states: Sequence[np.ndarray]) -> None:
        self._states = [np.array(state) for state in states]

    def step(self, arguments: list[Any]) -> list[Any]:
        arguments = list(arguments)
        for (before, _), state in zip(self._pairs, self._states, strict=True):
            arguments[before] = state
        outputs = self._program.run(arguments)
        self._next = [np.array(outputs[after]) for _, after in self._pairs]
        return outputs

    def commit(self) -> None:
        self._states = self._next

    def states(self) -> list[np.ndarray]:
        return self._states

    def fork(self) -> ArrayCarrier:
        return ArrayCarrier(self._program, self._pairs)
