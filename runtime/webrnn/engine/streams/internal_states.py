"""States that a model keeps to itself: loops that start from constants, and what it looks at besides one frame.

`expose_states` makes them inputs and outputs, so that a model that was exported for whole sequences runs by chunks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webrnn.along_time import streamed, time_sizes
from webrnn.errors import ModelError
from webrnn.ir import Graph
from webrnn.ir.timing import Timing
from webrnn.passes import PASSES, run_passes


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


def make_statistics_run(graph: Graph, time: Mapping[str, int] | None = None) -> None:
    """Let statistics over all frames be statistics over the frames so far: another model, that runs by frames."""
    from webrnn.passes.infer_shapes import InferShapes
    from webrnn.passes.norms_to_statistics import NormsToStatistics
    from webrnn.passes.running_statistics import RunningStatistics

    sizes = time_sizes(graph, time)
    run_passes(graph, [InferShapes(), NormsToStatistics(sizes), RunningStatistics(sizes)])


def make_attention_look_back(graph: Graph, frames: int, time: Mapping[str, int] | None = None) -> None:
    """Let attention over all frames see the last ones only: another model, that runs by frames."""
    from webrnn.passes.attention_looks_back import AttentionLooksBack

    before = ("infer_shapes", "fold_constants", "remove_identities")
    steps = {step.name: step for step in PASSES}
    looks_back = AttentionLooksBack(time_sizes(graph, time), frames)
    expanding = [steps["expand_ops"]] if any(node.op in ("Attention", "Einsum") for node in graph.nodes) else []
    run_passes(graph, [*(steps[name] for name in before), looks_back, *expanding, steps["remove_dead"]])
