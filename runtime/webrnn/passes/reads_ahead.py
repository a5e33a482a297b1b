"""What a loop reads some frames behind that of its step, or the last frame, is a sequence.

Requires: facts from infer_shapes.
Ensures: a Gather in a Scan's body that picks from a tensor with one element for each step the one a known number of
places behind that of the step, and the last one where there are not so many, is gone. The tensor is walked over from
that place on, with its last element repeated behind its end: a stream is so many frames late.
Declines: nothing.
"""

from __future__ import annotations

from webrnn.ir import Graph, Node, Scan, is_plain

from .base import Context, PassResult
from .frames import FrameRead, LoopOverFrames, element_of
from .iterations import Iterations
from .reads_before import maker_of_index
from .sequence_forms import Rearranging


class ReadsAhead(LoopOverFrames):
    def rewrite_loop(self, graph: Graph, node: Node, scan: Scan, around: Rearranging, result: PassResult) -> None:
        for inner in list(scan.body.nodes):
            read = FrameRead.of(scan, inner, around.context)
            ahead = None if read is None else _places_ahead(graph, scan, read, around.context)
            if read is not None and ahead is not None and result.fires(f"{read.source.name} of {node.label}"):
                _walk_from(scan, read, ahead, around)


def _places_ahead(graph: Graph, scan: Scan, read: FrameRead, context: Context) -> int | None:
    """How far behind the number of the step a place is that is never behind the last."""
    length = (context.facts.shape(read.source) or ())[read.axis]
    node = maker_of_index(scan, read.index)
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


def _walk_from(scan: Scan, read: FrameRead, ahead: int, around: Rearranging) -> None:
    inside = Rearranging(scan.body, around.context)
    whole, axis = read.source, read.axis
    if ahead:
        rank = len(around.facts.shape(whole) or ())
        pads = around.new.ints(*[0] * (rank + axis), ahead, *[0] * (rank - axis - 1))
        padded = around.op("Pad", whole, pads, mode="edge")
        far = around.new.ints(2**63 - 1)
        whole = around.op("Slice", padded, around.new.ints(ahead), far, around.new.ints(axis))
    read.replace(scan, element_of(scan, whole, axis, inside), inside)
