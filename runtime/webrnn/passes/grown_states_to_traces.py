"""A state to which each step appends is what it starts from and a trace.

Requires: facts from infer_shapes.
Ensures: a state of a Scan whose next value is a Concat of itself and tensors of one shape, in front of them or behind
them, and that nothing else in the body reads, is no state any more. What the steps append is a trace (in reverse if it
is put in front), and behind the loop the last value is a Concat of the first one and that.
Declines: "the loop reads what it has appended so far", "the shape of what it appends may change from step to step".
"""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Graph, Node, Scan, State, Trace, TraceSpec, Value, is_plain
from webrnn.shapes.facts import Fact
from webrnn.shapes.infer import trip_count

from .base import Context, PassResult, ScanPass
from .sequence_forms import Rearranging


class GrownStatesToTraces(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        behind, before = Rearranging(graph, context), result.rewrites
        for state in list(scan.states):
            concat = _concat(scan, state)
            if concat is None:
                continue
            reason = _reason_against(scan, state, concat, context)
            if reason is not None:
                result.declines_at(node, reason)
            elif result.fires(f"{state.body_in[0].name} of {node.label}"):
                _make_trace(scan, state, concat, context, behind)
        return [scan.to_node(), *behind.nodes] if result.rewrites > before else None


def _concat(scan: Scan, state: State) -> Node | None:
    node = scan.body.producers().get(state.body_out)
    if node is None or not is_plain(node, "Concat") or not state.spec.is_plain or len(node.inputs) < 2:
        return None
    grows = node.inputs.count(state.body_in[0]) == 1 and state.body_in[0] in (node.inputs[0], node.inputs[-1])
    return node if grows else None


def _reason_against(scan: Scan, state: State, concat: Node, context: Context) -> str | None:
    if is_read_elsewhere(scan, state, concat):
        return "the loop reads what it has appended so far"
    for value in concat.inputs:
        fact = context.facts.of(value)
        if value is not state.body_in[0] and (fact.dtype is None or fact.shape is None or None in fact.shape):
            return "the shape of what it appends may change from step to step"
    return None


def is_read_elsewhere(scan: Scan, state: State, update: Node) -> bool:
    """Whether anything but the node that makes its next value reads a state, or anything but the next step that."""
    both = (state.body_in[0], state.body_out)
    inside = any(value in both for node in scan.body.nodes if node is not update for value in node.inputs)
    others = [other.body_out for other in scan.states if other is not state]
    return inside or any(
        value in both for value in (*others, *(trace.element for trace in scan.traces), scan.body_cond)
    )


def _make_trace(scan: Scan, state: State, concat: Node, context: Context, behind: Rearranging) -> None:
    added = [value for value in concat.inputs if value is not None and value is not state.body_in[0]]
    in_front = concat.inputs[-1] is state.body_in[0]
    shape = context.facts.shape(added[0])
    assert shape is not None
    axis = concat.attrs["axis"] % len(shape)
    inside = Rearranging(scan.body, context)
    element = added[0] if len(added) == 1 else inside.op("Concat", *added, axis=axis)
    place = scan.body.nodes.index(concat)
    scan.body.nodes[place : place + 1] = inside.nodes
    scan.states.remove(state)
    if state.final is None:
        return
    whole = add_trace(scan, element, TraceSpec(axis, in_front), context, behind)
    merged = behind.merged(whole, axis)
    first = context.facts.shape(state.init)
    if first is not None and first[axis] == 0:
        behind.op("Identity", merged, output=state.final)
        return
    parts = [merged, state.init] if in_front else [state.init, merged]
    behind.op("Concat", *parts, output=state.final, axis=axis)


def add_trace(scan: Scan, element: Value, spec: TraceSpec, context: Context, behind: Rearranging) -> Value:
    """A new trace, with what is known of it; it is not longer than the loop takes steps."""
    whole = behind.new.value(f"{element.name}_trace")
    fact, steps = context.facts.of(element), trip_count(scan, context.facts)
    shape = None if fact.shape is None else (*fact.shape[: spec.axis], steps, *fact.shape[spec.axis :])
    context.facts.set(whole, Fact(fact.dtype, shape))
    scan.traces.append(Trace(spec, element, whole))
    return whole
