"""Estimated FLOPs of a node, by the row of its op.

A multiply-add is two; what is done element by element is one for each element of the result, whatever the function;
what only moves or names elements is none. A fused op costs what the ops that it stands for cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, log2
from typing import Any, TypeAlias

from webrnn.ir import Dim, Node, Shape
from webrnn.ir.activations import ACTIVATION_ROWS
from webrnn.ir.backward_cells import pull_back
from webrnn.ir.fused import CELL_FORMS, PEEPHOLES
from webrnn.ops.rows import ROWS
from webrnn.shapes.facts import Facts, size_of

Estimate: TypeAlias = Callable[[Node, Facts], Dim | None]

CELL_OPS = {"RnnCell": 1, "GruCell": 8, "GruReset": 3, "GruUpdate": 5, "LstmCell": 8}
"""Additions and products of a cell for each element of its state; its activations come on top."""

CELL_ACTIVATIONS = {"RnnCell": (0,), "GruCell": (0, 0, 1), "GruReset": (0, 0), "GruUpdate": (1,)}
"""Which of the activations a cell applies, once for each element of its state."""

_ACTIVATION_FLOPS = {row.name: row.flops for row in ACTIVATION_ROWS}


def flops(node: Node, facts: Facts) -> Dim | None:
    """What one run of a node costs; None where its sizes are not known, or its op is not.

    Graphs inside a node are not counted, but for that of an Expression.
    """
    row = ROWS.get((node.domain, node.op))
    if row is None or not row.flops:
        return None
    per_input, is_per_input, _ = row.flops.partition("/in")
    if is_per_input:
        return _times(int(per_input), size_of(facts.shape(node.inputs[0])))
    if row.flops.isdigit():
        return _times(int(row.flops), _size(node, facts)) if row.flops != "0" else 0
    return _ESTIMATES[row.flops](node, facts)


def per_element(op: str) -> int:
    """Of an op of ONNX's own domain, for each element of its result."""
    return int(ROWS["", op].flops)


def _times(*factors: Dim | None) -> Dim | None:
    product: Dim = 1
    for factor in factors:
        if factor is None:
            return None
        product = product * factor
    return product


def _plus(*terms: Dim | None) -> Dim | None:
    total: Dim = 0
    for term in terms:
        if term is None:
            return None
        total = total + term
    return total


def _size(node: Node, facts: Facts) -> Dim | None:
    return size_of(facts.shape(next((value for value in node.outputs if value is not None), None)))


def _axis(shape: Shape | None, axis: int) -> Dim | None:
    return shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None


def _has(node: Node, index: int) -> bool:
    return index < len(node.inputs) and node.inputs[index] is not None


def _expression(node: Node, facts: Facts) -> Dim | None:
    return _plus(*(flops(inner, facts) for inner in node.attrs["body"].nodes))


def _variadic(node: Node, facts: Facts) -> Dim | None:
    return _times(len(node.inputs) - (node.op != "Mean"), _size(node, facts))


def _matmul(node: Node, facts: Facts) -> Dim | None:
    inner = _axis(facts.shape(node.inputs[0]), -1)
    return _times(2, _size(node, facts), inner)


def _linear(node: Node, facts: Facts) -> Dim | None:
    return _plus(_matmul(node, facts), _size(node, facts) if _has(node, 2) else 0)


def _gemm(node: Node, facts: Facts) -> Dim | None:
    inner = _axis(facts.shape(node.inputs[0]), 0 if node.attrs.get("transA", 0) else 1)
    return _plus(_times(2, _size(node, facts), inner), _size(node, facts) if _has(node, 2) else 0)


def _conv(node: Node, facts: Facts) -> Dim | None:
    weights_at, bias_at = {"QLinearConv": (3, 8), "DeformConv": (1, 3)}.get(node.op, (1, 2))
    weights = facts.shape(node.inputs[weights_at])
    window = None if weights is None else size_of(weights[1:])
    return _plus(_times(2, _size(node, facts), window), _size(node, facts) if _has(node, bias_at) else 0)


def _det(node: Node, facts: Facts) -> Dim | None:
    """About n³ for each matrix."""
    shape = facts.shape(node.inputs[0])
    return _times(size_of(shape), _axis(shape, -1))


def _conv_transpose(node: Node, facts: Facts) -> Dim | None:
    weights = facts.shape(node.inputs[1])
    window = None if weights is None else size_of(weights[1:])
    bias = _size(node, facts) if _has(node, 2) else 0
    return _plus(_times(2, size_of(facts.shape(node.inputs[0])), window), bias)


