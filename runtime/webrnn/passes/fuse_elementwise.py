"""Element-wise ops that follow each other become one Expression.

Requires: facts from infer_shapes: types, and the sizes of what is fused.
Ensures: of two element-wise nodes that give the same shape and of which one reads the other both are in one Expression;
where a size is not known, two that give the shape of the same value. Not so if it would have to run both before and
after another node, or grow beyond MOST_OPS or MOST_OPERANDS. Its body is closed to other passes. Constants of one
element are scalars in the body, other constants are operands.
Declines: "a size is not known", "it is of strings", "its bounds are not constants" (a Clip), "its divisor may be zero";
only where a neighbour of the node is element-wise, too.
"""

from __future__ import annotations

from webrnn.ir import WEBRNN, DType, Graph, Node, Shape, Value
from webrnn.ops.sets import ELEMENTWISE, TOTAL
from webrnn.shapes.infer import infer_node
from webrnn.shapes.rules.registry import broadcast

from .base import Context, Pass, PassResult
from .grouping import Grouping
from .rewriting import constant_of, in_order

MOST_OPS = 48
"""An Expression has no more nodes than this."""

MOST_OPERANDS = 24
"""Nor more operands."""

FUSED = (ELEMENTWISE & TOTAL) | {"IsInf", "Pow"}
"""The ops of an Expression."""

FLOATS = frozenset({DType.FLOAT, DType.FLOAT16, DType.BFLOAT16, DType.DOUBLE})
FOREIGN = frozenset({None, DType.STRING, DType.COMPLEX64, DType.COMPLEX128})


