"""What holds the states of a stream between its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from webrnn.errors import PlanError

from ..programs.backends import Program
from ..programs.plan_program import Bound, PlanProgram

Pairs = Sequence[tuple[int, int]]
"""(input, output) positions of the states."""
Shapes = tuple[tuple[int, ...], ...]


class Carrier(Protocol):
    """Has states before and after a step. Which of them count is known to who uses it, by where they are (`at`)."""

    def start(self, shapes: Shapes, states: Sequence[np.ndarray]) -> Any:
        """Prepare for inputs of these shapes, with these states: where they are. PlanError: it cannot take them."""

    def step(self, arguments: list[Any], at: Any) -> tuple[list[Any], Any]:
        """A step from the states that are there: all outputs, in memory that the next step may use again, and where the
        next states are. The ones before stay until the next step. Arguments of states are ignored."""

    def states(self, at: Any) -> list[np.ndarray]:
        """The states that are there: not copies."""

    def fork(self) -> Carrier:
        """The same without states."""


class PlanCarrier:
    """States in the memory of the kernels. Each has two places: a step reads one and writes the other, and then they
    change their roles, so that nothing is copied. A ring whose new frames take the place of none that is still needed
    has one: a step that fails has changed nothing that the next try reads."""

    def __init__(self, program: PlanProgram, pairs: Pairs):
        self._program, self._pairs = program.another(), pairs
        self._shapes: Shapes | None = None
        self._bound: Bound | None = None
        self._tables: list[Any] = [None, None]
        self._fed: list[tuple[int, np.ndarray]] = []
        self._places: list[list[np.ndarray]] = [[], []]
        """Where the states are before an even and before an odd step."""
        self._outputs: list[list[Any]] = [[], []]
        """Where all outputs are after an even and after an odd step."""

    def start(self, shapes: Shapes, states: Sequence[np.ndarray]) -> int:
        if shapes != self._shapes or not self._program.is_bound(self._bound):
            self._bind(shapes)
        for place, state in zip(self._places[0], states, strict=True):
            place[...] = state
        return 0

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
        self._bound = program.bound
        kept = program.in_place(self._pairs)
        self._tables = [None, program.swapped([pair for pair in self._pairs if pair not in kept])]
        carried = {before for before, _ in self._pairs}
        self._fed = [(index, place) for index, place in enumerate(program.inputs) if index not in carried]
        first = [program.inputs[before] for before, _ in self._pairs]
        second = [program.outputs[after] for _, after in self._pairs]
        after_odd = list(program.outputs)
        for (_, after), place in zip(self._pairs, first, strict=True):
            after_odd[after] = place
        self._places, self._outputs = [first, second], [list(program.outputs), after_odd]
        self._shapes = shapes

    def step(self, arguments: list[Any], at: int) -> tuple[list[Any], int]:
        for index, place in self._fed:
            place[...] = arguments[index]
        self._program.execute(self._tables[at])
        return self._outputs[at], 1 - at

    def states(self, at: int) -> list[np.ndarray]:
        return self._places[at]

    def fork(self) -> PlanCarrier:
        return PlanCarrier(self._program, self._pairs)


class ArrayCarrier:
    """States as arrays, for programs that are not one plan, and for states that change their shape."""

    def __init__(self, program: Program, pairs: Pairs):
        self._program, self._pairs = program, pairs

    def start(self, shapes: Shapes, states: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [np.array(state) for state in states]

    def step(self, arguments: list[Any], at: list[np.ndarray]) -> tuple[list[Any], list[np.ndarray]]:
        arguments = list(arguments)
        for (before, _), state in zip(self._pairs, at, strict=True):
            arguments[before] = state
        outputs = self._program.run(arguments)
        return outputs, [np.array(outputs[after]) for _, after in self._pairs]

    def states(self, at: list[np.ndarray]) -> list[np.ndarray]:
        return at

    def fork(self) -> ArrayCarrier:
        return ArrayCarrier(self._program, self._pairs)
