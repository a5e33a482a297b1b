"""What a loop reads some frames before that of its step, it remembers.

Requires: facts from infer_shapes.
Ensures: a Gather in a Scan's body that picks from a tensor with one element for each step that of the step, or the one
a known number of places before it, is gone; states hand on the elements of the last steps. Before there are so many, it
picks the first element, or its result is not used: the index is cut by Max, Clip, Relu or Where, or a Where takes
something else. So a stream needs no other frames than those of its steps.
Declines: "before the first frame it reads the last one", "it reads further back than MOST_FRAMES".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from webrnn.ir import DType, Graph, Node, Scan, Value, is_plain

from .base import Context, PassResult
from .frames import FrameRead, LoopOverFrames, element_of, number_of
from .iterations import Iterations
from .sequence_forms import Rearranging
from .step_conditions import Conditions
from .sums_to_loops import blank_frame

MOST_FRAMES = 32


class ReadsBefore(LoopOverFrames):
    def rewrite_loop(self, graph: Graph, node: Node, scan: Scan, around: Rearranging, result: PassResult) -> None:
        context = around.context
        for inner in list(scan.body.nodes):
            read = _find(graph, scan, inner, context)
            if read is None:
                continue
            if read.back > MOST_FRAMES:
                result.declines_at(inner, "it reads further back than MOST_FRAMES")
            elif not _is_known(scan, read, Conditions(graph, scan, context)):
                result.declines_at(inner, "before the first frame it reads the last one")
            elif result.fires(f"{read.source.name} of {node.label}"):
                _remember(scan, read, context, around)


@dataclass(frozen=True)
class _Read(FrameRead):
    """The element `back` places before that of the step; the first one in steps before number `first_from`."""

    back: int
    first_from: int | None
    """None if the place is never cut."""


def _find(graph: Graph, scan: Scan, node: Node, context: Context) -> _Read | None:
    read = FrameRead.of(scan, node, context)
    found = None if read is None else _places_back(graph, scan, read.index, context)
    if read is None or found is None or found[0] < 0:
        return None
    return _Read(node, read.source, read.axis, read.keeps_axis, *found)


def _places_back(graph: Graph, scan: Scan, index: Value | None, context: Context) -> tuple[int, int | None] | None:
    """How far before the number of the step a place is, and up to which step it is the first instead."""
    numbers, conditions = Iterations(graph, scan, context.facts), Conditions(graph, scan, context)
    plain = _back(numbers, index)
    if plain is not None:
        return plain, None
    node = maker_of_index(scan, index)
    if node is None:
        return None
    if is_plain(node, "Max") and len(node.inputs) == 2:
        for place, least in (node.inputs, node.inputs[::-1]):
            back = _back(numbers, place)
            if back is not None and _is_zero(numbers, least):
                return back, back
    if is_plain(node, "Relu") or (is_plain(node, "Clip") and len(node.inputs) == 2):
        back = _back(numbers, node.inputs[0])
        if back is not None and (node.op == "Relu" or _is_zero(numbers, node.inputs[1])):
            return back, back
    if is_plain(node, "Where"):
        condition, first, second = node.inputs
        for positive, place, least in ((True, first, second), (False, second, first)):
            back, start = _back(numbers, place), conditions.holds_from(condition, positive)
            if back is not None and start is not None and start >= back and _is_zero(numbers, least):
                return back, start
    return None


def maker_of_index(scan: Scan, index: Value | None) -> Node | None:
    """What computes a place, without what only gives it another shape or type."""
    producers = scan.body.producers()
    node = None if index is None else producers.get(index)
    while node is not None and _hands_on(node):
        node = None if node.inputs[0] is None else producers.get(node.inputs[0])
    return node


def _hands_on(node: Node) -> bool:
    if is_plain(node, "Cast"):
        return node.attrs["to"] in (DType.INT64, DType.INT32)
    return is_plain(node, "Identity", "Unsqueeze", "Squeeze", "Reshape")


def _back(numbers: Iterations, place: Value | None) -> int | None:
    found = numbers.affine(place)
    return -found.offset if found is not None and found.factor == 1 and isinstance(found.offset, int) else None


def _is_zero(numbers: Iterations, value: Value | None) -> bool:
    found = numbers.affine(value)
    return found is not None and found.factor == 0 and found.offset == 0


def _is_known(scan: Scan, read: _Read, conditions: Conditions) -> bool:
    """Whether it never reads frames before the first, or nothing depends on them."""
    return read.back == 0 or read.first_from is not None or _is_unused(scan, read.node, read.back, conditions)


def _is_unused(scan: Scan, node: Node, steps: int, conditions: Conditions) -> bool:
    """Whether nothing depends on what a node gives in so many first steps: a Where takes something else."""
    results = {state.body_out for state in scan.states} | {trace.element for trace in scan.traces} | {scan.body_cond}
    changing = {value for value in node.outputs if value is not None}
    for reader in scan.body.nodes:
        if changing.isdisjoint(reader.inputs):
            continue
        if is_plain(reader, "Where"):
            condition, first, second = reader.inputs
            guarded = (first not in changing or _is_kept_out(conditions, condition, True, steps)) and (
                second not in changing or _is_kept_out(conditions, condition, False, steps)
            )
            if guarded and condition not in changing:
                continue
        changing.update(value for value in reader.outputs if value is not None)
    return results.isdisjoint(changing)


def _is_kept_out(conditions: Conditions, condition: Value | None, positive: bool, steps: int) -> bool:
    start = conditions.holds_from(condition, positive)
    return start is not None and start >= steps


def _remember(scan: Scan, read: _Read, context: Context, around: Rearranging) -> None:
    inside = Rearranging(scan.body, context)
    frame = element_of(scan, read.source, read.axis, inside)
    now = frame
    for _ in range(read.back):
        now = _a_step_later(scan, now, read, inside, around)
    if read.first_from is not None:
        number = number_of(scan, inside)
        first = frame
        if read.first_from > 1:
            first = _latched(scan, frame, read, number, inside, around)
        is_early = inside.op("Less", number, inside.scalar(read.first_from), hint="is_early")
        now = inside.op("Where", is_early, first, now, hint=f"{frame.name}_before")
    read.replace(scan, now, inside)


def _a_step_later(scan: Scan, value: Value, read: _Read, inside: Rearranging, around: Rearranging) -> Value:
    """What a value was in the step before."""
    for state in scan.states:
        if state.body_out is value and state.spec.is_plain and state.body_in[0].name.startswith(_HINT):
            return state.body_in[0]
    before = inside.new.value(f"{_HINT}{value.name}")
    fact = inside.facts.of(value)
    before.dtype, before.shape = fact.dtype, fact.shape
    inside.facts.set(before, fact)
    scan.add_state(_blank(read, inside, around), before, value, None)
    return before


_HINT = "before_"


def _latched(scan: Scan, frame: Value, read: _Read, number: Value, inside: Rearranging, around: Rearranging) -> Value:
    """The first element, in all steps."""
    kept = inside.new.value(f"first_{frame.name}")
    fact = inside.facts.of(frame)
    kept.dtype, kept.shape = fact.dtype, fact.shape
    inside.facts.set(kept, fact)
    is_first = inside.op("Equal", number, inside.scalar(0), hint="is_first")
    now = inside.op("Where", is_first, frame, kept, hint=f"first_{frame.name}")
    scan.add_state(_blank(read, inside, around), kept, now, None)
    return now


def _blank(read: _Read, inside: Rearranging, around: Rearranging) -> Value:
    fact = inside.facts.of(read.source)
    assert fact.dtype is not None
    assert fact.shape is not None
    return blank_frame(around, read.source, read.axis, len(fact.shape), np.zeros(1, fact.dtype.array_type))
