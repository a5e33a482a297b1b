"""What holds the states of a stream between its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .backends import Program
from .plan_program import PlanProgram

Pairs = Sequence[tuple[int, int]]
"""(input, output) positions of the states."""


class Carrier(Protocol):
    """`step` runs with the states as they are; they change when `commit` is called, and only then."""

    def step(self, arguments: list[Any]) -> list[Any]:
        """All outputs; those of memory that the next step uses again are views. Arguments of states are ignored."""

    def commit(self) -> None: ...

    def states(self) -> list[np.ndarray]:
        """The states, as they are now: not copies."""

    def start(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        """Prepare for inputs of these shapes. States stay, unless theirs changes."""

    def fork(self) -> Carrier:
        """The same without states."""


class PlanCarrier:
    """States in the memory of the kernels. Each has two places: a step reads one and writes the other, and then they
    change their roles, so that nothing is copied."""

    def __init__(self, program: PlanProgram, pairs: Pairs):
        self._program, self._pairs = program.another(), pairs
        self._odd = 0
        self._tables: list[Any] = [None, None]
        self._places: list[tuple[np.ndarray, np.ndarray]] = []
        self._fed: list[tuple[int, np.ndarray]] = []

    def start(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        kept = [state.copy() for state in self.states()]
        program = self._program
        program.bind(shapes)
        carried = {before for before, _ in self._pairs}
        self._places = [(program.inputs[before], program.outputs[after]) for before, after in self._pairs]
        self._tables, self._odd = [None, program.swapped(self._pairs)], 0
        self._fed = [(index, place) for index, place in enumerate(program.inputs) if index not in carried]
        for state, (place, _) in zip(kept, self._places, strict=False):
            if state.shape == place.shape:
                place[...] = state

    def step(self, arguments: list[Any]) -> list[Any]:
        for index, place in self._fed:
            place[...] = arguments[index]
        self._program.execute(self._tables[self._odd])
        outputs: list[Any] = list(self._program.outputs)
        if self._odd:
            for (_, after), (first, _) in zip(self._pairs, self._places, strict=True):
                outputs[after] = first
        return outputs

    def commit(self) -> None:
        self._odd = 1 - self._odd

    def states(self) -> list[np.ndarray]:
        return [place[self._odd] for place in self._places]

    def fork(self) -> PlanCarrier:
        return PlanCarrier(self._program, self._pairs)


class ArrayCarrier:
    """States as arrays, for programs that are not one plan."""

    def __init__(self, program: Program, pairs: Pairs):
        self._program, self._pairs = program, pairs
        self._states: list[np.ndarray] = []
        self._next: list[np.ndarray] = []

    def start(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        wanted = [shapes[before] for before, _ in self._pairs]
        if [state.shape for state in self._states] != wanted:
            self._states = [np.zeros(shape, np.float32) for shape in wanted]

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
