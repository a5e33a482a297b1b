"""A frame that only a branch of a loop's step reads is read beside the branch.

Requires: facts from infer_shapes.
Ensures: a Gather in a branch of an If in a Scan's body, from a tensor that is the same in all steps, at the number of
the step or a known number less, stands before the If. Where the branch is not taken, it reads the first element instead
of one before that.
Declines: "the branch may be taken before there is such a frame".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import DType, Graph, Node, Scan, Value, is_plain

from .base import Context, PassResult, ScanPass
from .iterations import Iterations
from .rewriting import Names
from .sequence_forms import Rearranging
from .step_conditions import Conditions

_ARITHMETIC = ("Add", "Sub", "Mul", "Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape")


class ReadsOutOfBranches(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if scan.iteration is None or graph is not context.root:
            return None
        before, invariants = result.rewrites, {item.inner for item in scan.invariants}
        conditions = Conditions(graph, scan, context)
        for choice in [inner for inner in scan.body.nodes if is_plain(inner, "If")]:
            for name, positive in (("then_branch", True), ("else_branch", False)):
                start = conditions.holds_from(choice.inputs[0], positive)
                branch: Graph = choice.attrs[name]
                outside = dict(zip(branch.inputs, choice.inputs[1:], strict=True))
                for read in list(branch.nodes):
                    if not is_plain(read, "Gather") or read.inputs[0] not in outside:
                        continue
                    if outside[read.inputs[0]] not in invariants:
                        continue
                    moved = _Moved(graph, scan, branch, read, outside, context)
                    if moved.back is None:
                        continue
                    if moved.back > 0 and (start is None or start < moved.back):
                        result.declines_at(node, "the branch may be taken before there is such a frame")
                    elif result.fires(f"{read.label} of {node.label}"):
                        moved.apply(choice)
        return [scan.to_node()] if result.rewrites > before else None


class _Moved:
    """The index of a read, computed beside the branch."""

    def __init__(
        self,
        graph: Graph,
        scan: Scan,
        branch: Graph,
        read: Node,
        outside: dict[Value, Value | None],
        context: Context,
    ):
        self.scan, self.branch, self.read, self.outside = scan, branch, read, dict(outside)
        self.inside = Rearranging(scan.body, context)
        self.index = self._copied(read.inputs[1], branch.producers())
        self.back = self._find(graph, context)

    def _copied(self, value: Value | None, producers: dict[Value, Node]) -> Value | None:
        if value is None or value in self.outside:
            return None if value is None else self.outside[value]
        if value in self.branch.constants:
            self.outside[value] = self.inside.new.constant(self.branch.constants[value], value.name)
            return self.outside[value]
        node = producers.get(value)
        if node is None or not is_plain(node, *_ARITHMETIC):
            return None
        operands = [self._copied(each, producers) for each in node.inputs]
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return None
        self.outside[value] = self.inside.op(node.op, *known, hint=value.name, **node.attrs)
        return self.outside[value]

    def _find(self, graph: Graph, context: Context) -> int | None:
        nodes = self.scan.body.nodes
        nodes[:0] = self.inside.nodes
        place = Iterations(graph, self.scan, context.facts).affine(self.index)
        del nodes[: len(self.inside.nodes)]
        if place is None or place.factor != 1 or not isinstance(place.offset, int) or place.offset > 0:
            self.inside.new.drop_unused([])
            return None
        return -place.offset

    def apply(self, choice: Node) -> None:
        inside, (made,) = self.inside, self.read.outputs
        data, index = self._copied(self.read.inputs[0], {}), self.index
        assert data is not None
        assert index is not None
        assert made is not None
        if self.back:
            dtype = inside.facts.dtype(index) or DType.INT64
            index = inside.op("Max", index, inside.new.constant(np.array(0, dtype.array_type), "none"))
        frame = inside.op("Gather", data, index, hint=made.name, axis=self.read.attrs.get("axis", 0))
        position = self.scan.body.nodes.index(choice)
        self.scan.body.nodes[position:position] = inside.nodes
        self.branch.nodes.remove(self.read)
        choice.inputs.append(frame)
        fact = inside.facts.of(frame)
        made.dtype, made.shape = fact.dtype, fact.shape
        self.branch.inputs.append(made)
        other = "else_branch" if choice.attrs["then_branch"] is self.branch else "then_branch"
        unread: Graph = choice.attrs[other]
        unread.inputs.append(Value(Names(unread).fresh(made.name), fact.dtype, fact.shape))
