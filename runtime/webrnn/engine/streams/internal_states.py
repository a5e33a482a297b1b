"""States that a model keeps to itself: loops that start from constants, and what it looks at besides one frame.

`expose_states` makes them inputs and outputs, so that a model that was exported for whole sequences runs by chunks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from webrnn.along_time import Streamed, one_sequence, streamed, time_sizes
from webrnn.errors import ModelError
from webrnn.ir import Graph
from webrnn.ir.timing import Timing
from webrnn.passes import PASSES, run_passes
from webrnn.passes.pipeline import FOR_STREAMS, PLAIN_LOOPS

from .carry import ByFrames


@dataclass(frozen=True)
class ExposedStates:
    graph: Graph
    """One step of the stream."""
    pairs: list[tuple[str, str]]
    """(input, output) of each state."""
    initial: Graph
    """From the inputs of the model to what the states start from, in the order of the pairs."""
    timing: Timing
    receptive_field: int | None
    """How many frames of the inputs one frame of an output depends on; None if it depends on all so far."""


def expose_states(graph: Graph, by_frames: ByFrames, disable: Collection[str] = ()) -> ExposedStates:
    """The stream of a model along time, which is an axis that loops walk along or that the caller names.

    A graph that cannot give by frames what it gives for the whole sequence is refused, naming the node.
    """
    if by_frames.time:
        time_sizes(graph, by_frames.time)  # opens them, so that no pass takes a number of frames for granted
    run_passes(graph, PLAIN_LOOPS, disable=disable)
    if by_frames.running:
        _make_statistics_run(graph, by_frames.time)
    if by_frames.lookback is not None:
        _make_attention_look_back(graph, by_frames.lookback, by_frames.time)
    run_passes(graph, FOR_STREAMS, disable=disable)
    found = _streamed(graph, by_frames.time, disable)
    if found is None:
        raise ModelError(
            'carry="internal": no loop of the model starts from constants, and no open axis of an input is time: '
            'time={"input": axis} says which is'
        )
    run_passes(found.step.initial)
    return ExposedStates(found.step.graph, found.step.pairs, found.step.initial, found.timing, found.receptive_field)


def _streamed(graph: Graph, time: Mapping[str, int] | None, disable: Collection[str]) -> Streamed | None:
    """Where a loop over the sequences of a batch is in the way, the stream of one sequence."""
    try:
        found, refusal = streamed(graph, time), None
    except ModelError as error:
        found, refusal = None, error
    if found is not None:
        return found
    if not one_sequence(graph, time, None if refusal is None else refusal.node):
        if refusal is not None:
            raise refusal
        return None
    steps = {step.name: step for step in PASSES}
    run_passes(graph, [*PLAIN_LOOPS, steps["inline_single_step"]], disable=disable)
    run_passes(graph, FOR_STREAMS, disable=disable)
    return streamed(graph, time)


def _make_statistics_run(graph: Graph, time: Mapping[str, int] | None) -> None:
    """Let statistics over all frames be statistics over the frames so far: another model, that runs by frames."""
    from webrnn.passes.infer_shapes import InferShapes
    from webrnn.passes.norms_to_statistics import NormsToStatistics
    from webrnn.passes.running_statistics import RunningStatistics

    sizes = time_sizes(graph, time)
    run_passes(graph, [InferShapes(), NormsToStatistics(sizes), RunningStatistics(sizes)])


def _make_attention_look_back(graph: Graph, frames: int, time: Mapping[str, int] | None) -> None:
    """Let attention over all frames see the last ones only: another model, that runs by frames."""
    from webrnn.passes.attention_looks_back import AttentionLooksBack

    before = ("infer_shapes", "fold_constants", "remove_identities")
    steps = {step.name: step for step in PASSES}
    looks_back = AttentionLooksBack(time_sizes(graph, time), frames)
    expanding = [steps["expand_ops"]] if any(node.op in ("Attention", "Einsum") for node in graph.nodes) else []
    run_passes(graph, [*(steps[name] for name in before), looks_back, *expanding, steps["remove_dead"]])
