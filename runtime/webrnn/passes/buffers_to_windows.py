"""A loop that keeps the last elements and gives them with the new ones is windows of a sequence.

Requires: facts from infer_shapes.
Ensures: a Scan whose state is what the steps before left over of a buffer, and whose traces are the whole buffer
(`frame = Concat(state, element)`, next `frame[new:]`), is a Gather of all windows at once. So a stream keeps the frames
that a step still needs, wherever the loop starts from.
Declines: "its buffer is not along the last axis", "how much its buffer moves on is not known".
"""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Graph, Node, Scan, TraceSpec, is_plain
from webrnn.shapes.facts import Fact

from .base import Context, PassResult, ScanPass
from .sequence_forms import Rearranging

_TO_THE_END = 2**31 - 1


class BuffersToWindows(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        buffer = _buffer(graph, scan)
        if buffer is None:
            return None
        joined, cut = buffer
        element = context.facts.shape(scan.sequences[0].element)
        rank = None if element is None else len(element)
        if rank is None or rank < 1 or joined.attrs["axis"] % rank != rank - 1:
            result.declines_at(node, "its buffer is not along the last axis")
            return None
        moves_on = None if element is None else element[-1]
        facts = [context.facts.of(value) for value in cut.inputs[1:]]
        if not isinstance(moves_on, int) or not _leaves_out(facts, moves_on, rank):
            result.declines_at(node, "how much its buffer moves on is not known")
            return None
        return _windows(graph, scan, rank, moves_on, context) if result.fires(node.label) else None


def _buffer(graph: Graph, scan: Scan) -> tuple[Node, Node] | None:
    """The Concat and the Slice that are all that a loop does."""
    if len(scan.states) != 1 or len(scan.sequences) != 1 or len(scan.body.nodes) != 2:
        return None
    (state,), (item,), (joined, cut) = scan.states, scan.sequences, scan.body.nodes
    is_bounded = scan.cond is not None or scan.body_cond is not None or scan.n_steps is not None
    if is_bounded or item.spec.reverse or not state.spec.is_plain or _is_read(graph, scan):
        return None
    if not is_plain(joined, "Concat") or joined.inputs != [state.body_in[0], item.element]:
        return None
    frame = joined.outputs[0]
    if not is_plain(cut, "Slice") or cut.inputs[0] is not frame or cut.outputs[0] is not state.body_out:
        return None
    whole = [trace.element is frame and trace.spec == TraceSpec(trace.spec.axis) for trace in scan.traces]
    return (joined, cut) if all(whole) else None


def _is_read(graph: Graph, scan: Scan) -> bool:
    """Whether somebody reads what is left over at the end."""
    final = scan.states[0].final
    return final is not None and (final in graph.outputs or any(final in node.inputs for node in graph.nodes))


def _leaves_out(facts: Sequence[Fact], count: int, rank: int) -> bool:
    """Whether the operands of a Slice leave out so many elements at the front of the last axis, and nothing else."""
    starts, ends, axes = (fact.ints for fact in [*facts, Fact(), Fact()][:3])
    steps = facts[3].ints if len(facts) > 3 else (1,)
    is_last = axes is not None and len(axes) == 1 and axes[0] % rank == rank - 1
    return starts == (count,) and ends is not None and ends[0] >= _TO_THE_END and is_last and steps == (1,)


def _windows(graph: Graph, scan: Scan, rank: int, moves_on: int, context: Context) -> list[Node]:
    around = Rearranging(graph, context)
    new, (state,), (item,) = around.new, scan.states, scan.sequences
    step = item.spec.axis % (rank + 1)
    order = [axis for axis in range(rank + 1) if axis != step]
    order.insert(rank - 1, step)
    turned = item.whole if order == sorted(order) else around.op("Transpose", item.whole, perm=order)
    flat = around.op("Reshape", turned, new.ints(*[0] * (rank - 1), -1))
    elements = around.op("Concat", state.init, flat, axis=rank - 1)
    count = around.op("Squeeze", around.sizes(item.whole, step, step + 1), new.ints(0))
    left = around.op("Squeeze", around.sizes(state.init, rank - 1, rank), new.ints(0))
    begins = around.op("Range", around.scalar(0), count, around.scalar(1))
    begins = around.op("Unsqueeze", around.op("Mul", begins, around.scalar(moves_on)), new.ints(1))
    offsets = around.op("Range", around.scalar(0), around.op("Add", left, around.scalar(moves_on)), around.scalar(1))
    windows = around.op("Gather", elements, around.op("Add", begins, offsets), axis=rank - 1)
    for trace in scan.traces:
        if trace.whole is None:
            continue
        place = trace.spec.axis % (rank + 1)
        perm = [axis for axis in range(rank + 1) if axis != rank - 1]
        perm.insert(place, rank - 1)
        if perm == sorted(perm):
            around.op("Identity", windows, output=trace.whole)
        else:
            around.op("Transpose", windows, output=trace.whole, perm=perm)
    return around.nodes
