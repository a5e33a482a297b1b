"""Products whose results go through a logarithm: those of spectra and filter banks. A small error beside a large number
is a large error of the logarithm beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webrnn.ir import Graph, Node, Value, is_plain
from webrnn.ir.fused import is_expression, is_linear
from webrnn.ops.sets import RESHAPES

_KEEPS_SPECTRA = {
    "Abs", "Add", "Clip", "Concat", "Conv", "Div", "Expand", "Gather", "MatMul", "Max", "Min", "Mul", "Neg", "Pow",
    "ReduceL2", "ReduceMean", "ReduceSum", "ReduceSumSquare", "Relu", "Slice", "Split", "Sqrt", "Sub", "Sum",
    "Transpose", "Where", *RESHAPES,
}  # fmt: skip
"""What may lie between a product and the logarithm of its spectrum."""


def feeds_a_logarithm(graph: Graph, value: Value | None) -> bool:
    """Whether a value reaches a Log through what is done to spectra."""
    return _reaches(graph, graph.consumers(), value, set())


def _reaches(graph: Graph, readers: Mapping[Value, Sequence[Node]], value: Value | None, seen: set[Value]) -> bool:
    if value is None or value in seen:
        return False
    seen.add(value)
    for node in readers.get(value, ()):
        if is_plain(node, "Log"):
            return True
        if is_expression(node):
            body: Graph = node.attrs["body"]
            inside = body.consumers()
            for operand, inner in zip(node.inputs, body.inputs, strict=True):
                passed: set[Value] = set()
                if operand is value and _reaches(body, inside, inner, passed):
                    return True
                outer = (out for out, of in zip(node.outputs, body.outputs, strict=True) if of in passed)
                if any(_reaches(graph, readers, each, seen) for each in outer):
                    return True
        elif (is_linear(node) or is_plain(node, *_KEEPS_SPECTRA)) and any(
            _reaches(graph, readers, each, seen) for each in node.outputs
        ):
            return True
    return False
