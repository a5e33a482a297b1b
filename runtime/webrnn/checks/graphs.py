"""Whether the nodes of a graph are allowed, before it runs."""

from __future__ import annotations

from dataclasses import replace

from webrnn.errors import Error, UnsupportedOp
from webrnn.ir import REFUSED, WEBRNN, Dim, Graph, Node, Scan, is_scan
from webrnn.ir.blame import blame
from webrnn.ir.dims import TooComplex
from webrnn.reference import check_signature
from webrnn.shapes.facts import UNKNOWN, Facts
from webrnn.shapes.infer import infer, trip_count

from .arrays import decide
from .check import Check, Condition
from .scans import check_condition, check_scan
from .sizes import SizeConditions


def check_graph(graph: Graph, facts: Facts | None = None, may_refuse: bool = True) -> list[Condition]:
    """Raise if a node of a graph, or of a loop in it, is not allowed; the conditions under which all are.

    A loop that takes no steps may hold anything, and so may the branches of an If: one is taken, and in models that
    were made for several sizes the other need not fit. There, and where it may not refuse, a node that is not allowed
    is replaced by one that raises, so that no pass makes something else of it.
    """
    facts = infer(graph) if facts is None else facts
    found: list[Condition] = []
    for index, node in enumerate(graph.nodes):
        try:
            found += check_node(node, facts)
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


def check_node(node: Node, facts: Facts) -> list[Condition]:
    """Raise if a node is not allowed with operands of which this is known, whatever the graphs inside it are like; the
    conditions under which it is. What would be too long a condition is left to whoever runs the node."""
    c = _ask(node, facts)
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


def _ask(node: Node, facts: Facts) -> Check:
    operands = [None if value is None else UNKNOWN if value.container else facts.of(value) for value in node.inputs]
    c = Check(node.op, node.attrs, operands, len(node.outputs))
    try:
        if is_scan(node):
            check_scan(c, Scan.of(node), facts)
        elif node.op == "If" and not node.domain:
            check_condition(c, operands[0], "the condition")
        elif node.domain != WEBRNN:
            check_signature(node.op, node.domain, node.inputs, node.attrs)
            decide(c, node.domain)
    except TooComplex:
        c.reads_unknown = True
    except Error as error:
        raise blame(error, node.label, node.op) from error
    return c


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