def _pool(node: Node, facts: Facts) -> Dim | None:
    return _times(size_of(tuple(node.attrs["kernel_shape"])), _size(node, facts))


def _attention(node: Node, facts: Facts) -> Dim | None:
    """Both products, and a softmax of the scores; of operands with four axes."""
    q, k, v = (facts.shape(value) for value in node.inputs[:3])
    if q is None or k is None or v is None or len(q) != 4 or len(k) != 4:
        return None
    scores = _times(size_of(q[:3]), k[2])
    return _plus(_times(2, scores, q[3]), _times(2, scores, v[3]), _times(5, scores))


def _dft(node: Node, facts: Facts) -> Dim | None:
    axes = facts.of(node.inputs[2]).ints if _has(node, 2) else (-2,)
    return _transform(facts.shape(node.outputs[0]), axes[0] if axes else -2)


def _stft(node: Node, facts: Facts) -> Dim | None:
    return _transform(facts.shape(node.outputs[0]), 2)


def _transform(spectrum: Shape | None, axis: int) -> Dim | None:
    """That of a fast one: 5 log n real operations for each of n complex elements."""
    length = _axis(spectrum, axis)
    if spectrum is None or not isinstance(length, int):
        return None
    return _times(5 * max(ceil(log2(max(length, 1))), 1), size_of(spectrum[:-1]))


def _einsum(node: Node, facts: Facts) -> Dim | None:
    """A product of all operands for every combination of their indices."""
    operands = node.attrs["equation"].replace(" ", "").split("->")[0].split(",")
    sizes: dict[str, Dim | None] = {}
    for letters, value in zip(operands, node.inputs, strict=True):
        shape = facts.shape(value)
        if shape is None or len(shape) != len(letters):
            return None
        sizes.update((letter, size) for letter, size in zip(letters, shape, strict=True) if size != 1)
    return _times(len(operands) if len(operands) > 1 else 1, *sizes.values())


def _cell(node: Node, facts: Facts) -> Dim | None:
    clipped = node.attrs["params"][0] != float("inf")
    couple = bool(node.attrs.get("couple", 0))
    return _times(cell_flops(node.op, node.attrs["activations"], clipped, couple, _has(node, 3)), _size(node, facts))


def cell_flops(op: str, activations: Sequence[str], clipped: bool, couple: bool, peephole: bool) -> int:
    """Of a cell, for each element of its state; `couple` and `peephole` are an LSTM's."""
    applied = (0, 1, 2) if op == "LstmCell" else CELL_ACTIVATIONS[op]
    costs = [_ACTIVATION_FLOPS[activations[index]] for index in applied]
    clip = 2 if clipped else 0
    if op != "LstmCell":
        return CELL_OPS[op] + sum(costs) + clip * len(costs)
    # i, o and f have the first activation; a coupled f is 1 - i instead. The last one is not clipped.
    gates = 2 if couple else 3
    total = CELL_OPS[op] + gates * (costs[0] + clip) + (3 - gates) + costs[1] + clip + costs[2]
    return total + (2 * gates if peephole else 0)


class _Counter:
    """Arithmetic that counts operations. An activation costs what its row says."""

    def __init__(self, activations: Sequence[str], clipped: bool):
        self._activations, self._clipped = activations, clipped
        self.count = 0

    def op(self, name: str, *operands: object) -> object:
        self.count += 1
        return name

    def activation(self, which: int, x: object, clipped: bool = True) -> object:
        self.count += _ACTIVATION_FLOPS[self._activations[which]] + (2 if self._clipped and clipped else 0)
        return x


def backward_cell_flops(op: str, attrs: Mapping[str, Any], peephole: bool) -> int:
    """Of the pullback of a cell, for each element of its state."""
    counter = _Counter(attrs["activations"], attrs["params"][0] != float("inf"))
    operands = [[1] * (width or 3) if width != PEEPHOLES or peephole else None for width in CELL_FORMS[op].widths]
    pull_back(op, counter, attrs, operands)
    return counter.count


def _backward_cell(node: Node, facts: Facts) -> Dim | None:
    state = facts.shape(node.inputs[CELL_FORMS[node.op].state])
    return _times(backward_cell_flops(node.op, node.attrs, _has(node, 3)), size_of(state))


_ESTIMATES: dict[str, Estimate] = {
    "attention": _attention,
    "backward_cell": _backward_cell,
    "cell": _cell,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "det": _det,
    "dft": _dft,
    "einsum": _einsum,
    "expression": _expression,
    "gemm": _gemm,
    "linear": _linear,
    "matmul": _matmul,
    "pool": _pool,
    "stft": _stft,
    "variadic": _variadic,
}
"""By what the table of ops calls them."""
