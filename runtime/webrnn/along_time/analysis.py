"""One walk over a graph: for each value, how it depends on frames, given which axes of the inputs are time.

Nodes of the outermost graph get a `Move`, which says what they become in a stream: those that look at several frames
one of their own, all others are copied, with operands that are equally late. Inside branches and loops all nodes work
frame by frame. Sizes are taken to be at least 1: what a model does to no frames at all is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from webrnn.ir import Dim, Graph, Node, Scan, Value, is_scan
from webrnn.ops.sets import SIZES
from webrnn.shapes.facts import Fact, Facts, fact_of_array, facts_of_inputs
from webrnn.shapes.infer import infer_node

from . import columns, layout_moves, number_moves, window_moves  # noqa: F401  (they fill the table of moves)
from .copies import copied
from .kinds import COUNTS, LAST, TIMELESS, Along, BreaksTime, Fault, join
from .loop_moves import loop_move
from .loops import inner_loop, steps_of, time_loop, walks_along_time
from .moves import COUNTING, MOVES, Move
from .numbers import Numbers, numbers_of
from .paces import STRIDES, fixed_frames, mentions_strides
from .shapes import KEEP_NONE, SHAPES_OF_MANY, content_of_many
from .view import NodeView, rule_of

_REASONS = {
    "Attention": "attention looks at all frames",
    "STFT": "it cuts frames of its own out of what came before, which a step does not know",
    "Range": "it counts frames",
    "NonZero": "what it finds depends on all frames",
    "Compress": "which frames it takes depends on data",
    "ScatterND": "it writes to places along time",
    "ScatterElements": "it writes to places along time",
}


_MOST_NUMBERS = 2**20
"""A list of so many numbers is not looked at."""


class Analysis:
    """What is found for one choice of time: `along` of each value, and the loops that walk along time."""

    def __init__(
        self,
        graph: Graph,
        time: Mapping[Value, int],
        fed: frozenset[Value] = frozenset(),
        stride: int = 1,
        opened: bool = False,
    ):
        """`fed` are the values that depend on what the inputs contain, not only on their sizes. With `opened` the axes
        of time have any size, also where the model declares a number."""
        self.facts = Facts()
        self.along: dict[Value, Along] = {}
        self.constants: dict[Value, np.ndarray] = {}
        self.fills: dict[Value, float] = {}
        """Values that do not depend on frames and are one number everywhere."""
        self.numbers: dict[Value, Numbers] = {}
        """Values that count frames."""
        self._floored: set[Value] = set()
        self.fed, self.stride = fed, stride
        self.moves: dict[Node, Move] = {}
        self.walking: list[Node] = []
        """Loops that walk along time, those with a fault too."""
        sizes = [_size(value, axis) for value, axis in time.items()]
        fixed = next((number for number in map(fixed_frames, sizes) if number is not None), None)
        self.fixed = None if fixed is None else fixed // stride
        is_fixed = bool(sizes) and isinstance(sizes[0], int) and not opened
        self.frames: Dim = sizes[0] if is_fixed and sizes[0] is not None else stride * STRIDES
        """How many there are where a node looks, in the whole run; inside a loop or branch those that it is handed."""
        self._delay = 0
        """By how much all operands of a loop or branch are late."""
        inputs = []
        for value, fact in zip(graph.inputs, facts_of_inputs(graph.inputs), strict=True):
            axis = time.get(value)
            self.along[value] = TIMELESS if axis is None else Along(axis, length=self.frames)
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
            self._fill(node)
            for made, along in zip(node.outputs, self._node(node, is_outermost), strict=True):
                if made is not None:
                    self.along[made] = self._checked(node, made, along)
            if is_outermost:
                self._note_numbers(node)

    def of(self, value: Value | None) -> Along:
        return TIMELESS if value is None else self.along[value]

    def view(self, node: Node, operands: Sequence[Along], frames: Dim | None = None) -> NodeView:
        here = self.frames if frames is None else frames
        return NodeView(node, operands, self.facts, self.constants, here, self.fills, self.numbers, self.fixed)

    def _note_numbers(self, node: Node) -> None:
        """Note a result that counts frames."""
        made = node.outputs[0] if node.outputs else None
        if made is None or self.along[made].fault is not None:
            return
        if node.op == "Range" and not node.domain:
            start, limit, step = (self.facts.of(value).ints for value in node.inputs)
            if start is not None and step is not None and self.along[made].axis is not None:
                self.numbers[made] = Numbers(np.array(start), np.array(start) + step)
            elif start is not None and step is not None and limit is not None and limit[0] - start[0] < _MOST_NUMBERS:
                self.constants[made] = np.arange(start[0], limit[0], step[0])
            return
        if self.along[made].axis is None:
            return
        found = numbers_of(node, self.numbers, self.constants, self.facts.shape(made), self.along[made])
        if found is not None:
            self.numbers[made] = found

    def _fill(self, node: Node) -> None:
        """Note a result that is one number everywhere."""
        source = node.inputs[0] if node.inputs else None
        number: float | None = None
        if node.op == "ConstantOfShape":
            number = float(np.asarray(node.attrs.get("value", 0)).reshape(-1)[0])
        elif source is not None and node.op in ("Expand", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Identity"):
            number = self.view(node, []).fill_of(source)
        if number is not None and node.outputs[0] is not None:
            self.fills[node.outputs[0]] = number

    def _infer(self, node: Node) -> None:
        infer_node(node, self.facts)
        made = node.outputs[0] if node.outputs else None
        rule = None if node.domain else SHAPES_OF_MANY.get(node.op)
        shape = None if rule is None else rule(node, self.facts)
        if shape is not None and made is not None:
            self.facts.set(made, replace(self.facts.of(made), shape=shape))
        content = None if node.domain else content_of_many(node, self.facts)
        if content is not None and made is not None:
            self.facts.set(made, replace(self.facts.of(made), content=content))
        self._note_floored(node)

    def _note_floored(self, node: Node) -> None:
        """Sizes that are none where frames are too few: what else is computed from them is not known."""
        is_floored = any(value in self._floored for value in node.inputs if value is not None)
        made = [value for value in node.outputs if value is not None and self.facts.of(value).content is not None]
        if node.domain or not (is_floored or node.op == "Max"):
            return
        for value in made:
            content = self.facts.of(value).content or ()
            if not any(mentions_strides(size) for size in content):
                continue
            if node.op == "Max" or node.op in KEEP_NONE:
                self._floored.add(value)
            else:
                known = tuple(None if mentions_strides(size) else size for size in content)
                self.facts.set(value, replace(self.facts.of(value), content=known))

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
                return [Along(axis=broken.axis, fault=fault, length=_common(operands, self.frames))] * len(node.outputs)
        return [replace(along, fault=fault) for along in self._behind_fault(node, operands, is_outermost)]

    def _behind_fault(self, node: Node, operands: Sequence[Along], is_outermost: bool) -> Sequence[Along]:
        """Where time is, if nothing was wrong before, so that the loops behind a fault are found as well."""
        try:
            return self._result(node, [operand.sound() for operand in operands], is_outermost)
        except BreaksTime as broken:
            return [Along(axis=broken.axis, length=_common(operands, self.frames))] * len(node.outputs)

    def _result(self, node: Node, operands: Sequence[Along], is_outermost: bool) -> Sequence[Along]:
        if not is_outermost:
            return [self._stamped(along) for along in self._by_frames(node, operands, False)]
        is_timed = any(operand.axis is not None for operand in operands)
        rule = None if node.domain else (MOVES if is_timed else COUNTING).get(node.op)
        if rule is not None and (is_timed or any(operand.counts for operand in operands)):
            found = rule(self.view(node, operands, _common(operands, self.frames)))
            if found is not None:
                self.moves[node] = found
                return found.results
        return self._copied(node, operands)

    def _copied(self, node: Node, operands: Sequence[Along]) -> Sequence[Along]:
        """A node of the outermost graph that works frame by frame, on operands that are equally late."""
        ready = copied(node, operands)
        outer = self.frames, self._delay
        self.frames, self._delay = self._frames_of(node, operands), ready.delay
        try:
            results = [self._stamped(along) for along in self._by_frames(node, ready.operands, True)]
        finally:
            frames, (self.frames, self._delay) = self.frames, outer
        if ready.is_kept:
            results = [replace(along, start=ready.start, mirror=ready.mirror) for along in results]
        if is_scan(node) and node in self.walking:
            self.moves[node] = loop_move(node, results, ready.delay, frames, self.fed)
        else:
            self.moves[node] = Move(results, ready.write(node, self.of, self.facts, results))
        return results

    def _frames_of(self, node: Node, operands: Sequence[Along]) -> Dim:
        """How many frames the operands of a node have, or the steps of a loop that takes none of them."""
        if is_scan(node) and not any(operand.axis is not None for operand in operands):
            steps = steps_of(Scan.of(node), self.facts)
            if mentions_strides(steps) and steps is not None:
                return steps
        lengths = {operand.length for operand in operands if operand.axis is not None and not operand.uniform}
        if len(lengths) > 1:
            raise BreaksTime("sequences of different lengths meet")
        return _common(operands, self.frames)

    def _stamped(self, along: Along) -> Along:
        return along if along.axis is None else replace(along, length=self.frames, delay=self._delay)

    def _by_frames(self, node: Node, operands: Sequence[Along], is_outermost: bool) -> Sequence[Along]:
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
            return COUNTS if any(mentions_strides(size) for size in fact.content) else TIMELESS
        if fact.shape is None or any(size is None or mentions_strides(size) for size in fact.shape):
            raise BreaksTime("it counts frames, or its size depends on their number")
        return COUNTS

    def _checked(self, node: Node, value: Value, along: Along) -> Along:
        shape = self.facts.shape(value)
        if along.axis is not None and shape is not None and along.axis >= len(shape):
            fault = along.fault or Fault(node.label, node.op, "it is not known where time is in its result")
            return replace(along, axis=None, fault=fault)
        if along.fault is not None or shape is None:
            return along
        if any(mentions_strides(size) for axis, size in enumerate(shape) if axis != along.axis):
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
            return time_loop(scan, given, self.facts, self.frames)
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


def _common(operands: Sequence[Along], default: Dim) -> Dim:
    """How many frames the operands have, those first that are not the same everywhere."""
    timed = sorted((operand for operand in operands if operand.axis is not None), key=lambda along: along.uniform)
    return timed[0].length if timed else default


def _size(value: Value, axis: int) -> Dim | None:
    return None if value.shape is None else value.shape[axis]
