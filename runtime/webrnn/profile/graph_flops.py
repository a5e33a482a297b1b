"""How many operations the products and convolutions of a graph take, before it runs: those that make models slow."""

from __future__ import annotations

from math import prod

from webrnn.ir import Graph, Node, Scan, Value, is_scan
from webrnn.shapes.facts import Facts
from webrnn.shapes.infer import infer, length_of, step_count


def flops(graph: Graph) -> int | None:
    """Of a graph whose inputs have known sizes, loops step by step; None if a size of a product is not known.

    >>> from webrnn.ir import DType, GraphBuilder
    >>> b = GraphBuilder("g")
    >>> x, w = b.input("x", DType.FLOAT, (5, 3)), b.input("w", DType.FLOAT, (3, 4))
    >>> b.graph.outputs.append(b.op("MatMul", x, w))
    >>> flops(b.graph)
    120
    """
    try:
        return _flops(graph, infer(graph))
    except _UnknownSize:
        return None


class _UnknownSize(Exception):
    pass


def _flops(graph: Graph, facts: Facts) -> int:
    return sum(_of_node(node, facts) for node in graph.nodes)


def _of_node(node: Node, facts: Facts) -> int:
    if is_scan(node):
        scan = Scan.of(node)
        lengths = [length_of(item.whole, item.spec.axis, facts) for item in scan.sequences]
        steps = next((length for length in lengths if length is not None), step_count(scan.n_steps, facts))
        inside = _flops(scan.body, facts)
        if inside and not isinstance(steps, int):
            raise _UnknownSize
        return inside * steps if isinstance(steps, int) else 0
    if node.op == "If":
        return max(_flops(branch, facts) for _, branch in node.subgraphs)
    if node.op in ("Conv", "ConvTranspose", "ConvInteger"):
        counted = node.inputs[0] if node.op == "ConvTranspose" else node.outputs[0]
        return 2 * _count(counted, facts) * _count(node.inputs[1], facts, first=1)
    if node.op in ("MatMul", "Linear", "MatMulInteger", "Gemm"):
        shape = facts.of(node.inputs[0]).shape
        depth = None if not shape else shape[-2 if node.attrs.get("transA") else -1]
        if not isinstance(depth, int):
            raise _UnknownSize
        return 2 * depth * _count(node.outputs[0], facts)
    return 0


def _count(value: Value | None, facts: Facts, first: int = 0) -> int:
    """How many elements a value has, from an axis on."""
    shape = facts.of(value).shape
    sizes = [size for size in (shape or (None,))[first:] if isinstance(size, int)]
    if shape is None or len(sizes) < len(shape) - first:
        raise _UnknownSize
    return prod(sizes)
