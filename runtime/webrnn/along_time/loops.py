"""Loops: those that walk along time, whose states are carried, and those that run inside each frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from webrnn.ir import Dim, Invariant, Scan, SequenceInput, State, SymbolicDim, Value, is_plain
from webrnn.ir.dims import quotient
from webrnn.shapes.facts import Facts
from webrnn.shapes.infer import length_of

from .kinds import LAST, TIMELESS, Along, BreaksTime, join

if TYPE_CHECKING:
    from .analysis import Analysis

_MOST_ROUNDS = 4
"""States stand still after the second: what they are can only become more definite once."""


def walks_along_time(scan: Scan, sequences: Sequence[Along], steps: Along | None, facts: Facts, frames: Dim) -> bool:
    """Whether a step of a loop is a frame."""
    if any(_axis(item.whole, item.spec.axis, facts) == along.axis for item, along in _pairs(scan, sequences)):
        return True
    return (
        steps is not None
        and isinstance(frames, SymbolicDim)
        and not any(along.axis is not None for along in sequences)
        and steps_of(scan, facts) == frames
    )


def steps_of(scan: Scan, facts: Facts) -> Dim | None:
    """How many steps a loop is told to take, given that it takes some."""
    content = facts.of(scan.n_steps).content
    return content[0] if content else None


def _pairs(scan: Scan, sequences: Sequence[Along]) -> Iterator[tuple[SequenceInput, Along]]:
    return ((item, along) for item, along in zip(scan.sequences, sequences, strict=True) if along.axis is not None)


def _axis(value: Value, axis: int, facts: Facts) -> int:
    rank = facts.of(value).rank
    return axis if axis >= 0 or rank is None else axis + rank


def time_loop(scan: Scan, given: Mapping[Value | None, Along], facts: Facts, frames: Dim) -> Sequence[Along]:
    """A plain walk forward over the frames, which goes on in the next step from the states that this one ends with."""
    place = min((trace.spec.axis for trace in scan.traces), default=None)

    refuse = partial(BreaksTime, axis=place)
    if any(item.spec.reverse for item in scan.sequences) or any(trace.spec.reverse for trace in scan.traces):
        raise refuse("it runs backwards in time and needs the whole sequence")
    if scan.cond is not None or scan.body_cond is not None:
        raise refuse("a condition decides when it ends, so it may stop before the last frame")
    if scan.iteration is not None and _is_read(scan, scan.iteration):
        raise refuse("it uses the number of the step, which starts anew with each step of a stream")
    if scan.n_steps is not None and steps_of(scan, facts) != frames:
        raise refuse("it is not known to take as many steps as there are frames")
    for item in scan.sequences:
        along, name = given[item.whole], item.whole.name
        walked = _axis(item.whole, item.spec.axis, facts)
        if along.is_timeless:
            raise refuse(f"it walks over {name!r}, a fixed sequence, beside the frames")
        counts_frames = along.is_pure or (along.uniform and length_of(item.whole, walked, facts) == frames)
        if along.axis != walked or not counts_frames:
            raise refuse(f"it walks over an axis of {name!r} that does not count frames, and over frames as well")
    for invariant in scan.invariants:
        if not given[invariant.outer].is_timeless:
            raise refuse(_reason_against_seeing(scan, invariant, given[invariant.outer]))
    for state in scan.states:
        reason = _reason_against_start(state, given)
        if reason is not None:
            raise refuse(reason)
    for trace in scan.traces:
        if trace.spec.keep is not None or trace.spec.length is not None:
            raise refuse("its results are not one for each frame")
    finals = [LAST] * len(scan.states)
    return [*finals, *(Along(_trace_axis(trace.spec.axis, trace.whole, facts)) for trace in scan.traces)]


def _reason_against_seeing(scan: Scan, invariant: Invariant, along: Along) -> str:
    """Why no step may see what depends on all frames."""
    name = invariant.outer.name
    if along.counts:
        return f"each of its steps uses the number of frames ({name!r}), which a stream does not know before the end"
    readers = [node for node in scan.body.nodes if invariant.inner in node.inputs]
    if readers and all(is_plain(node, "Gather", "Slice") for node in readers):
        return (
            f"it picks frames of {name!r} by numbers that are not known to be that of its step, or a fixed number more "
            "or less, inside the sequence (the frame before the first is the last frame)"
        )
    return f"each of its steps sees all of {name!r}, which depends on frames"


def _reason_against_start(state: State, given: Mapping[Value | None, Along]) -> str | None:
    name, init = state.body_in[0].name, state.init
    if not given[init].is_timeless:
        return f"what its state {name!r} starts from depends on frames, or on their number"
    return None


def _is_read(scan: Scan, value: Value) -> bool:
    return value in scan.body.outputs or any(value in node.inputs for node in scan.body.nodes)


def _trace_axis(axis: int, whole: Value | None, facts: Facts) -> int:
    rank = facts.of(whole).rank
    if axis < 0 and rank is None:
        raise BreaksTime("the rank of its result is not known before it runs")
    return axis if axis >= 0 or rank is None else axis + rank


def inner_loop(analysis: Analysis, scan: Scan, given: Mapping[Value | None, Along]) -> Sequence[Along]:
    """A loop that runs anew for each frame: over another axis, or a number of times. No state of it is carried."""
    for operand in (scan.n_steps, scan.cond):
        if not given.get(operand, TIMELESS).is_timeless:
            raise BreaksTime(
                "it is no plain walk over the frames, and how many steps it takes depends on them or on their number"
            )
    along = analysis.along
    if scan.iteration is not None:
        along[scan.iteration] = TIMELESS
    for invariant in scan.invariants:
        along[invariant.inner] = given[invariant.outer]
    for item in scan.sequences:
        along[item.element] = _without(given[item.whole], _axis(item.whole, item.spec.axis, analysis.facts))
    states = [given[state.init] if state.spec.is_plain else _without(given[state.init], 0) for state in scan.states]
    for _ in range(_MOST_ROUNDS):
        for state, found in zip(scan.states, states, strict=True):
            along.update((value, found) for value in state.body_in)
        analysis.visit(scan.body)
        results = _results(analysis, scan)
        after = results[scan.body_cond is not None :]
        joined = [
            _joined(analysis, state, before, new)
            for state, before, new in zip(scan.states, states, after, strict=False)
        ]
        if joined == states:
            break
        states = joined
    else:
        raise BreaksTime("how its states depend on frames cannot be said")
    if scan.body_cond is not None and not results[0].is_timeless:
        raise BreaksTime("it is no plain walk over the frames, and when it ends depends on them or on their number")
    finals = [
        found if state.spec.is_plain else _with(found, 0) for state, found in zip(scan.states, states, strict=True)
    ]
    traces = [
        _with(found, _trace_axis(trace.spec.axis, trace.whole, analysis.facts))
        for trace, found in zip(scan.traces, after[len(states) :], strict=True)
    ]
    return [*finals, *traces]


def _results(analysis: Analysis, scan: Scan) -> Sequence[Along]:
    try:
        return analysis.outputs_of(scan.body)
    except BreaksTime as broken:
        if scan.body_cond is None:
            raise
        raise BreaksTime(f"a condition decides when it ends, and {broken.reason}", broken.axis) from None


def _joined(analysis: Analysis, state: State, before: Along, after: Along) -> Along:
    if before.is_timeless and after.axis is not None:
        before = _as_frames(analysis, state, after)
    found = join(before, after)
    if found is None:
        name = state.body_in[0].name
        raise BreaksTime(f"its state {name!r} starts from what depends on frames in another way than what follows")
    return found


def _as_frames(analysis: Analysis, state: State, after: Along) -> Along:
    """A constant that is the same for all frames, where each frame has its own."""
    array = analysis.constants.get(state.init)
    axis = after.axis
    if array is None or axis is None or not state.spec.is_plain or axis >= array.ndim:
        return TIMELESS
    fits = quotient(array.shape[axis], analysis.frames) is not None
    is_same = fits and bool((array == array.take([0], axis)).all())
    return Along(axis, uniform=True) if is_same else TIMELESS


def _without(along: Along, axis: int) -> Along:
    """What is left when one of the other axes is taken away."""
    return along if along.axis is None or along.axis < axis else along.at(along.axis - 1)


def _with(along: Along, axis: int) -> Along:
    """The same with a new axis."""
    return along if along.axis is None or along.axis < axis else along.at(along.axis + 1)
