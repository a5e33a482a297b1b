"""Which axis is time, and the stream that a model for whole sequences is along it.

Time is what the caller says, or the axis that loops with states of their own walk along. Where they walk along two axes
of an input and one of them is of a fixed size, time is the other one; without such loops it is the axis whose size is
open and has a name for time, or the only open one that is not the batch. Where that does not decide, the model is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice, product

from webrnn.errors import ModelError
from webrnn.ir import Dim, Graph, Node, Scan, SymbolicDim, Value, is_scan
from webrnn.ir.timing import TimedOutput, Timing
from webrnn.names import unknown_name
from webrnn.ops.sets import SIZES

from .analysis import Analysis
from .kinds import Along, BreaksTime, Fault, NeedsStride
from .map_loops import take_one_sequence
from .needs import needed_frames, receptive_field
from .paces import Pace, opened_size
from .writer import StreamGraph, Writer

_ADVICE = "run whole sequences, or export the model with its state as inputs and outputs"
_MOST_CHOICES = 64
_LONGEST_STRIDE = 2**20
_BATCH = re.compile(r"batch|^(n|b|bs|streams?)$", re.IGNORECASE)
_TIME = re.compile(r"time|frame|step|seq|len|sampl|audio|signal|^[tl]$", re.IGNORECASE)
"""What exporters call the sizes of these axes."""


@dataclass(frozen=True)
class Streamed:
    """A model as a stream of frames that gives what the whole run gives."""

    step: StreamGraph
    timing: Timing
    receptive_field: int | None
    """How many frames of the inputs one frame of an output depends on; None if it depends on all so far."""


def streamed(graph: Graph, time: Mapping[str, int] | None = None) -> Streamed | None:
    """The stream of a model, or None if nothing says what its frames are. Raises naming the node where frames depend on
    more than can be carried."""
    fed = frozenset(data_dependent(graph))
    chosen = _given(graph, time) if time else _find_time(graph, fed)
    if not chosen:
        return None
    analysis = _with_stride(graph, chosen, fed, opened=bool(time))
    fault = _first_fault(graph, analysis)
    if fault is not None:
        raise _refusal(fault)
    found = _written(graph, chosen, analysis)
    is_time = bool(time) or bool(found.step.pairs) or any(_is_named(*place, _TIME) for place in chosen.items())
    return found if is_time else None


def one_sequence(graph: Graph, time: Mapping[str, int] | None = None, node: str | None = None) -> bool:
    """Let a model that runs a loop for each sequence of a batch be for one sequence; whether there is such a loop.
    `node` is the label of the loop that is in the way."""
    try:
        chosen = _given(graph, time) if time else _find_time(graph, frozenset(data_dependent(graph)))
    except ModelError:
        chosen = {}
    return take_one_sequence(graph, chosen, node)


def time_sizes(graph: Graph, time: Mapping[str, int] | None = None) -> frozenset[Dim]:
    """The sizes of the axes of time of the inputs. An axis of time without a name for its size, or of a size that is
    opened, gets one."""
    try:
        chosen = _given(graph, time) if time else _find_time(graph, frozenset(data_dependent(graph)))
    except ModelError:
        if time:
            raise
        found = {value: _open_axis(value) for value in graph.inputs if not value.container}
        chosen = {value: axis for value, axis in found.items() if axis is not None}
    sizes: set[Dim] = set()
    opened: dict[Dim | None, SymbolicDim] = {}
    for value, axis in _with_same_names(graph, chosen).items():
        assert value.shape is not None
        size = value.shape[axis]
        if size is None or (isinstance(size, int) and time):
            size = opened.setdefault(size, opened_size(value.name, size))
            value.shape = (*value.shape[:axis], size, *value.shape[axis + 1 :])
        if not isinstance(size, int):
            sizes.add(size)
    return frozenset(sizes)


def _given(graph: Graph, time: Mapping[str, int]) -> dict[Value, int]:
    inputs = {value.name: value for value in graph.inputs}
    chosen = {}
    for name, axis in time.items():
        if name not in inputs:
            raise ModelError(f"time: {unknown_name('input', name, inputs)}")
        rank = None if inputs[name].shape is None else len(inputs[name].shape or ())
        if rank is None or not -rank <= axis < rank:
            raise ModelError(f"time: the input {name!r} has no axis {axis}")
        chosen[inputs[name]] = axis % rank
    return chosen


def _find_time(graph: Graph, fed: frozenset[Value]) -> dict[Value, int]:
    hidden = [node for node in graph.nodes if is_scan(node) and _has_hidden(node, fed)]
    if hidden:
        found = _find_walks(graph, hidden, fed)
        chosen = {value: _choose(value, axes) for value, axes in found.items() if axes}
        if chosen:
            return chosen
    chosen = {}
    for value in graph.inputs:
        axis = None if value.container else _open_axis(value)
        if axis is not None:
            chosen[value] = axis
    if hidden and (not chosen or not _moves_by_frames(graph, chosen, fed)):
        raise _without_walk(graph, hidden, fed)
    return chosen


def _open_axis(value: Value) -> int | None:
    """The axis whose size is open and has a name for time, or that is the only open one that is not the batch."""
    shape = value.shape or ()
    opened = [
        axis for axis, size in enumerate(shape) if not isinstance(size, int) and not _is_named(value, axis, _BATCH)
    ]
    named = [axis for axis in opened if _is_named(value, axis, _TIME)]
    for option in (named, opened):
        if len(option) == 1:
            return option[0]
    return None


def _moves_by_frames(graph: Graph, time: dict[Value, int], fed: frozenset[Value]) -> bool:
    return _first_fault(graph, _with_stride(graph, dict(time), fed, False)) is None


def _with_stride(graph: Graph, time: dict[Value, int], fed: frozenset[Value], opened: bool) -> Analysis:
    """With the smallest stride for which all nodes give whole frames."""
    stride = 1
    while True:
        try:
            return _analyse(graph, time, fed, stride, opened)
        except NeedsStride as needed:
            stride *= needed.factor
            if stride > _LONGEST_STRIDE:
                raise ModelError(f'carry="internal": a step would have to take {stride} frames: {_ADVICE}') from None


def _written(graph: Graph, time: Mapping[Value, int], analysis: Analysis) -> Streamed:
    delays, outputs = {}, {}
    is_fixed = isinstance(analysis.frames, int)
    for value in graph.outputs:
        along = analysis.of(value)
        if along.axis is None:
            continue
        if isinstance(along.length, int):
            outputs[value.name] = TimedOutput(along.axis, along.length)
            continue
        pace = Pace.of(along.length)
        delays[value] = max(along.earliest, -pace.extra)
        outputs[value.name] = TimedOutput(along.axis, pace.rate, delays[value], pace.extra)
    needed = needed_frames(graph, analysis.along, analysis.moves)
    lasts = {node for node in graph.nodes for value in node.outputs if value in needed and analysis.of(value).last}
    rest = max((analysis.moves[node].rest for node in lasts if node in analysis.moves), default=0)
    flushes = rest > 0 or any(output.delay + output.extra > 0 for output in outputs.values())
    writer = Writer(graph, analysis.along, analysis.facts, time, analysis.stride, needed, flushes)
    for value, array in graph.constants.items():
        writer.constant_of(value, array)
    for node in graph.nodes:
        if not any(value in needed for value in node.outputs if value is not None):
            continue
        try:
            analysis.moves[node].write(writer)
        except BreaksTime as broken:
            raise _refusal(Fault(node.label, node.op, broken.reason)) from None
    step = writer.finish(graph, delays)
    stride = int(str(analysis.frames)) if is_fixed else analysis.stride
    inputs = {value.name: axis for value, axis in time.items()}
    field = None if is_fixed else receptive_field(graph, analysis.along, analysis.moves, analysis.walking)
    return Streamed(step, Timing(stride, inputs, outputs, step.end, rest=rest), field)


def data_dependent(graph: Graph) -> set[Value]:
    """Values that depend on elements of the inputs, not only on their sizes."""
    found = set(graph.inputs)
    for node in graph.nodes:
        only_sizes = not node.domain and node.op in SIZES
        read = node.inputs[:1] if node.op in ("ExpectShape", "CastLike") else node.inputs
        if not only_sizes and any(value in found for value in read):
            found.update(output for output in node.outputs if output is not None)
    return found


def _has_hidden(node: Node, fed: frozenset[Value]) -> bool:
    return any(state.init not in fed for state in Scan.of(node).states)


def _find_walks(graph: Graph, hidden: list[Node], fed: frozenset[Value]) -> dict[Value, dict[int, list[Node]]]:
    """By input and axis: the loops with hidden states that walk along it."""
    found: dict[Value, dict[int, list[Node]]] = {}
    for value in graph.inputs:
        if value.container or value.shape is None:
            continue
        for axis in range(len(value.shape)):
            analysis = _trial(graph, _with_same_names(graph, {value: axis}), fed)
            walking = [node for node in analysis.walking if node in hidden]
            if walking:
                found.setdefault(value, {})[axis] = walking
    return found


def _trial(graph: Graph, time: dict[Value, int], fed: frozenset[Value]) -> Analysis:
    stride = 1
    while True:
        try:
            return Analysis(graph, time, fed, stride)
        except NeedsStride as needed:
            stride *= needed.factor
            if stride > _LONGEST_STRIDE:
                return Analysis(graph, {}, fed)


def _choose(value: Value, axes: Mapping[int, list[Node]]) -> int:
    """Which of the axes of an input that loops walk along is time."""
    assert value.shape is not None
    opened = [axis for axis in axes if not isinstance(value.shape[axis], int)]
    named = [axis for axis in opened if _is_named(value, axis, _TIME)]
    chosen = next((option for option in (list(axes), opened, named) if len(option) == 1), None)
    if chosen is None:
        loops = " and ".join(f"{nodes[0].label!r} along axis {axis}" for axis, nodes in sorted(axes.items()))
        raise ModelError(
            f'carry="internal": loops walk along different axes of the input {value.name!r} ({loops}), and which of '
            f"them is time is not clear: {_ADVICE}",
            node=axes[min(axes)][0].label,
            op="Scan",
        )
    axis = chosen[0]
    others = [other for other, size in enumerate(value.shape) if other != axis and not isinstance(size, int)]
    is_fixed = isinstance(value.shape[axis], int)
    doubts = [other for other in others if not _is_named(value, other, _BATCH)] if is_fixed else []
    if not is_fixed and not _is_named(value, axis, _TIME):
        doubts = [other for other in others if _is_named(value, other, _TIME)]
    if doubts:
        size = f", of {value.shape[axis]} elements," if is_fixed else ""
        raise ModelError(
            f'carry="internal": it walks along axis {axis} of the input {value.name!r}{size} while another axis is '
            f"open ({value.shape[doubts[0]] or '?'}); which of them is time is not clear: {_ADVICE}",
            node=axes[axis][0].label,
            op="Scan",
        )
    return axis


def _is_named(value: Value, axis: int, pattern: re.Pattern[str]) -> bool:
    """Whether the model gives the size of an axis of an input such a name: one made of that of the input says
    nothing."""
    size = (value.shape or ())[axis]
    is_made_up = str(size).rstrip("_") == f"{value.name}.{axis}".rstrip("_")
    return isinstance(size, SymbolicDim) and not is_made_up and pattern.search(str(size)) is not None


def _analyse(graph: Graph, time: dict[Value, int], fed: frozenset[Value], stride: int, opened: bool) -> Analysis:
    """With time in the inputs where loops do not find it: where its size has the same name, or where it fits."""
    time.update(_with_same_names(graph, time))
    sizes = {value.shape[axis] for value, axis in time.items() if value.shape is not None}
    options: list[list[tuple[Value, int | None]]] = []
    for value in graph.inputs:
        if value in time or value.container or not value.shape:
            continue
        fitting = [axis for axis, size in enumerate(value.shape) if size is None or size in sizes]
        options.append([(value, axis) for axis in (None, *fitting)])
    first = None
    for choice in islice(product(*options), _MOST_CHOICES):
        chosen = {**time, **{value: axis for value, axis in choice if axis is not None}}
        analysis = Analysis(graph, chosen, fed, stride, opened)
        if _first_fault(graph, analysis) is None:
            time.update(chosen)
            return analysis
        first = first or analysis
    assert first is not None
    return first


def _with_same_names(graph: Graph, time: Mapping[Value, int]) -> dict[Value, int]:
    """With the axes of other inputs whose size has the name that the size of a given axis has."""
    found = dict(time)
    sizes = {value.shape[axis] for value, axis in time.items() if value.shape is not None}
    for value in graph.inputs:
        same = [axis for axis, size in enumerate(value.shape or ()) if isinstance(size, SymbolicDim) and size in sizes]
        if len(same) == 1 and not value.container:
            found.setdefault(value, same[0])
    return found


def _first_fault(graph: Graph, analysis: Analysis) -> Fault | None:
    for value in graph.outputs:
        along = analysis.of(value)
        if along.fault is not None:
            return along.fault
        reason = _reason_against_output(along, value, analysis)
        if reason is not None:
            node = graph.producers().get(value)
            return Fault(node.label if node else value.name, node.op if node else "", reason)
    return None


def _reason_against_output(along: Along, value: Value, analysis: Analysis) -> str | None:
    if along.head is not None:
        return f"the output {value.name!r} is the first {along.head} frames of a sequence"
    if along.counts:
        return f"the output {value.name!r} is the number of frames of a step"
    if along.axis is None or along.is_pure:
        return None
    shape = analysis.facts.shape(value)
    if along.uniform and shape is not None and shape[along.axis] == along.length:
        return None
    return f"an axis of the output {value.name!r} counts frames and others together"


def _without_walk(graph: Graph, hidden: list[Node], fed: frozenset[Value]) -> ModelError:
    """Why no loop walks along an axis: what stops it from being a plain walk, for the axis that tells most."""
    labels = {node.label for node in hidden}
    faults = []
    for value in graph.inputs:
        for axis in range(len(value.shape or ())):
            analysis = _trial(graph, _with_same_names(graph, {value: axis}), fed)
            is_open = not isinstance((value.shape or ())[axis], int)
            faults += [
                (along.fault.node in labels, is_open, along.fault) for along in analysis.along.values() if along.fault
            ]
    if faults:
        return _refusal(max(faults, key=lambda item: item[:2])[2])
    unknown = [value.name for value in graph.inputs if value.shape is None]
    reason = (
        f"the rank of the input {unknown[0]!r} is not declared" if unknown else "it walks along no axis of an input"
    )
    return _refusal(Fault(hidden[0].label, "Scan", reason))


def _refusal(fault: Fault) -> ModelError:
    return ModelError(
        f'carry="internal": {fault.reason}; by frames the model would give something else: {_ADVICE}',
        node=fault.node,
        op=fault.op or None,
    )
