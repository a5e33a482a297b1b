"""A tensor that a loop indexes by the number of its step becomes a sequence.

Requires: facts from infer_shapes (lengths).
Ensures: a Gather, or a Slice of one place, in a Scan's body that picks from an invariant or a constant the element
whose number is the iteration's, or a known number more, is gone, and what it picked from is a sequence, cut to the
length of the others or to the number of steps where it is known to be longer. Where it picks the n-th last in step n,
the sequence is reversed. The iteration number goes with remove_unused, the number of steps with drop_step_counts: a
Loop over a tensor is then a plain Scan.
Declines: "it is not known to be as long as the loop's sequences", "the loop may end before an index is beyond the axis"
(a condition, and too little is known of the lengths), "nothing bounds the number of steps". Where the loop has no
sequence and no condition, nothing needs to be known: a tensor that is too short is an error with and without this pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from webrnn.ir import Dim, Graph, Node, Scan, SequenceInput, SequenceSpec, Value, is_plain
from webrnn.ir.dims import is_nonnegative
from webrnn.shapes.infer import length_of, step_count

from .base import Context, PassResult, ScanPass
from .iterations import Affine, Iterations
from .rewriting import Additions, Names, new_constant

_FAR = 2**63 - 1
"""Behind the end of every axis."""


class GatherToSequence(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if scan.iteration is None:
            return None
        new, before = Additions(graph, context), result.rewrites
        cuts: list[Node] = []
        for inner in _best_first(graph, scan, context):
            picks = _find(graph, scan, inner, context)
            if picks is None:
                continue
            reason = _reason_against(scan, picks)
            if reason is not None:
                result.declines_at(inner, reason)
            elif result.fires(f"{picks.source.name} of {node.label}"):
                _make_sequence(scan, picks, context, new, cuts)
        return [*cuts, scan.to_node()] if result.rewrites > before else None


def _best_first(graph: Graph, scan: Scan, context: Context) -> list[Node]:
    """Those of tensors that are known to be as long as the loop first: others may be tables that it reads a part of."""
    found = ((inner, _find(graph, scan, inner, context)) for inner in list(scan.body.nodes))
    picks = [(inner, each) for inner, each in found if each is not None]
    return [inner for inner, _ in sorted(picks, key=lambda item: not item[1].fits)]


@dataclass(frozen=True)
class _Picks:
    """A Gather, or a Slice of one place, with the number of the iteration."""

    node: Node
    source: Value
    axis: int
    reverse: bool
    keeps_axis: bool
    """Whether the index has an axis, so that the result has one of length 1."""
    skipped: int
    """How many places there are before the one of the first step, or in reverse of the last."""
    length: Dim | None
    """Of what is left behind these."""
    steps: Dim | None
    """How long a sequence has to be."""
    left_out: int | None = None
    """How many places the last steps leave, if there are more places than steps, of which there may be less than 0."""

    @property
    def fits(self) -> bool:
        return self.left_out is not None or (self.length is not None and self.length == self.steps)

    @property
    def is_longer(self) -> bool:
        return self.length is not None and self.steps is not None and is_nonnegative(self.length - self.steps)


def _find(graph: Graph, scan: Scan, node: Node, context: Context) -> _Picks | None:
    if not is_plain(node, "Gather", "Slice"):
        return None
    source = node.inputs[0]
    is_fixed = source in scan.body.constants or any(item.inner is source for item in scan.invariants)
    rank = context.facts.of(source).rank
    if source is None or not is_fixed or not rank:
        return None
    numbers, steps = Iterations(graph, scan, context.facts), _steps(scan, context)
    may_be_none = None if steps is not None else _steps_or_none(graph, scan, context)
    if node.op == "Slice":
        axis, place = _slice_of_one(node, rank, numbers, context)
    else:
        axis, place = node.attrs.get("axis", 0) % rank, numbers.affine(node.inputs[1])
    shape = context.facts.shape(node.inputs[1])
    if place is None or axis is None or shape not in ((), (1,)) or place.factor not in (1, -1):
        return None
    skipped = place.offset if place.factor == 1 else None if steps is None else place.offset - (steps - 1)
    if not isinstance(skipped, int) or skipped < 0:
        return None
    length = length_of(source, axis, context.facts)
    rest = None if length is None else length - skipped
    left_out = None if rest is None or may_be_none is None or place.factor == -1 else rest - may_be_none
    if not isinstance(left_out, int) or left_out < 0:
        left_out = None
    picks = _Picks(node, source, axis, place.factor == -1, shape == (1,), skipped, rest, steps, left_out)
    return picks if node.op == "Gather" or picks.fits or picks.is_longer else None


def _slice_of_one(
    node: Node, rank: int, numbers: Iterations, context: Context
) -> tuple[int, Affine] | tuple[None, None]:
    """The axis of a Slice of one place, and which place that is."""
    axes, steps = (context.facts.of(value).ints for value in (*node.inputs[3:], None, None)[:2])
    start, end = (numbers.affine(value) for value in node.inputs[1:3])
    if axes is None or len(axes) != 1 or steps not in (None, (1,)) or (len(node.inputs) > 4 and steps is None):
        return None, None
    if start is None or end is None or end != Affine(start.factor, start.offset + 1):
        return None, None
    return axes[0] % rank, start


def _steps(scan: Scan, context: Context) -> Dim | None:
    if scan.sequences:
        lengths = (length_of(item.whole, item.spec.axis, context.facts) for item in scan.sequences)
        return next((length for length in lengths if length is not None), None)
    return step_count(scan.n_steps, context.facts)


def _steps_or_none(graph: Graph, scan: Scan, context: Context) -> Dim | None:
    """How many steps there are, if that is not less than 0, and no step otherwise: one less than frames, say."""
    content = context.facts.of(scan.n_steps).content
    steps = content[0] if content else None
    lengths = [_length_or_none(graph, item.whole, item.spec.axis, context) for item in scan.sequences]
    return steps if all(length == steps for length in lengths) else None


def _length_or_none(graph: Graph, value: Value, axis: int, context: Context) -> Dim | None:
    """The length of what a Slice leaves, if that is not less than 0."""
    node = graph.producers().get(value)
    if node is None or not is_plain(node, "Slice") or len(node.inputs) != 4:
        return length_of(value, axis, context.facts)
    starts, ends, axes = (context.facts.of(operand).ints for operand in node.inputs[1:])
    assert node.inputs[0] is not None
    before = length_of(node.inputs[0], axis, context.facts)
    if before is None or starts is None or ends is None or axes != (axis,) or starts[0] < 0:
        return length_of(value, axis, context.facts)
    if ends[0] == _FAR:
        return before - starts[0]
    return before - starts[0] + ends[0] if ends[0] < 0 else None


def _reason_against(scan: Scan, picks: _Picks) -> str | None:
    if scan.n_steps is None and not scan.sequences:
        return "nothing bounds the number of steps"
    if picks.fits or (picks.is_longer and (isinstance(picks.steps, int) or not scan.sequences)):
        return None
    if scan.sequences:
        return "it is not known to be as long as the loop's sequences"
    if scan.body_cond is not None or scan.cond is not None:
        return "the loop may end before an index is beyond the axis"
    return None


def _make_sequence(scan: Scan, picks: _Picks, context: Context, new: Additions, cuts: list[Node]) -> None:
    body, made = scan.body, picks.node.outputs[0]
    assert made is not None
    if picks.source in body.constants:
        whole = new.constant(body.constants[picks.source], picks.source.name)
    else:
        whole = next(item.outer for item in scan.invariants if item.inner is picks.source)
    if picks.skipped or picks.left_out:
        rest = new.value(f"{whole.name}_rest")
        last = new.ints(-picks.left_out if picks.left_out else _FAR)
        cuts.append(Node("Slice", [whole, new.ints(picks.skipped), last, new.ints(picks.axis)], [rest]))
        whole = rest
    if picks.is_longer and not picks.fits:
        end = cut_length(picks.steps, scan.n_steps, new, cuts)
        whole = cut_to(whole, picks.axis, end, new, cuts)
    element = made
    if picks.keeps_axis:
        names = Names(body)
        element = Value(names.fresh(f"{picks.source.name}_element"))
        axes = new_constant(body, np.array([picks.axis], np.int64), names.fresh("axes"), context)
        position = body.nodes.index(picks.node)
        body.nodes[position] = Node("Unsqueeze", [element, axes], [made], {}, picks.node.name)
    else:
        body.nodes.remove(picks.node)
    scan.sequences.append(SequenceInput(SequenceSpec(picks.axis, picks.reverse), whole, element))


def cut_length(steps: Dim | None, n_steps: Value | None, new: Additions, nodes: list[Node]) -> Value:
    """A number of steps as a vector, for a Slice; from the loop's own where it is not known before it runs."""
    if isinstance(steps, int):
        return new.ints(steps)
    assert n_steps is not None
    end = new.value("steps")
    nodes.append(Node("Reshape", [n_steps, new.ints(-1)], [end], {"allowzero": 0}))
    return end


def cut_to(whole: Value, axis: int, end: Value, new: Additions, nodes: list[Node]) -> Value:
    """The first elements of a sequence."""
    cut = new.value(f"{whole.name}_cut")
    nodes.append(Node("Slice", [whole, new.ints(0), end, new.ints(axis)], [cut]))
    return cut
