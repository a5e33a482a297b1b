"""The elements of small integer and bool tensors: how Shape, Gather, Concat, Mul ... resolve to sizes.

Ops that only move elements are run, by the reference implementation, on the positions of the elements instead of on
the elements. That also moves symbolic and unknown ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from webrnn import reference
from webrnn.ir import Dim, DType, Node
from webrnn.ir.dims import floor_divide, is_nonnegative, quotient
from webrnn.ops.sets import RANDOM, VIEWS

from ..facts import CONTENT_LIMIT, FOLLOWED, Fact

Content = tuple[Dim | None, ...]

MOVES: dict[str, frozenset[int] | None] = {
    **dict.fromkeys(VIEWS, frozenset({0})),
    "Where": frozenset({1, 2}),
    "Concat": None,
}
"""The inputs whose elements are moved, None for all. The others say how and have to be known."""


def contents(node: Node, inputs: Sequence[Fact], outputs: Sequence[Fact]) -> list[Content | None]:
    """For each output its elements, as far as they are known."""
    nothing: list[Content | None] = [None] * len(outputs)
    if node.domain or not inputs or not all(map(_can_be_followed, outputs)):
        return nothing
    if all(value is None or fact.array is not None for value, fact in zip(node.inputs, inputs, strict=True)):
        return _computed(node, inputs) or nothing
    if node.op in MOVES:
        return _moved(node, inputs, MOVES[node.op]) or nothing
    if node.op == "Cast" and DType(node.attrs["to"]) in (DType.INT64, DType.INT32):
        # No axis has 2**31 elements.
        return [inputs[0].content] if inputs[0].dtype in (DType.INT64, DType.INT32) else nothing
    if node.op in _SYMBOLIC and inputs[0].dtype in (DType.INT64, DType.INT32) and len(inputs) == 2:
        return [_calculated(_SYMBOLIC[node.op], inputs)]
    if node.op in _FOLDED and inputs[0].dtype in (DType.INT64, DType.INT32) and inputs[0].rank == 1:
        return [_folded(_FOLDED[node.op], inputs[0].content, outputs[0])]
    return nothing


def _can_be_followed(fact: Fact) -> bool:
    sizes = fact.shape
    if fact.dtype not in FOLLOWED or sizes is None:
        return False
    static = [size for size in sizes if isinstance(size, int)]
    return len(static) == len(sizes) and prod(static) <= CONTENT_LIMIT


def _computed(node: Node, inputs: Sequence[Fact]) -> list[Content | None] | None:
    if node.op in RANDOM:
        return None
    arrays = [None if value is None else fact.array for value, fact in zip(node.inputs, inputs, strict=True)]
    results = reference.call(node.op, "", arrays, node.attrs, len(node.outputs))
    return [tuple(int(element) for element in result.reshape(-1)) for result in results]


def _moved(node: Node, inputs: Sequence[Fact], moved: frozenset[int] | None) -> list[Content | None] | None:
    elements: list[Dim | None] = []
    arguments: list[np.ndarray | None] = []
    for index, (value, fact) in enumerate(zip(node.inputs, inputs, strict=True)):
        if value is None:
            arguments.append(None)
        elif moved is None or index in moved:
            if fact.content is None or fact.shape is None:
                return None
            positions = np.arange(len(elements), len(elements) + len(fact.content), dtype=np.int64)
            arguments.append(positions.reshape([size for size in fact.shape if isinstance(size, int)]))
            elements.extend(fact.content)
        elif fact.array is None:
            return None
        else:
            arguments.append(fact.array)
    results = reference.call(node.op, "", arguments, node.attrs, len(node.outputs))
    return [tuple(elements[position] for position in result.reshape(-1)) for result in results]


def _is_less(a: Dim, b: Dim) -> bool | None:
    if is_nonnegative(b - a - 1):
        return True
    return False if is_nonnegative(a - b) else None


def _less(a: Dim, b: Dim) -> Dim | None:
    decided = _is_less(a, b)
    return None if decided is None else int(decided)


def _less_or_equal(a: Dim, b: Dim) -> Dim | None:
    decided = _is_less(b, a)
    return None if decided is None else int(not decided)


def _equal(a: Dim, b: Dim) -> Dim | None:
    return 1 if a == b else 0 if _is_less(a, b) or _is_less(b, a) else None


def _divided(a: Dim, b: Dim) -> Dim | None:
    """Integers are divided towards zero."""
    rounds_down = isinstance(b, int) and b > 0 and is_nonnegative(a)
    return floor_divide(a, b) if rounds_down and isinstance(b, int) else quotient(a, b)


def _remainder(a: Dim, b: Dim) -> Dim | None:
    return a - floor_divide(a, b) * b if isinstance(b, int) and b > 0 and is_nonnegative(a) else None


def _larger(a: Dim, b: Dim) -> Dim | None:
    decided = _is_less(a, b)
    return None if decided is None else b if decided else a


def _smaller(a: Dim, b: Dim) -> Dim | None:
    decided = _is_less(a, b)
    return None if decided is None else a if decided else b


_SYMBOLIC: dict[str, Callable[[Dim, Dim], Dim | None]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": _divided,
    "Mod": _remainder,
    "Max": _larger,
    "Min": _smaller,
    "Equal": _equal,
    "Less": _less,
    "LessOrEqual": _less_or_equal,
    "Greater": lambda a, b: _less(b, a),
    "GreaterOrEqual": lambda a, b: _less_or_equal(b, a),
}
"""Arithmetic on sizes. The operands are int64, or int32: no tensor has so many elements that these overflow."""


_FOLDED = {"ReduceProd": "Mul", "ReduceSum": "Add", "ReduceMax": "Max", "ReduceMin": "Min"}
"""Reductions of a list of sizes to one number."""


def _folded(op: str, sizes: Content | None, output: Fact) -> Content | None:
    if not sizes or output.shape not in ((), (1,)):
        return None
    total: Dim | None = sizes[0]
    for size in sizes[1:]:
        total = None if total is None or size is None else _SYMBOLIC[op](total, size)
    return (total,)


def _calculated(function: Callable[[Dim, Dim], Dim | None], inputs: Sequence[Fact]) -> Content | None:
    arrays = []
    for fact in inputs:
        if fact.content is None or fact.shape is None:
            return None
        array = np.empty(len(fact.content), object)
        array[:] = fact.content
        arrays.append(array.reshape([size for size in fact.shape if isinstance(size, int)]))
    first, second = np.broadcast_arrays(*arrays)
    pairs = zip(first.reshape(-1).tolist(), second.reshape(-1).tolist(), strict=True)
    found = (None if a is None or b is None else function(a, b) for a, b in pairs)
    most = 2**63 if inputs[0].dtype is DType.INT64 else 2**31
    return tuple(None if isinstance(size, int) and not -most <= size < most else size for size in found)
