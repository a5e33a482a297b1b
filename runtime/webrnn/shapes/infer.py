"""What can be known of types, shapes and small integer tensors before a graph runs.

Top-level inputs are what their declarations say, because callers are held to that, and sizes that they leave open get
names; constants are what they are. Declarations of other values are not believed. Named sizes are the same in every
graph: they are sizes of the outermost graph's inputs. Unknown stays unknown: an op without a rule, a rule that its
operands do not fit.

The body of a Scan is looked at until its states stand still: a state is what both its init and its next value are. A
Scan of no steps whose body cannot even run on zeros gives traces of whatever is declared; facts say nothing of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from webrnn.ir import Dim, DType, Graph, Node, Scan, Value, is_scan
from webrnn.ir.dims import is_nonnegative
from webrnn.ir.fused import is_expression

from .facts import NOTHING, UNKNOWN, Fact, Facts, fact_of_array, facts_of_inputs, join
from .rules.contents import contents
from .rules.registry import NOT_A_RULE_BUG, from_front, rule


def infer(graph: Graph, facts: Facts | None = None) -> Facts:
    """The facts of a graph whose inputs are as declared.

    >>> from webrnn.ir import DType, GraphBuilder, Symbol
    >>> b = GraphBuilder("g")
    >>> x = b.input("x", DType.FLOAT, (Symbol("n"), 3))
    >>> y = b.op("Transpose", x)
    >>> infer(b.graph).of(y)
    Fact(dtype=<DType.FLOAT: 1>, shape=(3, n), content=None, floats=None)
    """
    facts = facts if facts is not None else Facts()
    _infer_graph(graph, facts_of_inputs(graph.inputs), facts)
    return facts


def infer_outputs(graph: Graph, arguments: Sequence[Any]) -> list[Fact]:
    """The facts of a graph's outputs for these inputs."""
    known = [fact_of_array(item) if isinstance(item, np.ndarray) else UNKNOWN for item in arguments]
    return _infer_graph(graph, known, Facts())


def _infer_graph(graph: Graph, inputs: Sequence[Fact], facts: Facts) -> list[Fact]:
    for value, fact in zip(graph.inputs, inputs, strict=True):
        facts.set(value, fact)
    for value, array in graph.constants.items():
        if facts.of(value) is UNKNOWN:
            facts.set(value, fact_of_array(array))
    for node in graph.nodes:
        infer_node(node, facts)
    return [facts.of(value) for value in graph.outputs]


def infer_node(node: Node, facts: Facts) -> None:
    """Record what follows for the outputs of one node from the facts of its inputs."""
    found = _infer_node(node, facts)
    for index, made in enumerate(node.outputs):
        if made is not None:
            facts.set(made, found[index] if index < len(found) else UNKNOWN)


def _infer_node(node: Node, facts: Facts) -> Sequence[Fact]:
    if is_scan(node):
        return _infer_scan(Scan.of(node), facts)
    inputs = [facts.of(value) for value in node.inputs]
    if any(fact.is_nothing for fact in inputs) and not (node.op == "If" and not inputs[0].is_nothing):
        return [NOTHING] * len(node.outputs)
    if node.op == "If" and not node.domain:
        branches = [_infer_graph(node.attrs[name], inputs[1:], facts) for name in ("then_branch", "else_branch")]
        condition = inputs[0].ints
        if condition is not None and len(condition) == 1:
            return branches[0] if condition[0] else branches[1]
        return [join(*pair) for pair in zip(*branches, strict=True)]
    if is_expression(node):
        return _infer_graph(node.attrs["body"], inputs, facts)
    shape_rule = rule.get(node.domain, node.op)
    if shape_rule is None:
        return ()
    try:
        outputs = shape_rule(node, inputs)[: len(node.outputs)]
    except NOT_A_RULE_BUG:
        return ()
    try:
        found = contents(node, inputs, outputs)
    except NOT_A_RULE_BUG:
        return outputs
    return [fact if known is None else replace(fact, content=known) for fact, known in zip(outputs, found, strict=True)]


def _infer_scan(scan: Scan, facts: Facts) -> list[Fact]:
    elements = [_element(facts.of(item.whole), item.spec.axis) for item in scan.sequences]
    invariants = [facts.of(item.outer) for item in scan.invariants]
    states = [
        facts.of(state.init) if state.spec.is_plain else _element(facts.of(state.init), 0) for state in scan.states
    ]
    count = [] if scan.iteration is None else [Fact(DType.INT64, ())]
    while True:
        taken = [fact for fact, state in zip(states, scan.states, strict=True) for _ in state.body_in]
        results = _infer_graph(scan.body, [*count, *taken, *elements, *invariants], facts)
        after = results[scan.body_cond is not None :]
        joined = [join(before, new) for before, new in zip(states, after, strict=False)]
        if joined == states:
            break
        states = joined
    n_steps = trip_count(scan, facts)
    runs = isinstance(n_steps, int) and n_steps > 0
    finals = [
        (new if runs else before) if state.spec.is_plain else _stacked(before, state.spec.depth, 0)
        for state, before, new in zip(scan.states, states, after, strict=False)
    ]
    traces = []
    for trace, fact in zip(scan.traces, after[len(states) :], strict=True):
        length = n_steps
        if trace.spec.keep is not None:
            length = min(n_steps, trace.spec.keep) if isinstance(n_steps, int) else None
        if trace.spec.length is not None:
            length = trace.spec.length
        traces.append(_stacked(fact, length, trace.spec.axis))
    return [*finals, *traces]


def trip_count(scan: Scan, facts: Facts) -> Dim | None:
    """How many steps a Scan takes, if that is known before it runs."""
    if scan.cond is not None or scan.body_cond is not None:
        return None
    if scan.n_steps is not None:
        return step_count(scan.n_steps, facts)
    lengths = [length_of(item.whole, item.spec.axis, facts) for item in scan.sequences]
    known = sorted((length for length in lengths if length is not None), key=lambda length: not isinstance(length, int))
    return known[0] if known else None


def step_count(n_steps: Value | None, facts: Facts) -> Dim | None:
    """What the operand of a Scan that says how many steps it takes is known to say; less than none is none."""
    content = facts.of(n_steps).content
    steps = content[0] if content else None
    if isinstance(steps, int):
        return max(steps, 0)
    return steps if steps is not None and is_nonnegative(steps) else None


def length_of(value: Value, axis: int, facts: Facts) -> Dim | None:
    shape = facts.shape(value)
    return shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None


def _element(whole: Fact, axis: int) -> Fact:
    """What is left of a tensor when one of its axes is taken away."""
    if whole.shape is None or not -len(whole.shape) <= axis < len(whole.shape):
        return Fact(whole.dtype)
    axis = from_front(axis, len(whole.shape))
    return Fact(whole.dtype, (*whole.shape[:axis], *whole.shape[axis + 1 :]))


def _stacked(element: Fact, length: Dim | None, axis: int) -> Fact:
    if element.shape is None or not -len(element.shape) - 1 <= axis <= len(element.shape):
        return Fact(element.dtype)
    axis = from_front(axis, len(element.shape) + 1)
    return Fact(element.dtype, (*element.shape[:axis], length, *element.shape[axis:]))
