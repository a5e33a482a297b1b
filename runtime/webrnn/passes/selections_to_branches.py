"""What is selected by one truth value, and takes a product to make, is made only where it is selected.

Requires: facts from infer_shapes.
Ensures: in the body of a loop that may end early, as that of a decoder is, the nodes that nothing but selections by the
same truth value reads, all on the same side, stand in a branch of an If, if they cannot fail and a product with a large
matrix is among them. The If gives what the selections gave.
Declines: "what is selected depends on what was", "its sizes are not known".
"""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import DType, Graph, Node, Scan, Value, is_plain
from webrnn.ir.fused import is_cell, is_linear
from webrnn.ops.sets import RESHAPES, WEIGHTED
from webrnn.shapes.facts import size_of

from .base import Context, PassResult, ScanPass
from .rewriting import in_order, is_total

LARGE = 1 << 12
"""Elements of a matrix from which on a branch costs less than the product."""


class SelectionsToBranches(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if scan.body_cond is None:
            return None
        changed = False
        for side in (1, 2):
            for condition in dict.fromkeys(each.inputs[0] for each in scan.body.nodes if is_plain(each, "Where")):
                changed |= condition is not None and _branched(scan, condition, side, context, result)
        return [scan.to_node()] if changed else None


def _branched(scan: Scan, condition: Value, side: int, context: Context, result: PassResult) -> bool:
    facts, body = context.facts, scan.body
    selections = [node for node in body.nodes if is_plain(node, "Where") and node.inputs[0] is condition]
    made = _made_for(scan, selections, side, context)
    if not any(_is_large_product(node, context) for node in made):
        return False
    outputs = {value for node in made for value in node.outputs}
    selections = [node for node in selections if node.inputs[side] in outputs]
    first = selections[0]
    shapes = [[facts.shape(value) for value in (*node.inputs[1:], *node.outputs)] for node in selections]
    known = all(shape is not None and None not in shape and shape == each[0] for each in shapes for shape in each)
    count = size_of(facts.shape(condition))
    if isinstance(count, int) and count != 1:
        return False
    if not known or count != 1:
        result.declines_at(first, "its sizes are not known")
        return False
    alone = Node("Squeeze", [condition], [Value(f"{condition.name}_alone", DType.BOOL, ())])
    branch = _branch(body, made, selections, side)
    branch.inputs = [alone.outputs[0], *branch.inputs]
    gone = {id(node) for node in (*made, *selections)}
    place = body.nodes.index(first)
    nodes = [*body.nodes[:place], alone, branch, *body.nodes[place:]]
    ordered = in_order([node for node in nodes if id(node) not in gone])
    if ordered is None:
        result.declines_at(first, "what is selected depends on what was")
        return False
    if not result.fires(f"{len(made)} nodes for {first.label}"):
        return False
    body.nodes = ordered
    return True


def _made_for(scan: Scan, selections: Sequence[Node], side: int, context: Context) -> list[Node]:
    """The nodes that cannot fail and of which nothing but one side of these selections needs the results."""
    needed = {scan.body_cond, *(state.body_out for state in scan.states), *(trace.element for trace in scan.traces)}
    chosen = set(map(id, selections))
    made: list[Node] = []
    producers = scan.body.producers()
    read = {value for node in selections for value in node.inputs[side : side + 1]}
    for node in reversed(scan.body.nodes):
        is_apart = id(node) not in chosen and needed.isdisjoint(node.outputs) and not read.isdisjoint(node.outputs)
        if is_apart and (_cannot_fail(node, context) or _finds_its_row(node, producers, context)):
            made.insert(0, node)
            read.update(node.inputs)
            continue
        needed.update(value for at, value in enumerate(node.inputs) if id(node) not in chosen or at != side)
    return made


def _cannot_fail(node: Node, context: Context) -> bool:
    return is_total(node, context.facts) or is_linear(node) or is_cell(node)


def _finds_its_row(node: Node, producers: dict[Value, Node], context: Context) -> bool:
    """Whether it takes rows at the places of the largest or smallest of as many elements as there are rows at most."""
    if not is_plain(node, "Gather"):
        return False
    index = node.inputs[1]
    maker = None if index is None else producers.get(index)
    while maker is not None and not maker.domain and maker.op in RESHAPES and maker.inputs[0] is not None:
        maker = producers.get(maker.inputs[0])
    if maker is None or not is_plain(maker, "ArgMax", "ArgMin"):
        return False
    elements, rows = context.facts.shape(maker.inputs[0]), context.facts.shape(node.inputs[0])
    if not elements or not rows:
        return False
    count, places = elements[maker.attrs.get("axis", 0)], rows[node.attrs.get("axis", 0)]
    return isinstance(count, int) and isinstance(places, int) and count <= places


def _is_large_product(node: Node, context: Context) -> bool:
    size = size_of(context.facts.shape(node.inputs[1])) if is_plain(node, *WEIGHTED) or is_linear(node) else None
    return isinstance(size, int) and size >= LARGE


def _branch(body: Graph, made: Sequence[Node], selections: Sequence[Node], side: int) -> Node:
    """An If without its condition. It reads what the nodes in it read from outside."""
    inside = {value for node in made for value in node.outputs}
    operands = [value for node in made for value in node.inputs if value is not None and value not in inside]
    others = [node.inputs[3 - side] for node in selections]
    given = [*dict.fromkeys(value for value in (*operands, *others) if value is not None)]
    captured = [value for value in given if value not in body.constants]
    graphs = [Graph("selected"), Graph("not_selected")]
    names = [
        {value: value.like(value.name) for value in given},
        {value: value.like(value.name) for value in given},
    ]
    for graph, named in zip(graphs, names, strict=True):
        graph.inputs = [named[value] for value in captured]
        graph.constants = {named[value]: body.constants[value] for value in given if value in body.constants}
    selected, other = names
    graphs[0].nodes = [
        Node(
            node.op,
            [None if value is None else selected.get(value, value) for value in node.inputs],
            node.outputs,
            node.attrs,
            node.name,
            node.domain,
        )
        for node in made
    ]
    for node in selections:
        made_here, value = node.inputs[side], node.inputs[3 - side]
        assert made_here is not None
        assert value is not None
        graphs[0].outputs.append(made_here)
        copied = value.like(f"{value.name}_kept")
        graphs[1].nodes.append(Node("Identity", [other[value]], [copied]))
        graphs[1].outputs.append(copied)
    taken, left = graphs if side == 1 else graphs[::-1]
    attrs = {"then_branch": taken, "else_branch": left}
    return Node("If", [*captured], [node.outputs[0] for node in selections], attrs, selections[0].name)
