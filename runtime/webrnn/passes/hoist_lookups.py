"""A product of the row at which a loop stands is done for all rows at once, before the loop.

Requires: facts from infer_shapes.
Ensures: a loop may walk over something that stays the same with a place of its own: a state that begins at 0, of which
a step leaves as it is or adds 1, and that ends the loop where there are no more rows, as the decoder of a transducer
does. A product of the row at that place, taken by a Gather, and of what stays the same too, stands before the loop for
all rows; the loop takes its row of that.
Declines: "it may not walk over all rows", and whatever `over_all_steps` says. Each result is the same chain of
multiply-adds, but a product of many rows at once may be rounded otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from webrnn.ir import Dim, Graph, Invariant, Node, Scan, Value, is_plain
from webrnn.ops.sets import WEIGHTED
from webrnn.shapes.facts import Facts

from .base import Context, PassResult, ScanPass
from .over_all_steps import Declined, Operand, over_all_steps
from .rewriting import Additions, constant_of


class HoistLookups(ScanPass):
    reorders_arithmetic = True

    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if scan.body_cond is None:
            return None
        fixed = {item.inner: item.outer for item in scan.invariants}
        producers = scan.body.producers()
        new = Additions(graph, context)
        before: list[Node] = []
        for index, product in enumerate(scan.body.nodes):
            gather = producers.get(product.inputs[0]) if product.inputs and product.inputs[0] is not None else None
            if gather is None or not _is_product_of_a_row(scan, product, gather, fixed, context.facts):
                continue
            if not _walks_over_all(scan, gather, context.facts):
                result.declines_at(product, "it may not walk over all rows")
                continue
            try:
                whole = new.value(f"{product.outputs[0].name}_all" if product.outputs[0] else "product_all")
                nodes = over_all_steps(
                    product,
                    [*_operands(scan, product, gather, fixed, new, context.facts)],
                    [whole],
                    new,
                    context.facts,
                    True,
                )
            except Declined as declined:
                result.declines_at(product, str(declined))
                continue
            if not result.fires(f"{product.op} {product.label} out of {node.label}"):
                break
            before += nodes
            inner = Value(f"{whole.name}_rows")
            scan.invariants.append(Invariant(whole, inner))
            scan.body.nodes[index] = Node(
                "Gather", [inner, gather.inputs[1]], product.outputs, {"axis": 0}, gather.label
            )
        new.drop_unused(before)
        return [*before, scan.to_node()] if before else None


def _is_product_of_a_row(scan: Scan, product: Node, gather: Node, fixed: Mapping[Value, Value], facts: Facts) -> bool:
    """Whether it is a product of an element of something that stays the same, along its first axis."""
    if not is_plain(product, *WEIGHTED) or not is_plain(gather, "Gather") or gather.attrs.get("axis", 0):
        return False
    others = product.inputs[1:]
    stay = all(value is None or value in fixed or value in scan.body.constants for value in others)
    known = all(None not in (facts.shape(value) or (None,)) for value in (*product.inputs[:2], *product.outputs))
    return stay and known and gather.inputs[0] in fixed and facts.of(gather.inputs[1]).rank == 0


def _operands(
    scan: Scan, product: Node, gather: Node, fixed: Mapping[Value, Value], new: Additions, facts: Facts
) -> Iterator[Operand | None]:
    rows, *others = product.inputs
    assert rows is not None
    assert gather.inputs[0] is not None
    yield Operand(fixed[gather.inputs[0]], facts.of(rows), True)
    for value in others:
        if value is None:
            yield None
        else:
            array = constant_of(scan.body, value)
            outer = fixed[value] if array is None else new.constant(array, value.name)
            yield Operand(outer, facts.of(value), False)


def _walks_over_all(scan: Scan, gather: Node, facts: Facts) -> bool:
    rows, place = gather.inputs[:2]
    sizes = facts.shape(rows)
    state = next((state for state in scan.states if state.body_in == [place]), None)
    if state is None or not sizes or sizes[0] is None or facts.of(state.init).ints != (0,):
        return False
    ends = any(
        node.inputs[0] is state.body_out and _is(node.inputs[1], sizes[0], facts)
        for node in _conditions(scan.body, scan.body_cond)
    )
    return ends and _goes_on(scan.body, state.body_out, place, facts)


def _conditions(graph: Graph, condition: Value | None) -> Iterator[Node]:
    """The comparisons that have to hold for another step, as `place < number`."""
    node = graph.producers().get(condition) if condition is not None else None
    if node is not None and is_plain(node, "And"):
        for each in node.inputs:
            yield from _conditions(graph, each)
    elif node is not None and is_plain(node, "Less"):
        yield node
    elif node is not None and is_plain(node, "Greater"):
        yield Node("Less", node.inputs[::-1], [])


def _is(value: Value | None, size: Dim, facts: Facts) -> bool:
    content = facts.of(value).content
    return content is not None and len(content) == 1 and content[0] == size


def _goes_on(graph: Graph, value: Value | None, place: Value | None, facts: Facts) -> bool:
    """Whether a value is the place, or the one behind it."""
    if value is place:
        return True
    node = graph.producers().get(value) if value is not None else None
    if node is None or node.domain:
        return False
    if node.op == "Identity":
        return _goes_on(graph, node.inputs[0], place, facts)
    if node.op == "Add":
        first, second = node.inputs if node.inputs[0] is place else node.inputs[::-1]
        return first is place and _is_at_most_one(graph, second, facts)
    if node.op == "Where":
        return all(_goes_on(graph, each, place, facts) for each in node.inputs[1:])
    if node.op == "If":
        branches: list[Graph] = [node.attrs["then_branch"], node.attrs["else_branch"]]
        at = node.outputs.index(value)
        for branch in branches:
            inner = next(
                (mine for mine, outer in zip(branch.inputs, node.inputs[1:], strict=True) if outer is place), None
            )
            if inner is None or not _goes_on(branch, branch.outputs[at], inner, facts):
                return False
        return True
    return False


def _is_at_most_one(graph: Graph, value: Value | None, facts: Facts) -> bool:
    """Whether a number is known to be 0 or 1."""
    array, node = constant_of(graph, value), graph.producers().get(value) if value is not None else None
    if array is not None:
        return array.size == 1 and bool(np.isin(array, (0, 1)).all())
    if node is not None and is_plain(node, "Cast"):
        dtype = facts.dtype(node.inputs[0])
        return dtype is not None and dtype.name == "BOOL"
    return (
        node is not None and is_plain(node, "Where") and all(_is_at_most_one(graph, x, facts) for x in node.inputs[1:])
    )
