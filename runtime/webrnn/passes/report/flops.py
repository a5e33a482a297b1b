"""Estimated FLOPs of a node, a table by op.

A multiply-add is two; what is done element by element is one for each element of the result, whatever the function;
what only moves or names elements is none. A fused op costs what the ops that it stands for cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log2
from typing import TypeAlias

from webrnn.ir import WEBRNN, Dim, Node, Shape
from webrnn.ir.fused import is_cell, is_expression

from ..facts import Facts, size_of
from ..op_sets import BITWISE, BROADCASTING, COMPARISONS, LOGICAL, MAPS, VARIADIC

Estimate: TypeAlias = Callable[[Node, Facts], Dim | None]

FREE = frozenset(
    {
        "Cast", "CastLike", "Concat", "Constant", "ConstantOfShape", "DepthToSpace", "Expand", "EyeLike", "Flatten",
        "Gather", "GatherElements", "GatherND", "Identity", "NonZero", "OneHot", "Optional", "OptionalGetElement",
        "OptionalHasElement", "Pad", "Range", "Reshape", "ReverseSequence", "ScatterElements", "ScatterND",
        "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceLength", "Shape", "Size",
        "Slice", "SpaceToDepth", "Split", "SplitToSequence", "Squeeze", "TensorScatter", "Tile", "Transpose", "Trilu",
        "Unsqueeze",
    }
)  # fmt: skip
"""Ops that calculate nothing."""

PER_ELEMENT = {
    "Clip": 2, "PRelu": 2, "Pow": 1, "BitShift": 1, "Where": 1, "IsNaN": 1, "IsInf": 1, "Dropout": 1, "CumSum": 1,
    "CumProd": 1, "QuantizeLinear": 3, "DequantizeLinear": 2, "Softmax": 5, "LogSoftmax": 5, "Hardmax": 2,
    "LayerNormalization": 8, "RMSNormalization": 5, "InstanceNormalization": 8, "GroupNormalization": 8,
    "MeanVarianceNormalization": 7, "BatchNormalization": 4, "LpNormalization": 3, "LRN": 8, "Resize": 7,
    "GridSample": 9, "RotaryEmbedding": 6, "HannWindow": 4, "HammingWindow": 4, "BlackmanWindow": 7,
    "MelWeightMatrix": 2,
} | dict.fromkeys(MAPS | BROADCASTING | COMPARISONS | LOGICAL | BITWISE, 1)  # fmt: skip
"""FLOPs for each element of the result."""

PER_INPUT_ELEMENT = {
    "ReduceSum": 1, "ReduceProd": 1, "ReduceMean": 1, "ReduceMax": 1, "ReduceMin": 1, "ReduceL1": 2, "ReduceL2": 2,
    "ReduceSumSquare": 2, "ReduceLogSum": 1, "ReduceLogSumExp": 3, "ArgMax": 1, "ArgMin": 1, "GlobalAveragePool": 1,
    "GlobalMaxPool": 1, "GlobalLpPool": 2, "TopK": 1,
}  # fmt: skip
"""FLOPs for each element of the first operand."""

CELL_OPS = {"RnnCell": 1, "GruCell": 8, "GruReset": 3, "GruUpdate": 5, "LstmCell": 8}
"""Additions and products of a cell for each element of its state; its activations come on top."""

CELL_ACTIVATIONS = {"RnnCell": (0,), "GruCell": (0, 0, 1), "GruReset": (0, 0), "GruUpdate": (1,)}
"""Which of the activations a cell applies, once for each element of its state."""

ACTIVATION_OPS = {"none": 0, "affine": 2, "scaled_tanh": 3}
"""All others are one op."""


def flops(node: Node, facts: Facts) -> Dim | None:
    """What one run of a node costs; None where its sizes are not known, or its op is not.

    Graphs inside a node are not counted, but for that of an Expression.
    """
    if is_expression(node):
        costs = [flops(inner, facts) for inner in node.attrs["body"].nodes]
        return None if None in costs else sum(cost for cost in costs if cost is not None)
    if is_cell(node):
        return _cell(node, facts)
    if node.domain == WEBRNN and node.op in ("ExpectShape", "SequenceMask", "Scan"):
        return 0
    if node.domain == WEBRNN and node.op == "Linear":
        return _linear(node, facts)
    if node.domain or node.op in _BY_OP:
        return None if node.domain else _BY_OP[node.op](node, facts)
    if node.op in FREE or node.op == "If":
        return 0
    if node.op in PER_ELEMENT:
        return _times(PER_ELEMENT[node.op], _size(node, facts))
    if node.op in PER_INPUT_ELEMENT:
        return _times(PER_INPUT_ELEMENT[node.op], size_of(facts.shape(node.inputs[0])))
    if node.op in VARIADIC:
        return _times(len(node.inputs) - (node.op != "Mean"), _size(node, facts))
    return None


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


def _matmul(node: Node, facts: Facts) -> Dim | None:
    inner = _axis(facts.shape(node.inputs[0]), -1)
    return _times(2, _size(node, facts), inner)


def _linear(node: Node, facts: Facts) -> Dim | None:
    return _plus(_matmul(node, facts), _size(node, facts) if _has(node, 2) else 0)


def _gemm(node: Node, facts: Facts) -> Dim | None:
    inner = _axis(facts.shape(node.inputs[0]), 0 if node.attrs.get("transA", 0) else 1)
    return _plus(_times(2, _size(node, facts), inner), _size(node, facts) if _has(node, 2) else 0)


def _conv(node: Node, facts: Facts) -> Dim | None:
    weights = facts.shape(node.inputs[1])
    window = None if weights is None else size_of(weights[1:])
    return _plus(_times(2, _size(node, facts), window), _size(node, facts) if _has(node, 2) else 0)


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
    costs = [ACTIVATION_OPS.get(activations[index], 1) for index in applied]
    clip = 2 if clipped else 0
    if op != "LstmCell":
        return CELL_OPS[op] + sum(costs) + clip * len(costs)
    # i, o and f have the first activation; a coupled f is 1 - i instead. The last one is not clipped.
    gates = 2 if couple else 3
    total = CELL_OPS[op] + gates * (costs[0] + clip) + (3 - gates) + costs[1] + clip + costs[2]
    return total + (2 * gates if peephole else 0)


_BY_OP: dict[str, Estimate] = {
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "QLinearMatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
    "ConvInteger": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _pool,
    "AveragePool": _pool,
    "LpPool": _pool,
    "Attention": _attention,
    "DFT": _dft,
    "STFT": _stft,
    "Einsum": _einsum,
}
