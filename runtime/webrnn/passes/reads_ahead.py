"""What a loop reads some frames behind that of its step, or the last frame, is a sequence.

Requires: facts from infer_shapes.
Ensures: a Gather in a Scan's body that picks from a tensor with one element for each step the one a known number of
places behind that of the step, and the last one where there are not so many, is gone. The tensor is walked over from
that place on, with its last element repeated behind its end: a stream is so many frames late.
Declines: nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Graph, Node, Scan, Value, is_plain
from webrnn.shapes.infer import length_of, trip_count

from .base import Context, PassResult, ScanPass
from .iterations import Iterations
from .reads_before import maker_of_index
from .rewriting import replace_in_body
from .sequence_forms import Rearranging
from .starts_to_steps import element_of


class ReadsAhead(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if scan.iteration is None or graph is not context.root:
            return None
        around, before = Rearranging(graph, context), result.rewrites
        for read in [inner for inner in scan.body.nodes if is_plain(inner, "Gather")]:
            source = next((item.outer for item in scan.invariants if item.inner is read.inputs[0]), None)
            shape, places = context.facts.shape(source), context.facts.shape(read.inputs[1])
            if source is None or not shape or places not in ((), (1,)):
                continue
            axis, steps = read.attrs.get("axis", 0) % len(shape), trip_count(scan, context.facts)
            ahead = _places_ahead(graph, scan, read.inputs[1], shape[axis], context)
            if ahead is None or steps is None or length_of(source, axis, context.facts) != steps:
                continue
            if result.fires(f"{source.name} of {node.label}"):
                _walk_from(scan, read, source, axis, ahead, around)
        return [*around.nodes, scan.to_node()] if result.rewrites > before else None


def _places_ahead(graph: Graph, scan: Scan, index: Value | None, length: object, context: Context) -> int | None:
    """How far behind the number of the step a place is that is never behind the last."""
    node = maker_of_index(scan, index)
    if node is None or not is_plain(node, "Min") or len(node.inputs) != 2:
        return None
    numbers = Iterations(graph, scan, context.facts)
    for place, most in (node.inputs, node.inputs[::-1]):
        found, last = numbers.affine(place), numbers.affine(most)
        if found is None or last is None or found.factor != 1 or last.factor != 0 or last.offset + 1 != length:
            continue
        if isinstance(found.offset, int) and found.offset >= 0:
            return found.offset
    return None


def _walk_from(scan: Scan, read: Node, source: Value, axis: int, ahead: int, around: Rearranging) -> None:
    inside = Rearranging(scan.body, around.context)
    whole = source
    if ahead:
        rank = len(around.facts.shape(source) or ())
        pads = around.new.ints(*[0] * (rank + axis), ahead, *[0] * (rank - axis - 1))
        padded = around.op("Pad", source, pads, mode="edge")
        far = around.new.ints(2**63 - 1)
        whole = around.op("Slice", padded, around.new.ints(ahead), far, around.new.ints(axis))
    frame = element_of(scan, whole, axis, inside)
    if around.facts.shape(read.inputs[1]) == (1,):
        frame = inside.op("Unsqueeze", frame, inside.new.ints(axis))
    (made,) = read.outputs
    assert made is not None
    scan.body.nodes.remove(read)
    replace_in_body(scan, {made: frame})
    scan.body.nodes[:0] = inside.nodes
    scan.to_node()  # names of the next read are new among these
