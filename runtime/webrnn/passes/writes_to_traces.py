"""A tensor of which each step writes the next place is a trace.

Requires: facts from infer_shapes (sizes, and how many steps there are).
Ensures: a state of a Scan whose next value is a ScatterND or a ScatterElements of itself that writes one slice along
an axis, at the number of the iteration or that many places from a known one, in either direction, and that nothing else
in the body reads, is no state any more. What the steps write is a trace; behind the loop the last value is that, with
what is left of the first value around it.
Declines: "the loop reads what it has written so far", "it is not known which places its steps write".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from webrnn.ir import Dim, Graph, Node, Scan, State, TraceSpec, Value, is_plain
from webrnn.ir.dims import is_nonnegative
from webrnn.shapes.infer import trip_count

from .base import Context, PassResult, ScanPass
from .grown_states_to_traces import add_trace, is_read_elsewhere
from .iterations import Affine, Iterations
from .sequence_forms import Rearranging


class WritesToTraces(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        behind, before = Rearranging(graph, context), result.rewrites
        for state in list(scan.states):
            scatter = scan.body.producers().get(state.body_out)
            if scatter is None or not is_plain(scatter, "ScatterND", "ScatterElements"):
                continue
            if scatter.inputs[0] is not state.body_in[0] or not state.spec.is_plain:
                continue
            write = _find(graph, scan, state, scatter, context)
            if is_read_elsewhere(scan, state, scatter) or scatter.inputs.count(state.body_in[0]) != 1:
                result.declines_at(node, "the loop reads what it has written so far")
            elif write is None:
                result.declines_at(node, "it is not known which places its steps write")
            elif result.fires(f"{state.body_in[0].name} of {node.label}"):
                _make_trace(scan, state, scatter, write, context, behind)
        return [scan.to_node(), *behind.nodes] if result.rewrites > before else None


@dataclass(frozen=True)
class _Write:
    """Slices along an axis, each one place long, from `first` on; in reverse that is where the last step writes."""

    axis: int
    first: int
    reverse: bool
    rest: Dim
    """How many places there are behind them."""
    has_axis: bool
    """Whether what is written has the axis, with one place."""


def _find(graph: Graph, scan: Scan, state: State, scatter: Node, context: Context) -> _Write | None:
    facts, (_, indices, updates) = context.facts, scatter.inputs
    whole, new, steps = facts.shape(state.init), facts.shape(updates), trip_count(scan, facts)
    if not whole or None in whole or new is None or None in new or steps is None:
        return None
    if scatter.attrs.get("reduction", "none") != "none":
        return None
    if scatter.op == "ScatterND":
        axis, place = 0, indices
        shape = facts.shape(indices)
        if shape not in ((1,), (1, 1)) or new != (*(1,) * (len(shape) - 1), *whole[1:]):
            return None
        has_axis = len(shape) == 2
    else:
        axis, place, has_axis = scatter.attrs.get("axis", 0) % len(whole), _repeated(scan, indices), True
        if new != (*whole[:axis], 1, *whole[axis + 1 :]) or facts.shape(indices) != new:
            return None
    found = Iterations(graph, scan, facts).affine(place)
    if found is None or found.factor not in (1, -1):
        return None
    return _placed(found, whole[axis], steps, axis, has_axis)


def _placed(place: Affine, size: Dim | None, steps: Dim, axis: int, has_axis: bool) -> _Write | None:
    first = place.offset if place.factor == 1 else place.offset - (steps - 1)
    if size is None or not isinstance(first, int) or first < 0 or not is_nonnegative(size - steps - first):
        return None
    return _Write(axis, first, place.factor == -1, size - steps - first, has_axis)


def _repeated(scan: Scan, value: Value | None) -> Value | None:
    """The number that an index tensor repeats."""
    producers = scan.body.producers()
    while value in producers and is_plain(producers[value], "Expand", "Identity"):
        value = producers[value].inputs[0]
    return value


def _make_trace(scan: Scan, state: State, scatter: Node, write: _Write, context: Context, behind: Rearranging) -> None:
    element = scatter.inputs[2]
    assert element is not None
    inside = Rearranging(scan.body, context)
    if write.has_axis:
        element = inside.op("Squeeze", element, inside.new.ints(write.axis))
    place = scan.body.nodes.index(scatter)
    scan.body.nodes[place : place + 1] = inside.nodes
    scan.states.remove(state)
    if state.final is None:
        return
    parts = [add_trace(scan, element, TraceSpec(write.axis, write.reverse), context, behind)]
    axes, end = behind.new.ints(write.axis), behind.new.ints(np.iinfo(np.int64).max)
    if write.first:
        first = behind.new.ints(write.first)
        parts.insert(0, behind.op("Slice", state.init, behind.new.ints(0), first, axes))
    if write.rest != 0:
        written = behind.op("Add", behind.sizes(parts[-1], write.axis, write.axis + 1), behind.new.ints(write.first))
        parts.append(behind.op("Slice", state.init, written, end, axes))
    if len(parts) == 1:
        behind.op("Identity", parts[0], output=state.final)
    else:
        behind.op("Concat", *parts, output=state.final, axis=write.axis)