class FuseElementwise(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        shapes = self._shapes(graph, context, result)
        operands = {index: set(_operands(graph, graph.nodes[index], context)) for index in shapes}
        fused: dict[int, Node] = {}
        gone: set[int] = set()
        for group in Grouping(graph.nodes, shapes, operands, MOST_OPS, MOST_OPERANDS).groups():
            members = [graph.nodes[index] for index in group]
            if not result.fires(f"{len(members)} ops to {members[-1].label}"):
                break
            fused[group[-1]] = _expression(graph, members, context)
            gone.update(group)
        if fused:
            kept = [
                fused.get(index, node) for index, node in enumerate(graph.nodes) if index in fused or index not in gone
            ]
            ordered = in_order(kept)
            assert ordered is not None
            graph.nodes = ordered

    def _shapes(self, graph: Graph, context: Context, result: PassResult) -> dict[int, Shape | Value]:
        """The shape that a node gives, for each that can be fused, by its place; or a value of that shape."""
        near = _has_neighbour(graph)
        shapes: dict[int, Shape | Value] = {}
        origins: dict[Value, Value] = {}
        for index, node in enumerate(graph.nodes):
            if id(node) not in near:
                continue
            reason = _reason_against(graph, node, context)
            shape = _shape_of(graph, node, context, origins) if reason is None else None
            if shape is not None:
                shapes[index] = shape
            else:
                result.declines_at(node, reason or "a size is not known")
        return shapes


def _shape_of(graph: Graph, node: Node, context: Context, origins: dict[Value, Value]) -> Shape | Value | None:
    """What nodes that give the same shape have in common. `origins` has what nodes give the shape of."""
    result, shapes = context.facts.shape(node.outputs[0]), context.facts.shape
    given = [value for value in node.inputs if value is not None]
    if all(shape is not None and None not in shape for shape in (result, *map(shapes, given))):
        return result
    wide = [value for value in given if None in (shapes(value) or ())]
    found = {origins.get(value, value) for value in wide}
    if len(found) != 1 or any(shapes(value) != result for value in wide):
        return None
    if not all(value in wide or _is_repeated(shapes(value), result) for value in given):
        return None
    (origin,) = found
    for value in node.outputs:
        if value is not None:
            origins[value] = origin
    return origin


def _is_repeated(shape: Shape | None, wide: Shape | None) -> bool:
    """Whether a shape is broadcast to another one, of which some sizes are not known."""
    if shape is None or wide is None or len(shape) > len(wide):
        return False
    return all(size == 1 or size == other is not None for size, other in zip(shape[::-1], wide[::-1], strict=False))


def _is_elementwise(node: Node) -> bool:
    return not node.domain and node.op in FUSED and len(node.outputs) == 1


def _has_neighbour(graph: Graph) -> set[int]:
    """The ids of element-wise nodes that read or feed others."""
    nodes = [node for node in graph.nodes if _is_elementwise(node)]
    producers = {node.outputs[0]: node for node in nodes}
    found: set[int] = set()
    for node in nodes:
        for before in (producers[value] for value in node.inputs if value in producers):
            found.update((id(node), id(before)))
    return found


def _reason_against(graph: Graph, node: Node, context: Context) -> str | None:
    facts = [context.facts.of(value) for value in (*node.inputs, *node.outputs) if value is not None]
    if any(fact.dtype in FOREIGN for fact in facts):
        return "it is of strings"
    if node.op == "Clip" and not all(value is None or value in graph.constants for value in node.inputs[1:]):
        return "its bounds are not constants"
    if node.op == "Div" and _may_fail(graph, node, context):
        return "its divisor may be zero"
    return None


def _may_fail(graph: Graph, node: Node, context: Context) -> bool:
    """Whether it divides integers by what may be zero: the error should name it, and not what it would be part of."""
    fact, array = context.facts.of(node.inputs[1]), constant_of(graph, node.inputs[1])
    if fact.dtype is None or fact.dtype in FLOATS or (array is not None and array.all()):
        return False
    return fact.ints is None or 0 in fact.ints


def _operands(graph: Graph, node: Node, context: Context) -> list[Value]:
    """What a node reads, without the scalars that it has for itself."""
    scalars = _scalars(graph, node, context)
    return [value for value in node.inputs if value is not None and value not in scalars]


def _scalars(graph: Graph, node: Node, context: Context) -> set[Value]:
    """The constants of one element that do not decide the shape of the result."""
    found = set()
    for value in node.inputs:
        array = constant_of(graph, value)
        if value is not None and array is not None and array.size == 1:
            found.add(value)
    others = [context.facts.shape(value) for value in node.inputs if value is not None and value not in found]
    return found if others and broadcast(*others) == context.facts.shape(node.outputs[0]) else set()


def _expression(graph: Graph, members: list[Node], context: Context) -> Node:
    made = {value for node in members for value in node.outputs}
    operands = {value for node in members for value in _operands(graph, node, context)}
    ours = set(map(id, members))
    read_outside: set[Value | None] = set(graph.outputs)
    for node in graph.nodes:
        if id(node) not in ours:
            read_outside.update(node.inputs)
    body = Graph("expression")
    inner: dict[Value, Value] = {}
    for node in members:
        for value in node.inputs:
            if value is None or value in inner:
                continue
            inner[value] = value.like(value.name)
            if value not in operands:
                inner[value].shape = ()
                body.constants[inner[value]] = graph.constants[value].reshape(())
            elif value not in made:
                body.inputs.append(inner[value])
        for value in node.outputs:
            assert value is not None
            inner[value] = value.like(value.name)
        body.nodes.append(
            Node(
                node.op,
                [None if value is None else inner[value] for value in node.inputs],
                [None if value is None else inner[value] for value in node.outputs],
                node.attrs,
                node.name,
            )
        )
    outputs = [value for node in members for value in node.outputs if value in read_outside]
    body.outputs = [inner[value] for value in outputs if value is not None]
    outer = {mine: value for value, mine in inner.items()}
    expression = Node(
        "Expression", [outer[value] for value in body.inputs], outputs, {"body": body}, members[-1].name, WEBRNN
    )
    infer_node(expression, context.facts)
    return expression
