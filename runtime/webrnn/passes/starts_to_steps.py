"""A state that starts from the first frame is set in the first step.

Requires: facts from infer_shapes.
Ensures: where what a state of a Scan starts from is computed from the first element of a tensor with one element for
each step, the first step computes that from its own element. So a stream can go on with the state in another step,
whose first frame is another one.
Declines: "the size of its state is not known", "it starts from the first frame of something else".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from webrnn.ir import DType, Graph, Invariant, Node, Scan, State, Value, is_plain
from webrnn.ops.sets import SIZES
from webrnn.shapes.infer import infer_node, length_of, trip_count

from .base import Context, PassResult
from .frames import LoopOverFrames, element_of, number_of, put_first
from .rewriting import replace_in_body
from .sequence_forms import Rearranging


class StartsToSteps(LoopOverFrames):
    counts = False

    def rewrite_loop(self, graph: Graph, node: Node, scan: Scan, around: Rearranging, result: PassResult) -> None:
        context = around.context
        for state in scan.states:
            start = _find(graph, state.init, context)
            if start is None:
                continue
            fact, steps = context.facts.of(state.init), trip_count(scan, context.facts)
            lengths = {length_of(read.source, read.axis, context.facts) for read in start.reads}
            if steps is None or lengths != {steps}:
                result.declines_at(node, "it starts from the first frame of something else")
            elif fact.dtype is None or fact.shape is None or None in fact.shape or not state.spec.is_plain:
                result.declines_at(node, "the size of its state is not known")
            elif result.fires(f"{state.body_in[0].name} of {node.label}"):
                _move(scan, state, start, context, around)


@dataclass(frozen=True)
class _Read:
    """The first element of a tensor along an axis."""

    node: Node
    source: Value
    axis: int
    keeps_axis: bool


@dataclass(frozen=True)
class _Start:
    reads: list[_Read]
    nodes: list[Node]
    """What is computed from them, in order."""


def _find(graph: Graph, init: Value, context: Context) -> _Start | None:
    """How a value is computed from first frames; None if it is not."""
    producers = graph.producers()
    needed: set[int] = set()
    pending = [init]
    while pending:
        node = producers.get(pending.pop())
        if node is not None and id(node) not in needed and (node.domain or node.op not in SIZES):
            needed.add(id(node))
            if _read(node, context) is None:
                pending += [value for value in node.inputs if value is not None]
    reads: list[_Read] = []
    nodes: list[Node] = []
    changing: set[Value | None] = set()
    for node in graph.nodes:
        if id(node) not in needed:
            continue
        read = _read(node, context)
        if read is not None:
            reads.append(read)
            changing.update(node.outputs)
        elif not changing.isdisjoint(node.inputs):
            if any(True for _ in node.subgraphs):
                return None
            nodes.append(node)
            changing.update(node.outputs)
    return _Start(reads, nodes) if init in changing else None


def _read(node: Node, context: Context) -> _Read | None:
    """Only of axes whose size is open: these may be time."""
    source = node.inputs[0] if node.inputs else None
    shape = context.facts.shape(source)
    if source is None or not shape:
        return None
    if is_plain(node, "Gather"):
        places, axis = context.facts.of(node.inputs[1]), node.attrs.get("axis", 0) % len(shape)
        if places.ints != (0,) or places.shape not in ((), (1,)):
            return None
        keeps_axis = places.shape == (1,)
    elif is_plain(node, "Slice"):
        starts, ends, axes = (context.facts.of(value).ints for value in (*node.inputs[1:], None, None)[:3])
        steps = context.facts.of(node.inputs[4]).ints if len(node.inputs) > 4 else (1,)
        if (starts, ends, steps) != ((0,), (1,), (1,)) or axes is None or len(axes) != 1:
            return None
        axis, keeps_axis = axes[0] % len(shape), True
    else:
        return None
    return None if isinstance(shape[axis], int) else _Read(node, source, axis, keeps_axis)


def _move(scan: Scan, state: State, start: _Start, context: Context, around: Rearranging) -> None:
    inside = Rearranging(scan.body, context)
    here: dict[Value, Value] = {}
    for read in start.reads:
        element = element_of(scan, read.source, read.axis, inside)
        made = read.node.outputs[0]
        assert made is not None
        here[made] = inside.op("Unsqueeze", element, inside.new.ints(read.axis)) if read.keeps_axis else element
    for node in start.nodes:
        for value in node.inputs:
            if value is not None and value not in here:
                here[value] = _handed_in(scan, value, inside)
        for value in node.outputs:
            if value is not None:
                here[value] = inside.new.value(value.name)
        operands = [None if value is None else here[value] for value in node.inputs]
        results = [None if value is None else here[value] for value in node.outputs]
        copied = Node(node.op, operands, results, dict(node.attrs), node.name, node.domain)
        inside.nodes.append(copied)
        infer_node(copied, context.facts)
    fact = context.facts.of(state.init)
    assert fact.dtype is not None
    assert fact.shape is not None
    before = Value(inside.new.value(state.body_in[0].name).name, fact.dtype, fact.shape)
    context.facts.set(before, fact)
    is_first = inside.op("Equal", number_of(scan, inside), inside.scalar(0), hint="is_first")
    now = inside.op("Where", is_first, here[state.init], before, hint=state.body_in[0].name)
    replace_in_body(scan, {state.body_in[0]: now})
    state.body_in = [before]
    state.init = _blank(around, state.init, fact.dtype)
    put_first(scan, inside)


def _handed_in(scan: Scan, value: Value, inside: Rearranging) -> Value:
    for item in scan.invariants:
        if item.outer is value:
            return item.inner
    inner = inside.new.value(value.name)
    inside.facts.set(inner, inside.facts.of(value))
    scan.invariants.append(Invariant(value, inner))
    return inner


def _blank(around: Rearranging, like: Value, dtype: DType) -> Value:
    shape = around.facts.shape(like)
    if shape is not None and all(isinstance(size, int) for size in shape):
        return around.new.constant(
            np.zeros([size for size in shape if isinstance(size, int)], dtype.array_type), "blank"
        )
    return around.op("ConstantOfShape", around.op("Shape", like), value=np.zeros(1, dtype.array_type))
