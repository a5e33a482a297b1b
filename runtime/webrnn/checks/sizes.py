"""The conditions of a graph, decided for the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webrnn.ir import SymbolicDim, Value
from webrnn.shapes.facts import facts_of_inputs

from .check import Condition

MOST_SHAPES = 64
"""Shapes that are remembered as allowed."""


class SizeConditions:
    """What has to hold of the sizes of a graph's inputs for all of its nodes to be allowed."""

    def __init__(self, inputs: Sequence[Value], conditions: Sequence[Condition]):
        self.conditions = conditions
        self._places: list[tuple[str, int, int]] = []
        """A named size, and an axis of an input that says what it is."""
        for position, fact in enumerate(facts_of_inputs(inputs)):
            for axis, size in enumerate(fact.shape or ()):
                if isinstance(size, SymbolicDim):
                    self._places.append((str(size), position, axis))
        self._allowed: set[tuple[Any, ...]] = set()

    def require(self, arguments: Sequence[Any]) -> None:
        """Raise if a node is not allowed when the inputs have the shapes of these."""
        if not self.conditions:
            return
        shapes: tuple[tuple[int, ...], ...] = tuple([getattr(argument, "shape", ()) for argument in arguments])
        if shapes in self._allowed:
            return
        sizes = {name: shapes[position][axis] for name, position, axis in self._places if shapes[position]}
        for condition in self.conditions:
            condition.require(sizes)
        if len(self._allowed) >= MOST_SHAPES:
            self._allowed.clear()
        self._allowed.add(shapes)


NO_CONDITIONS = SizeConditions((), ())
