"""Whether the nodes of a graph are allowed: before it runs, or under conditions on the sizes of its inputs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from webrnn.errors import Error, ModelError, UnsupportedOp
from webrnn.ir import REFUSED, Dim, DType, Graph, Node, Scan, SymbolicDim, Value, is_scan
from webrnn.ir.blame import blame
from webrnn.ir.dims import TooComplex
from webrnn.reference import check_signature
from webrnn.shapes.facts import Fact, Facts, facts_of_inputs
from webrnn.shapes.infer import infer, trip_count

from .check import NO_TENSOR, Check, Condition, spell
from .types import decide

MAKES_LISTS = {"SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SplitToSequence"}
MOST_SHAPES = 64
"""Shapes that are remembered as allowed."""


class SizeConditions:
    """What has to hold of the sizes of a graph's inputs for all of its nodes to be allowed."""

    def __init__(self, inputs: Sequence[Value], conditions: Sequence[Condition]):
        self.conditions = conditions
        self._places: list[tuple[str, int, int]] = []
        """A named size, and an axis of an input that says what it is."""
        for position, fact in enumerate(facts_of_inputs(inputs)):
            for axis, size in enumerate(fact.shape or ()):
                if isinstance(size, SymbolicDim):
                    self._places.append((str(size), position, axis))
        self._allowed: set[tuple[Any, ...]] = set()

    def require(self, arguments: Sequence[Any]) -> None:
        """Raise if a node is not allowed when the inputs have the shapes of these."""
        if not self.conditions:
            return
        shapes: tuple[tuple[int, ...], ...] = tuple([getattr(argument, "shape", ()) for argument in arguments])
        if shapes in self._allowed:
            return
        sizes = {name: shapes[position][axis] for name, position, axis in self._places if shapes[position]}
        for condition in self.conditions:
            condition.require(sizes)
        if len(self._allowed) >= MOST_SHAPES:
            self._allowed.clear()
        self._allowed.add(shapes)


NO_CONDITIONS = SizeConditions((), ())


def check_graph(graph: Graph, facts: Facts | None = None, may_refuse: bool = True) -> list[Condition]:
    """Raise if a node of a graph, or of a loop in it, is not allowed; the conditions under which all are.

    A loop that takes no steps may hold anything, and so may the branches of an If: one is taken, and in models that
    were made for several sizes the other need not fit. There, and where it may not refuse, a node that is not allowed
    is replaced by one that raises, so that no pass makes something else of it.
    """
    facts = infer(graph) if facts is None else facts
    found: list[Condition] = []
    lists = {output for node in graph.nodes if node.op in MAKES_LISTS and not node.domain for output in node.outputs}
    for index, node in enumerate(graph.nodes):
        try:
            found += check_node(node, facts, lists)
        except Error as error:
            if may_refuse:
                raise
            graph.nodes[index] = Node(node.op, node.inputs, node.outputs, {"error": error}, node.name, REFUSED)
            continue
        if is_scan(node):
            found += _check_body(node, facts, may_refuse)
        elif node.op == "If" and not node.domain:
            for branch in ("then_branch", "else_branch"):
                check_graph(node.attrs[branch], facts, may_refuse=False)
    return list(dict.fromkeys(found))


def check_node(node: Node, facts: Facts, lists: Collection[Value | None] = ()) -> list[Condition]:
    """Raise if a node is not allowed with operands of which this is known, whatever the graphs inside it are like; the
    conditions under which it is. What would be too long a condition is left to whoever runs the node. `lists` are
    values that are known to be sequences."""
    c = _ask(node, facts, lists)
    return [replace(condition, node=node.label, op=node.op) for condition in c.conditions]


def is_left_to_a_run(node: Node, facts: Facts) -> bool:
    """Whether a node may be refused because of elements that only a run knows, such as an index. It has to run then,
    even if nobody reads its results."""
    try:
        return _ask(node, facts).reads_unknown
    except Error:
        return True


def is_allowed(node: Node, facts: Facts) -> bool:
    """Whether it is known that a node is allowed, whatever the sizes and elements of its operands are."""
    try:
        c = _ask(node, facts)
    except Error:
        return False
    shapes = [() if operand is None else operand.shape for operand in c.operands]
    return not c.conditions and not c.reads_unknown and all(shape is not None and None not in shape for shape in shapes)


