"""A tensor that a loop indexes by the number of its step becomes a sequence.

Requires: facts from infer_shapes (lengths).
Ensures: a Gather in a Scan's body that picks from an invariant or a constant the element whose number is the
iteration's is gone, and what it picked from is a sequence, cut to the length of the others or to the number of steps
where it is known to be longer. Where it picks the n-th last in step n, the sequence is reversed. The iteration number
goes with remove_unused, the number of steps with drop_step_counts: a Loop over a tensor is then a plain Scan.
Declines: "it is not known to be as long as the loop's sequences", "the loop may end before an index is beyond the axis"
(a condition, and too little is known of the lengths), "nothing bounds the number of steps". Where the loop has no
sequence and no condition, nothing needs to be known: a tensor that is too short is an error with and without this pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from webrnn.ir import Dim, DType, Graph, Node, Scan, SequenceInput, SequenceSpec, Value
from webrnn.ir.dims import is_nonnegative
from webrnn.ops.sets import RESHAPES
from webrnn.shapes.infer import length_of, step_count

from .base import Context, PassResult, ScanPass
from .rewriting import Additions, Names, new_constant

_PASSES_ON = RESHAPES - {"Flatten"}
"""Ops that hand on one number."""


class GatherToSequence(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if scan.iteration is None:
            return None
        new, before = Additions(graph, context), result.rewrites
        cuts: list[Node] = []
        for inner in list(scan.body.nodes):
            picks = _find(scan, inner, context)
            if picks is None:
                continue
            reason = _reason_against(scan, picks)
            if reason is not None:
                result.declines_at(inner, reason)
            elif result.fires(f"{picks.source.name} of {node.label}"):
                _make_sequence(scan, picks, context, new, cuts)
        return [*cuts, scan.to_node()] if result.rewrites > before else None


@dataclass(frozen=True)
class _Picks:
    """A Gather with the number of the iteration."""

    node: Node
    source: Value
    axis: int
    reverse: bool
    keeps_axis: bool
    """Whether the index has an axis, so that the result has one of length 1."""
    length: Dim | None
    steps: Dim | None
    """How long a sequence has to be."""

    @property
    def fits(self) -> bool:
        return self.length is not None and self.length == self.steps

    @property
    def is_longer(self) -> bool:
        return self.length is not None and self.steps is not None and is_nonnegative(self.length - self.steps)


def _find(scan: Scan, node: Node, context: Context) -> _Picks | None:
    if node.domain or node.op != "Gather":
        return None
    source, index = node.inputs[:2]
    is_fixed = source in scan.body.constants or any(item.inner is source for item in scan.invariants)
    rank = context.facts.of(source).rank
    if source is None or index is None or not is_fixed or not rank:
        return None
    steps = _steps(scan, context)
    counted = _follow(scan, index)
    producer = scan.body.producers().get(counted)
    reverse = False
    if producer is not None and not producer.domain and producer.op == "Sub":
        last = context.facts.of(producer.inputs[0]).content
        reverse = steps is not None and last == (steps - 1,)
        counted = _follow(scan, producer.inputs[1]) if reverse and producer.inputs[1] is not None else counted
    shape = context.facts.shape(index)
    if counted is not scan.iteration or shape not in ((), (1,)):
        return None
    axis = node.attrs.get("axis", 0) % rank
    return _Picks(node, source, axis, reverse, shape == (1,), length_of(source, axis, context.facts), steps)


def _follow(scan: Scan, value: Value) -> Value:
    """Where an index comes from, behind ops that do not change it."""
    producers = scan.body.producers()
    while value in producers:
        node = producers[value]
        operand = node.inputs[0] if node.inputs else None
        is_cast = node.op == "Cast" and node.attrs["to"] in (DType.INT64, DType.INT32)
        if operand is None or node.domain or not (is_cast or node.op in _PASSES_ON):
            break
        value = operand
    return value


def _steps(scan: Scan, context: Context) -> Dim | None:
    if scan.sequences:
        lengths = (length_of(item.whole, item.spec.axis, context.facts) for item in scan.sequences)
        return next((length for length in lengths if length is not None), None)
    return step_count(scan.n_steps, context.facts)


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
