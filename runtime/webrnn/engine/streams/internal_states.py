"""States that a model keeps to itself: loops that start from constants, and what it looks at besides one frame.

`expose_states` makes them inputs and outputs, so that a model that was exported for whole sequences runs by chunks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webrnn.along_time import streamed
from webrnn.errors import ModelError
from webrnn.ir import Graph
from webrnn.ir.timing import Timing
from webrnn.passes import run_passes


@dataclass(frozen=True)
class ExposedStates:
    graph: Graph
    """One step of the stream."""
    pairs: list[tuple[str, str]]
    """(input, output) of each state."""
    initial: Graph
    """From the inputs of the model to what the states start from, in the order of the pairs."""
    timing: Timing


def expose_states(graph: Graph, time: Mapping[str, int] | None = None) -> ExposedStates:
    """The stream of a model along time, which is an axis that loops walk along or that `time` names.

    A graph that cannot give by frames what it gives for the whole sequence is refused, naming the node.
    """
    found = streamed(graph, time)
    if found is None:
        raise ModelError(
            'carry="internal": no loop of the model starts from constants, and no open axis of an input is time: '
            'time={"input": axis} says which is'
        )
    run_passes(found.step.initial)
    return ExposedStates(found.step.graph, found.step.pairs, found.step.initial, found.timing)