def _ask(node: Node, facts: Facts, lists: Collection[Value | None] = ()) -> Check:
    operands = [
        None if value is None else NO_TENSOR if value.container or value in lists else facts.of(value)
        for value in node.inputs
    ]
    c = Check(node.op, node.attrs, operands, len(node.outputs))
    try:
        if is_scan(node):
            check_scan(c, Scan.of(node), facts)
        elif node.op == "If" and not node.domain:
            check_condition(c, operands[0], "the condition")
        else:
            check_signature(node.op, node.domain, node.inputs, node.attrs)
            decide(c, node.domain)
            if node.op == "SequenceInsert" and not node.domain:
                _check_element(c, facts.of(node.inputs[0]), operands[1])
    except TooComplex:
        c.reads_unknown = True
    except Error as error:
        raise blame(error, node.label, node.op) from error
    return c


def _check_element(c: Check, sequence: Fact, element: Fact | None) -> None:
    """That a tensor is of the type that the elements of a sequence have."""
    held = None if sequence.elements is None else sequence.elements.dtype
    if held is not None and element is not None and element.dtype is not None:
        types = f"{held.text} and {element.dtype.text}"
        c.that(held == element.dtype, f"the inputs have different types, {types}", kind=ModelError)


def _check_body(node: Node, facts: Facts, may_refuse: bool) -> list[Condition]:
    count = trip_count(Scan.of(node), facts)
    try:
        inside = check_graph(node.attrs["body"], facts, may_refuse and count != 0)
    except Error as error:
        raise blame(error, node.label, node.op) from error
    if count is None or count == 0:  # of one that perhaps takes no steps the loop decides when it runs
        return []
    steps: tuple[Dim, ...] = () if isinstance(count, int) else (count,)
    return [
        replace(condition, node=f"{node.label}/{condition.node}", steps=(*steps, *condition.steps))
        for condition in inside
    ]


def checked(graph: Graph) -> SizeConditions:
    """Raise if a graph is not allowed whatever the sizes of its inputs are; what has to hold of them."""
    check_signatures(graph)
    return SizeConditions(graph.inputs, check_graph(graph))


def checked_again(before: SizeConditions, source: Graph, graph: Graph) -> SizeConditions:
    """The conditions of a graph that passes have changed. Loops of the source that may end early were not asked, and it
    may be known now how many steps they take."""
    loops = (node for inner in source.walk() for node in inner.nodes if is_scan(node))
    if not any(node.attrs["spec"].has_condition for node in loops):
        return before
    return SizeConditions(graph.inputs, [*before.conditions, *check_graph(graph, may_refuse=False)])


def check_signatures(graph: Graph) -> None:
    """Raise, with the way to the node, unless each node has the inputs and attributes that its op needs.

    What webrnn lacks is no error in the branch of an If, which may never be taken.
    """
    for node in graph.nodes:
        try:
            if not is_scan(node):
                check_signature(node.op, node.domain, node.inputs, node.attrs)
            for _, inner in node.subgraphs:
                _check_inner(inner, may_lack=not is_scan(node))
        except Error as error:
            raise blame(error, node.label, node.op) from error


def _check_inner(graph: Graph, may_lack: bool) -> None:
    try:
        check_signatures(graph)
    except UnsupportedOp:
        if not may_lack:
            raise


def check_scan(c: Check, scan: Scan, facts: Facts) -> None:
    """What a loop takes and gives, whatever its body does in between."""
    for value, what in ((scan.cond, "the condition"), (scan.body_cond, "the condition of the body")):
        check_condition(c, None if value is None else facts.of(value), what)
    if scan.n_steps is not None:
        _is_one(c, facts.of(scan.n_steps), "the number of steps", {DType.INT64, DType.INT32})
    lengths = []
    for item in scan.sequences:
        shape = facts.shape(item.whole)
        axis = c.axis(item.spec.axis, None if shape is None else len(shape), "the axis of a sequence")
        if shape is not None and axis is not None:
            lengths.append(shape[axis])
    for length in lengths[1:]:
        c.equal(lengths[0], length, f"the sequences have different lengths: {lengths[0]} and {length}")
    for state in scan.states:
        before, after = facts.of(state.init).dtype, facts.of(state.body_out).dtype
        if before is not None and after is not None and before is not after:
            name = state.body_in[0].name
            c.fail(f"the state {name} is of {before.text} at first, of {after.text} after a step", kind=ModelError)
    for trace in scan.traces:
        rank = facts.of(trace.element).rank
        c.axis(trace.spec.axis, None if rank is None else rank + 1, "the axis of an output")


def check_condition(c: Check, fact: Fact | None, what: str) -> None:
    if fact is not None:
        _is_one(c, fact, what, {DType.BOOL})


def _is_one(c: Check, fact: Fact, what: str, types: set[DType]) -> None:
    if fact.dtype is not None and fact.dtype not in types:
        c.fail(f"{what} is of {fact.dtype.text}", kind=ModelError)
    for size in fact.shape or ():
        c.equal(size, 1, f"{what} is one element, not {spell(fact.shape)}")
