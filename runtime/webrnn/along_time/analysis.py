"""One walk over a graph: for each value, how it depends on frames, given which axes of the inputs are time.

Sizes are taken to be at least 1: what a model does to no frames at all is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from webrnn.ir import Dim, Graph, Node, Scan, Symbol, SymbolicDim, Value, is_scan
from webrnn.ops.sets import SIZES
from webrnn.shapes.facts import Fact, Facts, fact_of_array, facts_of_inputs
from webrnn.shapes.infer import infer_node

from .kinds import COUNTS, LAST, TIMELESS, Along, BreaksTime, Fault, join
from .layout_rules import reshape_target
from .loops import inner_loop, time_loop, walks_along_time
from .view import NodeView, rule_of

FRAMES = Symbol("number of frames")
"""No model can give a size this name by accident that matters: it is used for the axes of time only."""

_REASONS = {
    "Attention": "attention looks at all frames",
    "STFT": "it cuts frames of its own out of what came before, which a step does not know",
    "Range": "it counts frames",
    "NonZero": "what it finds depends on all frames",
    "Compress": "which frames it takes depends on data",
    "ScatterND": "it writes to places along time",
    "ScatterElements": "it writes to places along time",
}


class Analysis:
    """What is found for one choice of time: `along` of each value, and the loops that walk along time."""

    def __init__(self, graph: Graph, time: Mapping[Value, int], fed: frozenset[Value] = frozenset()):
        """`fed` are the values that depend on what the inputs contain, not only on their sizes."""
        self.facts = Facts()
        self.along: dict[Value, Along] = {}
        self.constants: dict[Value, np.ndarray] = {}
        self.fed = fed
        self.walking: list[Node] = []
        """Loops that walk along time, those with a fault too."""
        sizes = [_size(value, axis) for value, axis in time.items()]
        self.frames: Dim = sizes[0] if sizes and isinstance(sizes[0], int) else FRAMES
        inputs = []
        for value, fact in zip(graph.inputs, facts_of_inputs(graph.inputs), strict=True):
            axis = time.get(value)
            self.along[value] = TIMELESS if axis is None else Along(axis)
            if axis is not None and fact.shape is not None:
                fact = replace(fact, shape=(*fact.shape[:axis], self.frames, *fact.shape[axis + 1 :]))
            inputs.append(fact)
        self.visit(graph, inputs, is_outermost=True)

    def visit(self, graph: Graph, inputs: Sequence[Fact] | None = None, is_outermost: bool = False) -> None:
        """Look at all nodes of a graph; what its inputs are along time is set before."""
        for value, fact in zip(graph.inputs, inputs or (), strict=inputs is not None):
            self.facts.set(value, fact)
        for value, array in graph.constants.items():
            self.constants[value] = array
            self.facts.set(value, fact_of_array(array))
            self.along[value] = TIMELESS
        for node in graph.nodes:
            self._infer(node)
            for made, along in zip(node.outputs, self._node(node, is_outermost), strict=True):
                if made is not None:
                    self.along[made] = self._checked(node, made, along)

    def of(self, value: Value | None) -> Along:
        return TIMELESS if value is None else self.along[value]

    def view(self, node: Node, operands: Sequence[Along]) -> NodeView:
        return NodeView(node, operands, self.facts, self.constants, self.frames)

    def _infer(self, node: Node) -> None:
        infer_node(node, self.facts)
        if node.op == "Reshape" and not node.domain and node.outputs[0] is not None and len(node.inputs) > 1:
            target = self.facts.of(node.inputs[1]).content
            if target is not None:
                before = self.facts.of(node.inputs[0])
                shape = reshape_target(before.shape, target, bool(node.attrs.get("allowzero", 0)))
                self.facts.set(node.outputs[0], replace(self.facts.of(node.outputs[0]), shape=shape))

    def _node(self, node: Node, is_outermost: bool) -> Sequence[Along]:
        operands = [self.of(value) for value in node.inputs]
        if not node.domain and node.op in SIZES:
            operands = [COUNTS]
        fault = next((operand.fault for operand in operands if operand.fault is not None), None)
        if fault is None:
            try:
                return self._result(node, operands, is_outermost)
            except BreaksTime as broken:
                fault = Fault(node.label, node.op, broken.reason)
                return [Along(axis=broken.axis, fault=fault)] * len(node.outputs)
        return [replace(along, fault=fault) for along in self._behind_fault(node, operands, is_outermost)]

    def _behind_fault(self, node: Node, operands: Sequence[Along], is_outermost: bool) -> Sequence[Along]:
        """Where time is, if nothing was wrong before, so that the loops behind a fault are found as well."""
        try:
            return self._result(node, [operand.sound() for operand in operands], is_outermost)
        except BreaksTime as broken:
            return [Along(axis=broken.axis)] * len(node.outputs)

    def _result(self, node: Node, operands: Sequence[Along], is_outermost: bool) -> Sequence[Along]:
        n_outputs = len(node.outputs)
        if is_scan(node):
            return self._scan(node, operands, is_outermost)
        if node.op == "If" and not node.domain:
            return self._if(node, operands)
        rule, sizes = rule_of(node)
        has_axis = any(operand.axis is not None for operand in operands)
        counts = [index for index, operand in enumerate(operands) if operand.counts]
        if not has_axis and not (counts and set(counts) <= sizes):
            if not counts:
                is_last = any(operand.last for operand in operands)
                return [LAST if is_last else TIMELESS] * n_outputs
            if any(operand.last for operand in operands):
                raise BreaksTime("it uses the number of frames of a step as a number")
            return [self._counted(value) for value in node.outputs]
        if rule is None:
            raise BreaksTime(_REASONS.get(node.op, "nothing is known of how it works along time"))
        if any(index not in sizes for index in counts):
            raise BreaksTime("it uses the number of frames of a step as a number")
        return rule(self.view(node, operands))

    def _counted(self, value: Value | None) -> Along:
        """What is computed from sizes only."""
        fact = self.facts.of(value)
        if fact.content is not None and None not in fact.content:
            return COUNTS if any(self._mentions_frames(size) for size in fact.content) else TIMELESS
        if fact.shape is None or any(size is None or self._mentions_frames(size) for size in fact.shape):
            raise BreaksTime("it counts frames, or its size depends on their number")
        return COUNTS

    def _mentions_frames(self, dim: Dim | None) -> bool:
        return isinstance(dim, SymbolicDim) and not FRAMES.names.isdisjoint(dim.names)

    def _checked(self, node: Node, value: Value, along: Along) -> Along:
        shape = self.facts.shape(value)
        if along.fault is not None or shape is None:
            return along
        if any(self._mentions_frames(size) for axis, size in enumerate(shape) if axis != along.axis):
            return Along(fault=Fault(node.label, node.op, "another axis of its result depends on the number of frames"))
        return along

    def _scan(self, node: Node, operands: Sequence[Along], is_outermost: bool) -> Sequence[Along]:
        scan = Scan.of(node)
        given = dict(zip(node.inputs, operands, strict=True))
        along = [given[item.whole] for item in scan.sequences]
        if walks_along_time(scan, along, given.get(scan.n_steps), self.facts, self.frames):
            if not is_outermost:
                raise BreaksTime("it walks along time inside a branch or another loop, where its state is not carried")
            self.walking.append(node)
            return time_loop(scan, given, self.facts, self.frames, self.fed)
        if all(operand.is_timeless or operand == LAST for operand in operands):
            is_last = any(operand.last for operand in operands)
            return [LAST if is_last else TIMELESS] * len(node.outputs)
        return inner_loop(self, scan, given)

    def _if(self, node: Node, operands: Sequence[Along]) -> Sequence[Along]:
        if not operands[0].is_timeless:
            raise BreaksTime("which branch is taken depends on frames or on their number")
        results = []
        for name in ("then_branch", "else_branch"):
            branch: Graph = node.attrs[name]
            self.along.update(zip(branch.inputs, operands[1:], strict=True))
            self.visit(branch)
            results.append(self.outputs_of(branch))
        joined = [join(*pair) for pair in zip(*results, strict=True)]
        found = [along for along in joined if along is not None]
        if len(found) < len(joined):
            raise BreaksTime("its branches depend on frames in different ways")
        return found

    def outputs_of(self, graph: Graph) -> list[Along]:
        """The outputs of an inner graph; a fault in it is one of the node that it belongs to."""
        found = [self.of(value) for value in graph.outputs]
        for along in found:
            if along.fault is not None:
                inner = along.fault
                raise BreaksTime(f"inside it, node {inner.node!r} ({inner.op}): {inner.reason}")
        return found


def _size(value: Value, axis: int) -> Dim | None:
    return None if value.shape is None else value.shape[axis]
