"""A sequence that repeats one value in all steps is an invariant of the loop.

Requires: facts from infer_shapes.
Ensures: no sequence is an Expand that makes the steps, and nothing else, of a value with one element on that axis, or
without that axis; where that was the last thing to say how many steps there are, the shape of the Expand says it.
Declines: "a size is not known", "other axes are repeated too", "the loop may have another number of steps" (another
sequence or a given number of steps, not known to be as long: who runs it has to see that they differ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webrnn.ir import Dim, Graph, Node, Scan, SequenceInput, Value, is_plain
from webrnn.ir.scan import Invariant

from .base import Context, PassResult, ScanPass
from .expansions.emitter import Emitter
from .rewriting import Additions


class RepeatsToInvariants(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        producers, new = graph.producers(), Additions(graph, context)
        before = Emitter(graph, node, context, new)
        has_fired = False
        for sequence in list(scan.sequences):
            wide = producers.get(sequence.whole)
            if wide is None or not is_plain(wide, "Expand"):
                continue
            repeated = _repeated(wide, sequence, scan, context)
            if isinstance(repeated, str):
                result.declines_at(node, repeated)
                continue
            if repeated is None or not result.fires(f"{sequence.whole.name} of {node.label}"):
                continue
            has_fired = True
            scan.sequences.remove(sequence)
            value = repeated.value
            if repeated.axis is not None:
                value = before.op("Squeeze", value, before.ints(repeated.axis))
            scan.invariants.append(Invariant(value, sequence.element))
            if not scan.sequences and scan.n_steps is None:
                length = before.op("Gather", wide.inputs[1], before.ints(repeated.place))
                scan.n_steps = before.op("Squeeze", length, before.ints(0))
        return [*before.nodes, scan.to_node()] if has_fired else None


@dataclass(frozen=True)
class _Repeated:
    value: Value
    axis: int | None
    """Where it has one element instead of the steps; None if it lacks that axis."""
    place: int
    """Of the number of steps in the shape that the Expand is given."""


def _repeated(wide: Node, sequence: SequenceInput, scan: Scan, context: Context) -> _Repeated | str | None:
    """What an Expand repeats in each step, why it stays so, or None if it repeats something else."""
    value, facts = wide.inputs[0], context.facts
    assert value is not None
    narrow, shape, given = facts.shape(value), facts.shape(sequence.whole), facts.shape(wide.inputs[1])
    if narrow is None or shape is None or given is None or not isinstance(given[0], int):
        return "a size is not known"
    axis = sequence.spec.axis % len(shape)
    others = [size for at, size in enumerate(shape) if at != axis]
    if len(narrow) == len(shape) and narrow[axis] == 1 and shape[axis] != 1:
        kept, dropped = [size for at, size in enumerate(narrow) if at != axis], axis
    elif axis < len(shape) - len(narrow):
        kept, dropped = list(narrow), None
    else:
        return None
    if None in kept or None in others:
        return "a size is not known"
    if kept != others:
        return "other axes are repeated too"
    if not _is_as_long(sequence, shape[axis], scan, context):
        return "the loop may have another number of steps"
    return _Repeated(value, dropped, axis - len(shape) + given[0])


def _is_as_long(sequence: SequenceInput, length: Dim | None, scan: Scan, context: Context) -> bool:
    """Whether the loop takes as many steps without it."""
    others = [other for other in scan.sequences if other is not sequence]
    if not others:
        return scan.n_steps is None
    sizes = [(context.facts.shape(other.whole), other.spec.axis) for other in others]
    return length is not None and any(shape is not None and shape[axis] == length for shape, axis in sizes)
